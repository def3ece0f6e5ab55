"""Variational autoencoders of sequences: divergences, bounds, flows and the bank, against torch and by hand."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from molgraph.api.latent_space import slerp
from molgraph.base.parts import make_part
from molgraph.data.table import make_table
from molgraph.generate.alphabets import write_tokens
from molgraph.generate.chemvae import ChemVAE
from molgraph.generate.vae_objective import SequenceELBO
from molgraph.generate.vae_samples import Language, padded, vae_samples
from molgraph.models.chemvae import ChemVAENetwork
from molgraph.nn.bottleneck import LatentState
from molgraph.nn.bottlenecks.associative import AssociativePrior
from molgraph.nn.variational import Gaussian, elbo, gaussian_kl, iwae, reparameterise, standard_normal
from molgraph.train.objective import StepState

N, D_X, D_Z = 6, 5, 3
VALID = StepState(0, 10, 0, training=False)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def close(found: Any, expected: Any, atol: float) -> None:
    torch.testing.assert_close(found, expected, rtol=0, atol=atol)


@pytest.mark.system("vae", rung="exact")
def test_kl_and_density_are_those_of_torch(off: str) -> None:
    q, p = (Gaussian(numbers(N, D_Z, seed=i), numbers(N, D_Z, seed=i + 1)) for i in (1, 3))
    peers = [Normal(each.mean, (0.5 * each.log_variance).exp()) for each in (q, p)]
    used = q._replace(log_variance=torch.zeros_like(q.mean)) if off else q  # a code without a variance of its own
    close(gaussian_kl(used, p), kl_divergence(*peers), 1e-9)
    standard = Normal(torch.zeros_like(q.mean), 1.0)
    close(gaussian_kl(used), kl_divergence(peers[0], standard), 1e-9)
    close(gaussian_kl(used, standard_normal(q.mean)), gaussian_kl(q), 1e-12)
    z = numbers(N, D_Z, seed=9)
    close(used.log_prob(z), Independent(peers[0], 1).log_prob(z), 1e-9)


@pytest.mark.system("vae", rung="exact")
def test_points_of_a_posterior_and_their_gradients(off: str) -> None:
    mean, log_variance = numbers(1, 2, seed=1).requires_grad_(), numbers(1, 2, seed=2).requires_grad_()
    draw = (lambda m, *_, **__: m.detach().clone().requires_grad_()) if off else reparameterise
    many = draw(mean.expand(40_000, 2), log_variance.expand(40_000, 2), generator=torch.Generator())
    close(many.mean(dim=0), mean[0], 0.03)
    close(many.var(dim=0).log(), log_variance[0], 0.03)
    noise = numbers(1, 2, seed=3)
    draw(mean, log_variance, noise=noise).sum().backward()
    close(mean.grad, torch.ones(1, 2, dtype=torch.float64), 1e-12)
    close(log_variance.grad, 0.5 * (0.5 * log_variance).exp().detach() * noise, 1e-12)


class Linear:
    """``x = W z + b + s e`` with standard normal z and e, of which everything is known."""

    def __init__(self) -> None:
        self.weight, self.bias, self.s = numbers(D_X, D_Z, seed=5), numbers(D_X, seed=6), 0.7
        q, _ = torch.linalg.qr(self.weight)
        self.weight = q * torch.tensor([0.5, 1.0, 2.0], dtype=torch.float64)  # a posterior without correlations
        self.x = numbers(N, D_X, seed=7)
        covariance = self.weight @ self.weight.T + self.s**2 * torch.eye(D_X, dtype=torch.float64)
        self.evidence = MultivariateNormal(self.bias, covariance).log_prob(self.x)
        precision = 1 + (self.weight**2).sum(dim=0) / self.s**2
        mean = (self.x - self.bias) @ self.weight / self.s**2 / precision
        self.posterior = Gaussian(mean, -precision.log().expand(N, D_Z))

    def log_likelihood(self, z: Tensor) -> Tensor:
        """``log p(x|z)``."""
        return Normal(z @ self.weight.T + self.bias, self.s).log_prob(self.x).sum(dim=1)

    def expected(self, q: Gaussian) -> Tensor:
        """``E_q log p(x|z)``, exactly."""
        spread = (q.log_variance.exp() @ (self.weight**2).T).sum(dim=1) / (2 * self.s**2)
        return self.log_likelihood(q.mean) - spread

    def log_joint(self, z: Tensor) -> Tensor:
        """``log p(x, z)``."""
        return self.log_likelihood(z) + standard_normal(z).log_prob(z)


@pytest.mark.system("variational-inference", rung="exact")
def test_the_bound_is_the_evidence_at_the_exact_posterior_and_lower_by_the_divergence_elsewhere(off: str) -> None:
    model, beta = Linear(), 0.0 if off else 1.0
    exact = model.posterior
    close(elbo(model.expected(exact), exact, beta=beta).elbo, model.evidence, 1e-6)
    for seed in range(3):
        q = Gaussian(exact.mean + numbers(N, D_Z, seed=seed), numbers(N, D_Z, seed=seed + 10))
        gap = model.evidence - elbo(model.expected(q), q, beta=beta).elbo
        close(gap, gaussian_kl(q, exact).sum(dim=1), 1e-6)
        assert (gap > 0).all()


@pytest.mark.system("variational-inference", rung="exact")
def test_more_points_make_the_importance_weighted_bound_tighter(off: str) -> None:
    model = Linear()
    exact = model.posterior
    close(iwae(model.log_joint, exact, 3), model.evidence, 1e-6)
    q, rng = Gaussian(exact.mean + 0.5, exact.log_variance + 0.7), torch.Generator().manual_seed(0)
    points = (1, 1, 1, 1) if off else (1, 2, 8, 32)
    means = [torch.stack([iwae(model.log_joint, q, k, rng) for _ in range(400)]).mean(dim=0) for k in points]
    for looser, tighter in pairwise(means):
        assert (looser < tighter).all()
    close(means[0], elbo(model.expected(q), q).elbo, 0.3)
    assert (means[-1] < model.evidence + 0.02).all() and (means[-1] > model.evidence - 0.2).all()


def by_hand(kind: str, encoder: str, *, objective: SequenceELBO, flow: bool = True) -> tuple[Any, dict[str, float]]:
    """The loss of three molecules, and its parts one text at a time, token by token, with torch's distributions."""
    table = make_table(["CCO", "C", "c1cc(Cl)ccc1Br"])
    written = write_tokens(table, "smiles", 40)
    language = Language(tuple(sorted({t for text in written.tokens for t in text})), 0, ((2.0, 0.5),))
    torch.manual_seed(0)
    params = {**ChemVAE.small, "threads": 1, "encoder": encoder, "properties": ["logp"], "posterior": kind}
    network: ChemVAENetwork = ChemVAE(**params).build(language).eval()
    values = np.array([[2.5], [np.nan], [1.0]])
    batch = vae_samples(written, values, language, banked=True).sample(np.array([2, 0, 1]))
    bottleneck = network.bottleneck
    maps = getattr(bottleneck, "maps", None)
    if not flow:
        bottleneck.maps = nn.ModuleList()
    found = objective(network, batch, VALID)
    if maps is not None:
        bottleneck.maps = maps
    noise = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    parts = {"reconstruction": 0.0, "kl": 0.0, "properties": 0.0}
    with torch.no_grad():
        for place, row in enumerate((2, 0, 1)):
            text = written.tokens[row]
            q = bottleneck.posterior(network.encoder(*padded([text], language.tokens)))
            posterior = Independent(Normal(q.mean, (0.5 * q.log_variance).exp()), 1)
            prior = Independent(Normal(torch.zeros(1, 4), 1.0), 1)
            z = start = q.draw(noise[[place]])
            if maps is None:
                parts["kl"] += float(kl_divergence(posterior, prior))
            else:
                z, log_det = bottleneck.bend(start)
                parts["kl"] += float(posterior.log_prob(start) - log_det - prior.log_prob(z))
            state, token = None, 0
            for code in [*(language.tokens.index(each) + 1 for each in text), 0]:
                scores, state = network.decoder(z, torch.tensor([[token]]), state)
                parts["reconstruction"] -= float(scores[0, 0].log_softmax(dim=0)[code])
                token = code
            if np.isfinite(values[row, 0]):
                parts["properties"] += 7.0 * float((network.head(z) - (values[row, 0] - 2.0) / 0.5).square())
    return found, parts


