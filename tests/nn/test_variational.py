"""Posteriors and bounds against torch.distributions and a model whose evidence is known exactly."""

from __future__ import annotations

from itertools import pairwise

import pytest
import torch
from torch import Tensor
from torch.distributions import Independent, MultivariateNormal, Normal, kl_divergence

from molgraph.nn.variational import (
    Gaussian,
    active_units,
    bounded,
    elbo,
    gaussian_kl,
    iwae,
    reparameterise,
    standard_normal,
)

N, D_X, D_Z = 6, 5, 3


def numbers(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def test_kl_and_density_are_those_of_torch() -> None:
    q, p = (Gaussian(numbers(N, D_Z, seed=i), numbers(N, D_Z, seed=i + 1)) for i in (1, 3))
    peers = [Normal(each.mean, (0.5 * each.log_variance).exp()) for each in (q, p)]
    torch.testing.assert_close(gaussian_kl(q, p), kl_divergence(*peers), rtol=0, atol=1e-9)
    standard = Normal(torch.zeros_like(q.mean), 1.0)
    torch.testing.assert_close(gaussian_kl(q), kl_divergence(peers[0], standard), rtol=0, atol=1e-9)
    torch.testing.assert_close(gaussian_kl(q, standard_normal(q.mean)), gaussian_kl(q), rtol=0, atol=1e-12)
    single = Gaussian(*(each.float() for each in q))
    torch.testing.assert_close(gaussian_kl(single), gaussian_kl(q).float(), rtol=1e-6, atol=1e-6)
    z = numbers(N, D_Z, seed=9)
    torch.testing.assert_close(q.log_prob(z), Independent(peers[0], 1).log_prob(z), rtol=0, atol=1e-9)


def test_points_of_a_posterior_and_their_gradients() -> None:
    mean, log_variance = numbers(1, 2, seed=1).requires_grad_(), numbers(1, 2, seed=2).requires_grad_()
    many = reparameterise(mean.expand(40_000, 2), log_variance.expand(40_000, 2), generator=torch.Generator())
    torch.testing.assert_close(many.mean(dim=0), mean[0], rtol=0, atol=0.03)
    torch.testing.assert_close(many.var(dim=0).log(), log_variance[0], rtol=0, atol=0.03)
    noise = numbers(1, 2, seed=3)
    reparameterise(mean, log_variance, noise=noise).sum().backward()
    torch.testing.assert_close(mean.grad, torch.ones(1, 2, dtype=torch.float64))
    torch.testing.assert_close(log_variance.grad, 0.5 * (0.5 * log_variance).exp().detach() * noise)


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


def test_the_bound_is_the_evidence_at_the_exact_posterior_and_lower_by_the_divergence_elsewhere() -> None:
    model = Linear()
    exact = model.posterior
    torch.testing.assert_close(elbo(model.expected(exact), exact).elbo, model.evidence, rtol=0, atol=1e-6)
    for seed in range(3):
        q = Gaussian(exact.mean + numbers(N, D_Z, seed=seed), numbers(N, D_Z, seed=seed + 10))
        gap = model.evidence - elbo(model.expected(q), q).elbo
        torch.testing.assert_close(gap, gaussian_kl(q, exact).sum(dim=1), rtol=0, atol=1e-6)
        assert (gap > 0).all()


@pytest.mark.slow
def test_more_points_make_the_importance_weighted_bound_tighter() -> None:
    model = Linear()
    exact = model.posterior
    torch.testing.assert_close(iwae(model.log_joint, exact, 3), model.evidence, rtol=0, atol=1e-6)
    q = Gaussian(exact.mean + 0.5, exact.log_variance + 0.7)
    rng = torch.Generator().manual_seed(0)
    means = [torch.stack([iwae(model.log_joint, q, k, rng) for _ in range(400)]).mean(dim=0) for k in (1, 2, 8, 32)]
    for looser, tighter in pairwise(means):
        assert (looser < tighter).all()
    torch.testing.assert_close(means[0], elbo(model.expected(q), q).elbo, rtol=0, atol=0.3)
    assert (means[-1] < model.evidence + 0.02).all() and (means[-1] > model.evidence - 0.2).all()
    with pytest.raises(ValueError, match="k=0"):
        iwae(model.log_joint, q, 0)


def test_free_bits_leave_a_dimension_alone_that_uses_few() -> None:
    mean = torch.tensor([[0.1, 2.0], [0.1, 1.0]], requires_grad=True)
    found = elbo(torch.zeros(2), Gaussian(mean, torch.zeros(2, 2)), beta=0.5, free_bits=0.25)
    assert found.elbo.tolist() == pytest.approx([-0.5 * (0.25 + 2.0), -0.5 * (0.25 + 0.5)])
    found.elbo.sum().backward()
    assert mean.grad is not None
    assert mean.grad[:, 0].tolist() == [0, 0] and mean.grad[:, 1].tolist() == pytest.approx([-1.0, -0.5])
    assert found.kl[:, 0].tolist() == pytest.approx([0.005, 0.005]), "reported as it is"


def test_active_units_and_extreme_variances() -> None:
    mean = torch.stack([torch.linspace(-1, 1, 50), torch.full((50,), 3.0), 0.05 * torch.linspace(-1, 1, 50)], dim=1)
    assert active_units(mean).tolist() == [True, False, False]
    wild = Gaussian(torch.zeros(1, 2), bounded(torch.tensor([[1e9, -1e9]])))
    assert gaussian_kl(wild).isfinite().all() and wild.draw(torch.ones(1, 2)).isfinite().all()
