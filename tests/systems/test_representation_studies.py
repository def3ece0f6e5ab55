"""Studies of vectors: the information that they hold about a label, and the factors that differ between classes."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.optimize import linear_sum_assignment

from molgraph.auxiliary.study.factors import bent_toy
from molgraph.auxiliary.study.leak import donsker_varadhan, mine
from molgraph.embed.factors import fit_factors
from molgraph.nn.incompressible_flow import IncompressibleFlow
from tests.systems.effect import Effect


def gaussians(rho: float, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((n, 1))
    return x, rho * x + math.sqrt(1 - rho**2) * rng.standard_normal((n, 1))


@pytest.mark.system("mine", rung="exact")
@pytest.mark.parametrize("rho", [0.5, 0.9])
def test_the_bound_of_the_true_ratio_is_the_mutual_information(off: str, rho: float) -> None:
    """By Gauss-Hermite quadrature, whose nodes and weights stand as repeated samples; off: half of the ratio."""
    nodes, weights = (torch.from_numpy(each) for each in np.polynomial.hermite_e.hermegauss(80))
    weights = weights / weights.sum()
    z1, z2 = nodes[:, None].expand(80, 80), nodes[None].expand(80, 80)
    joint = weights[:, None] * weights

    def log_ratio(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        quadratic = (rho**2 * (x**2 + y**2) - 2 * rho * x * y) / (2 * (1 - rho**2))
        return (-0.5 * math.log(1 - rho**2) - quadratic) * (0.5 if off else 1) + 3.0

    t_joint = log_ratio(z1, rho * z1 + math.sqrt(1 - rho**2) * z2)
    # means with weights: T of the joint as its one mean, and exp T of the product with its log weights added
    mean = (joint * t_joint).sum()
    log_mean = (log_ratio(z1, z2) + joint.log()).logsumexp((0, 1))
    wanted = -0.5 * math.log(1 - rho**2)
    assert abs(float(mean - log_mean) - wanted) < 1e-3
    repeated = (log_ratio(z1, z2) + joint.log() + math.log(6400)).flatten()
    assert abs(float(donsker_varadhan(mean[None], repeated)) - wanted) < 1e-3


@pytest.mark.system("mine", rung="works")
@pytest.mark.parametrize(("rho", "within"), [(0.5, 0.05), (0.9, 0.1)])
def test_the_information_of_correlated_gaussians_is_estimated(
    off: str, effect: Effect, rho: float, within: float
) -> None:
    """5,000 pairs, in nats; off: the pairs are shuffled."""
    true, values, shuffled = -0.5 * math.log(1 - rho**2), [], []
    for seed in (0, 1, 2):
        x, y = gaussians(rho, 5000, seed)
        apart = np.random.default_rng(seed + 10).permutation(y)
        shuffled.append(mine(x, apart, steps=500, seed=seed).nats)
        values.append(shuffled[-1] if off else mine(x, y, seed=seed).nats)
    assert max(shuffled) <= 0.02, shuffled
    errors = [abs(each - true) for each in values]
    beside = {"estimate": values, "truth": [true], "shuffled": shuffled}
    effect("error of the estimate in nats", errors, at_most=within, beside=beside)


@pytest.mark.system("gin-flow", rung="exact")
@pytest.mark.parametrize("d", [3, 10])
def test_the_flow_keeps_the_volume_and_can_be_inverted(off: str, d: int) -> None:
    """The Jacobian by autograd, with weights drawn at random; off: scales that do not sum to zero."""
    torch.manual_seed(0)
    flow = IncompressibleFlow(d, 3, 16, incompressible=not off).double()
    for weights in flow.parameters():
        torch.nn.init.normal_(weights, std=0.3)
    x = torch.randn(5, d, dtype=torch.float64)
    z, volume = flow(x)
    torch.testing.assert_close(flow.inverse(z), x, rtol=0, atol=1e-5)
    for row, said in zip(x, volume, strict=True):
        jacobian = torch.autograd.functional.jacobian(lambda t: flow(t[None])[0][0], row)
        log = torch.linalg.slogdet(jacobian).logabsdet
        torch.testing.assert_close(log, said, rtol=0, atol=1e-8)
        assert abs(float(log)) < 1e-5
    assert float((z - x).detach().abs().max()) > 0.1, "it is not the identity"


@pytest.mark.system("gin-flow", rung="works")
def test_two_bent_factors_stand_out_of_ten_dimensions(off: str, effect: Effect) -> None:
    """The true factors are recovered up to their order, sign and scale; off: RealNVP with Gaussians of deviation 1.

    RealNVP whose Gaussians have the deviations of their classes is printed beside: its factors stand out as far, so
    that the constant volume alone is not what does it, but the deviations of classes together with it.
    """
    ratios, likeness, free, linear, third = [], [], [], [], []
    for seed in (10, 11, 12):  # 0 to 4 were those by which settings were chosen
        x, true, of = bent_toy(4000, 10, seed)
        factors = fit_factors(x, of, steps=800, seed=seed, incompressible=not off)
        ratios.append(float(factors.sd[1] / factors.sd[2]))
        likeness.append(matched(factors.z[:, :2], true))
        u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
        linear.append(matched(u[:, :2], true))
        third.append(float(s[1] / s[2]))
    if not off:
        other = fit_factors(x, of, steps=800, seed=12, incompressible=False, unit=False)
        free.append(float(other.sd[1] / other.sd[2]))
    beside = {"principal components": third, "RealNVP with deviations of classes": free or [0.0],
              "correlation with the true factors": likeness, "principal components'": linear}  # fmt: skip
    effect("smallest deviation of the second factor over the third's", [min(ratios)], at_least=5, beside=beside)
    assert min(likeness) > 0.9, likeness


def matched(a: np.ndarray, b: np.ndarray) -> float:
    """The mean absolute correlation of columns in their best order."""
    table = np.abs(np.corrcoef(a.T, b.T)[: a.shape[1], a.shape[1] :])
    return float(table[linear_sum_assignment(-table)].mean())