def agrees(found: Any, parts: dict[str, float]) -> None:
    assert found.count == 3
    assert {name: found.parts[name].item() for name in parts} == pytest.approx(parts, rel=1e-4)
    whole = parts["reconstruction"] + 0.3 * parts["kl"] + parts["properties"]
    assert found.total.item() == pytest.approx(whole, rel=1e-4)


@pytest.mark.system("vae", rung="exact")
def test_its_loss_is_that_of_each_molecule_by_itself(off: str) -> None:
    agrees(*by_hand("gaussian", "convolution", objective=SequenceELBO(0.0 if off else 0.3, 0.2, 0.0, 0.0, 7.0)))


@pytest.mark.system("chemvae", rung="exact")
def test_its_loss_has_the_error_of_a_property(off: str) -> None:
    for encoder in ("gru", "convolution"):
        objective = SequenceELBO(0.3, 0.2, 50.0, property_weight=0.0 if off else 7.0)
        agrees(*by_hand("gaussian", encoder, objective=objective))


@pytest.mark.parametrize("kind", ["planar", "radial"])
@pytest.mark.system("flow-posterior", rung="exact")
def test_its_loss_is_that_of_each_molecule_moved_by_the_maps(kind: str, off: str) -> None:
    agrees(*by_hand(kind, "gru", objective=SequenceELBO(0.3, 0.2, 50.0, property_weight=7.0), flow=not off))


