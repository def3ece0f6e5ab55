"""Trials that every registered bottleneck meets, as a posterior and as a prior, and oracles of molgraph's own."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, Normal, kl_divergence

from molgraph.base.errors import ConflictError, UsageError
from molgraph.base.parts import make_part
from molgraph.base.registry import entry, names
from molgraph.data.table import make_table
from molgraph.generate.chemvae import ChemVAE
from molgraph.nn.bottleneck import Bottleneck, LatentState, make_bottleneck
from tests.tiny import series

D_IN, D, N = 5, 3, 6
ROWS = torch.tensor([0, 1, -1, -1, -1, 9])  # some that are not of the training part, one beyond what is kept


def is_prior(name: str) -> bool:
    return bool(entry("bottleneck", name).value.is_prior)


def build(name: str, prior: str = "normal") -> Bottleneck:
    """Beside the standard normal, with a training part of two rows, so that a row has one neighbour."""
    torch.manual_seed(0)
    own = make_part("bottleneck", name, D, D, None, 2) if is_prior(name) else make_bottleneck(name, D_IN, D, prior, 2)
    return own.eval()


def batch(name: str) -> tuple[Tensor, LatentState]:
    draw = torch.Generator().manual_seed(1)
    h = torch.randn(N, D if is_prior(name) else D_IN, generator=draw)
    return h, LatentState(torch.randn(N, D, generator=draw), ROWS)


@pytest.mark.parametrize("name", names("bottleneck"))
class TestEveryBottleneck:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("bottleneck", name)
        assert issubclass(found.value, Bottleneck) and found.summary and found.paper and found.value.__doc__

    @pytest.mark.parametrize("prior", ["normal", "acn"])
    def test_gives_a_vector_and_prices_a_row(self, name: str, prior: str) -> None:
        if prior == "acn" and entry("bottleneck", name).value.discrete:
            with pytest.raises(ConflictError, match="prior of its codes"):
                build(name, prior)
            return
        made, (h, state) = build(name, prior), batch(name)
        z, prices = made(h, state)
        assert z.shape == (N, D) and z.isfinite().all() and torch.pdist(z).min() > 0
        for price in prices.values():
            assert price.ndim == 2 and len(price) == N and price.isfinite().all()
        q = made.moments(h)
        assert q.mean.shape == q.log_variance.shape == (N, D) and q.log_variance.isfinite().all()
        assert made(h[:0], LatentState(state.noise[:0]))[0].shape == (0, D)

    def test_rows_do_not_see_each_other(self, name: str) -> None:
        made, (h, state) = build(name), batch(name)
        z, prices = made(h, state)
        for i in range(N):
            alone, own = made(h[[i]], LatentState(state.noise[[i]], ROWS[[i]]))
            torch.testing.assert_close(alone[0], z[i], rtol=0, atol=1e-5)
            for label, price in prices.items():
                torch.testing.assert_close(own[label][0], price[i], rtol=1e-5, atol=1e-5)

    def test_draws_from_the_noise_alone(self, name: str) -> None:
        made, (h, state) = build(name), batch(name)
        z, before = made(h, state)[0], torch.get_rng_state()
        torch.manual_seed(9)
        assert made(h, state)[0].equal(z)
        assert made(h, state._replace(noise=-state.noise))[0].equal(z) == made.discrete
        torch.set_rng_state(before)

    def test_gradients_are_finite_and_reach_every_parameter(self, name: str) -> None:
        made, (h, state) = build(name).train(), batch(name)
        made.prior = None  # what it has itself
        h.requires_grad_()
        z, prices = made(h, state)
        sum((price.sum() for price in prices.values()), z.sin().sum()).backward()
        assert h.grad is not None and h.grad.isfinite().all() and (h.grad.abs().sum(dim=1) > 0).all()
        for label, parameter in made.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{label} is not used"

    def test_a_divergence_is_not_below_zero(self, name: str) -> None:
        h = batch(name)[0][:1].expand(4000, -1)
        noise = torch.randn(4000, D, generator=torch.Generator().manual_seed(3))
        price = build(name)(h, LatentState(noise))[1].get("kl")
        assert price is None or price.sum(dim=1).mean() > -0.05

    def test_the_first_samples_do_not_depend_on_how_many(self, name: str) -> None:
        made = build(name)
        assert made.sample(7, 3).shape == (7, D)
        torch.testing.assert_close(made.sample(7, 3)[:4], made.sample(4, 3))  # products of other sizes round otherwise
        assert not made.sample(7, 3).equal(made.sample(7, 4)) and len(made.sample(0, 3)) == 0

    def test_trains_and_is_stored_in_a_generator(self, name: str) -> None:
        small = {**ChemVAE.small, "epochs": 1, "threads": 1, "prior" if is_prior(name) else "posterior": name}
        fitted = ChemVAE(**small).fit(make_table(list(series(16).smiles)))
        assert ChemVAE.from_state(fitted.state()).sample(5, 1) == fitted.sample(5, 1)


def test_the_price_of_a_gaussian_is_its_divergence_and_that_of_points_on_average() -> None:
    """Against torch's distributions; a prior without a closed form asks as much, on average over the noise."""

    class OfPoints(Bottleneck):
        """The standard normal by its density alone."""

        def density(self, code: Tensor, state: LatentState) -> Any:
            return Independent(Normal(torch.zeros_like(code), 1.0), 1)

    made, (h, _) = build("gaussian"), batch("gaussian")
    h = h.repeat_interleave(5000, dim=0)
    state = LatentState(torch.randn(len(h), D, generator=torch.Generator().manual_seed(2)))
    exact, q = made(h, state)[1]["kl"], made.moments(h)
    own, normal = Normal(q.mean, (0.5 * q.log_variance).exp()), Normal(torch.zeros(D), 1.0)
    torch.testing.assert_close(exact, kl_divergence(own, normal))
    made.prior = OfPoints(D, D)
    of_points = made(h, state)[1]["kl"]
    assert of_points.shape == (len(h), 1)
    means = (each.sum(dim=1).reshape(N, 5000).mean(dim=1) for each in (of_points, exact))
    torch.testing.assert_close(*means, rtol=0, atol=0.1)


@pytest.mark.parametrize("names", [{"posterior": "acn"}, {"prior": "planar"}, {"posterior": "planar(n_maps=65)"}])
def test_parts_that_do_not_fit_are_refused(names: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        ChemVAE(**{**ChemVAE.small, **names}).fit(make_table(["CCO"]))


def test_older_names_are_settings_of_the_parts() -> None:
    made = ChemVAE(posterior="planar", n_maps=3, prior="acn", bank_size=20)
    assert (made.posterior, made.prior) == ("planar(n_maps=3)", "acn(bank_size=20)")
    assert not {"n_maps", "bank_size", "n_neighbours"} & {*made.get_params()}
    assert ChemVAE(n_maps=3, n_neighbours=2).posterior == "gaussian", "which has no maps"
    assert made.set_params(n_maps=4, prior="normal", n_neighbours=2).posterior == "planar(n_maps=3)"
    assert ChemVAE(posterior="radial").set_params(n_maps=4).posterior == "radial(n_maps=4)"