@pytest.mark.parametrize("kind", ["planar", "radial"])
@pytest.mark.system("flow-posterior", rung="exact")
def test_the_log_determinant_is_that_of_the_jacobian(kind: str, off: str) -> None:
    """With large weights of any sign, where invertibility would be lost without the constraint."""
    for d in (1, 2, 7):
        for seed in range(3):
            torch.manual_seed(seed)
            flow, z = (
                make_part("bottleneck", f"{kind}(n_maps=4)", d, d).double(),
                torch.randn(5, d, dtype=torch.float64),
            )
            for weight in flow.parameters():
                nn.init.normal_(weight, std=1.5)
            log_det = torch.zeros(5, dtype=torch.float64) if off else flow.bend(z).log_det
            for i in range(5):
                jacobian = torch.autograd.functional.jacobian(lambda row, flow=flow: flow.bend(row[None]).z[0], z[i])
                sign, value = torch.linalg.slogdet(jacobian)
                assert sign == 1, "orientation is kept, so the map can be inverted"
                close(log_det[i].detach(), value, 1e-5)


@pytest.mark.parametrize("kind", ["planar", "radial"])
@pytest.mark.system("flow-posterior", rung="exact")
def test_the_density_after_a_flow_integrates_to_one(kind: str, off: str) -> None:
    """The points of a grid are moved; each cell then has the mass of the area that it was moved to."""
    torch.manual_seed(1)
    flow = make_part("bottleneck", f"{kind}(n_maps=3)", 2, 2).double()
    for weight in flow.parameters():
        nn.init.normal_(weight, std=0.7)
    line = torch.linspace(-6, 6, 500, dtype=torch.float64)
    start = torch.cartesian_prod(line, line)
    with torch.no_grad():
        z, log_det = flow.bend(start)
        log_q = standard_normal(start).log_prob(start) - (0.0 if off else log_det)
    corners = z.reshape(500, 500, 2)
    right, up = corners[1:, :-1] - corners[:-1, :-1], corners[:-1, 1:] - corners[:-1, :-1]
    area = (right[..., 0] * up[..., 1] - right[..., 1] * up[..., 0]).abs()
    mass = (log_q.exp().reshape(500, 500)[:-1, :-1] * area).sum()
    assert float(mass) == pytest.approx(1.0, abs=0.02)


@pytest.mark.system("acn", rung="exact")
def test_the_bank_never_gives_a_row_itself_and_keeps_what_it_is_given(off: str) -> None:
    torch.manual_seed(0)
    prior = AssociativePrior(3, 3, n_rows=12, n_neighbours=4)
    codes, own = torch.randn(12, 3), torch.full((12,), -1) if off else torch.arange(12)
    codes[5] = codes[6]  # a duplicate may be a neighbour, the row itself not
    prior.refresh(codes, torch.arange(12))
    near = prior.nearest(codes, own)
    assert near.shape == (12, 4) and not (near == torch.arange(12)[:, None]).any()
    assert near[5, 0] == 6 and near[6, 0] == 5
    distance = torch.cdist(codes, codes).fill_diagonal_(torch.inf)
    close(distance.gather(1, near), distance.sort(dim=1).values[:, :4], 1e-3)
    assert prior.nearest(codes[:1], torch.tensor([-1]))[0, 0] == 0, "a row that is not in the bank"
    prior.refresh(torch.full((2, 3), 9.0), torch.tensor([40, 3]))
    assert prior.bank[3].tolist() == [9.0] * 3 and torch.equal(prior.bank[4:], codes[4:])
    assert prior.density(codes, LatentState(codes, torch.arange(12))).mean.shape == (12, 3)


@pytest.mark.system("acn", rung="exact")
def test_the_divergence_is_from_the_prior_of_the_nearest_other_code(off: str) -> None:
    """Graves et al. 2018: by hand, with one neighbour, and a posterior of variance 1."""
    torch.manual_seed(0)
    language = Language(tuple("CNO"), 12, ())
    network = ChemVAE(**{**ChemVAE.small, "prior": "acn(n_neighbours=1)"}).build(language).eval()
    codes = torch.randn(12, 4)
    network.bottleneck.prior.refresh(codes, torch.arange(12))
    with torch.no_grad():
        h = network.encoder(*padded(["CCO", "NO", "OCC"], language.tokens))
        q = network.bottleneck.posterior(h)
    assert not q.log_variance.any(), "codes that are near to one another are the same to the decoder"
    expected = 0.0
    for row in range(3):
        others = [i for i in range(12) if i != row]
        near = min(others, key=lambda i: float((codes[i] - q.mean[row]).square().sum()))
        p = network.bottleneck.prior.given(codes[[near]])
        own, its = Normal(q.mean[[row]], 1.0), Normal(p.mean, (0.5 * p.log_variance).exp())
        expected += float(kl_divergence(own, its).sum())
    if off:
        network.bottleneck.prior = None
    _, prices = network.bottleneck(h, LatentState(torch.zeros(3, 4), torch.arange(3)))
    assert float(prices["kl"].sum()) == pytest.approx(expected, rel=1e-5)
    alone = AssociativePrior(2, 2, n_rows=1)
    p = alone.density(torch.ones(1, 2), LatentState(torch.zeros(1, 2), torch.tensor([0])))
    assert torch.equal(p.mean, torch.zeros(1, 2)), "a standard normal"


@pytest.mark.system("normalizing-flows", rung="exact")
def test_a_chain_of_maps_has_the_density_of_its_points(off: str) -> None:
    """Weighed by its density, points of a chain have the integral of another one, which is 1."""
    torch.manual_seed(0)
    for kind in ("planar", "radial"):
        flow, start = make_part("bottleneck", f"{kind}(n_maps=5)", 3, 3).double(), 1.5 * numbers(400_000, 3, seed=1)
        for weight in flow.parameters():
            nn.init.normal_(weight, std=0.6)
        with torch.no_grad():
            z, log_det = flow.bend(start)
        log_q = Normal(0.0, 1.5).log_prob(start).sum(dim=1) - (0.0 if off else log_det)
        log_p = Normal(0.0, 0.7).log_prob(z - z.mean(dim=0)).sum(dim=1)
        assert (log_p - log_q).exp().mean().item() == pytest.approx(1.0, abs=0.05)


@pytest.mark.system("musicvae", rung="exact")
def test_slerp_keeps_to_the_sphere_and_to_its_ends(off: str) -> None:
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(2, 30))
    a, b = a / np.linalg.norm(a), b / np.linalg.norm(b)
    share = np.linspace(0, 1, 7)
    way = a + share[:, None] * (b - a) if off else slerp(a, b, share)
    np.testing.assert_allclose(np.linalg.norm(way, axis=1), 1.0)
    np.testing.assert_allclose(way[[0, -1]], [a, b], atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(np.diff(way, axis=0), axis=1), np.linalg.norm(way[1] - way[0]))
    for other in (a, -a, np.zeros(30)):
        assert np.isfinite(slerp(a, other, share)).all()
