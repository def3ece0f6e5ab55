"""NICE: inverse, volume and density of additive coupling layers, and how near they come to bent densities."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor, nn
from torch.distributions import MultivariateNormal

from molgraph.nn.bottleneck import LatentState, make_bottleneck
from molgraph.nn.bottlenecks.coupling import Coupling
from tests.systems.effect import Effect
from tests.systems.test_generative import fitted_kl
from tests.systems.test_generative_exact import close, numbers


def bent(d: int, seed: int) -> Coupling:
    """Coupling layers with large weights, in float64."""
    torch.manual_seed(seed)
    flow = make_bottleneck("coupling(n_maps=3)", d, d).double()
    for weight in flow.maps.parameters():
        nn.init.normal_(weight, std=0.5)
    nn.init.normal_(flow.log_scale, std=0.5)
    assert isinstance(flow, Coupling)
    return flow


@pytest.mark.system("nice", rung="exact")
def test_points_come_back_and_the_layers_keep_volumes(off: str) -> None:
    """Dinh et al. 2014, section 3.2; without the last scaling, by torch's Jacobian."""
    for d in (1, 2, 7):
        flow, z = bent(d, d), numbers(5, d, seed=d)
        with torch.no_grad():
            moved = flow.bend(z)
            close(flow.bend(moved.z).z if off else flow.inverse(moved.z), z, 1e-6)
        for log_det in (moved.log_det, torch.zeros_like(moved.log_det)):
            for i in range(5):
                jacobian = torch.autograd.functional.jacobian(lambda row, flow=flow: flow.bend(row[None]).z[0], z[i])
                sign, value = torch.linalg.slogdet(jacobian)
                assert sign == 1
                close(value, log_det[i], 1e-6)
            nn.init.zeros_(flow.log_scale)  # the layers alone, of the second turn


@pytest.mark.system("nice", rung="exact")
def test_the_density_is_that_of_the_change_of_variables(off: str) -> None:
    """``log p(z) = log p_H(f^-1(z)) + log |det df^-1/dz|`` by autograd, and the price of a drawn point by it."""
    flow, h = bent(4, 0), numbers(6, 4, seed=1)
    state = LatentState(numbers(6, 4, seed=2))
    with torch.no_grad():
        z, prices = flow(h, state)
        q = flow.posterior(h)
    for i in range(6):
        inverse = torch.autograd.functional.jacobian(lambda row: flow.inverse(row[None])[0], z[i])
        base = MultivariateNormal(q.mean[i], torch.diag(q.log_variance[i].exp()))
        expected = base.log_prob(flow.inverse(z[[i]])[0]) + torch.linalg.slogdet(inverse).logabsdet
        own = q.log_prob(z)[i] if off else flow.log_prob(h[[i]], z[[i]])[0]
        close(own.detach(), expected.detach(), 1e-5)
        standard = MultivariateNormal(torch.zeros(4, dtype=torch.float64), torch.eye(4, dtype=torch.float64))
        close(prices["kl"][i, 0], (expected - standard.log_prob(z[i])).detach(), 1e-5)


def sheared(n: int, seed: int) -> tuple[Tensor, Tensor]:
    """``y = (x_1, x_2 + x_1^2)`` with independent normal x of variances 1 and 0.09, and ``log p(y)``."""
    noise = numbers(n, 2, seed=seed).float()
    y = torch.stack([noise[:, 0], 0.3 * noise[:, 1] + noise[:, 0].square()], dim=1)
    return y, -0.5 * noise.square().sum(dim=1) - math.log(2 * math.pi) - math.log(0.3)


def gap(n_maps: int, seed: int) -> float:
    """Nats of fresh points above their true density, after maximum likelihood on others."""
    torch.manual_seed(seed)
    flow = make_bottleneck(f"coupling(n_maps={n_maps})", 2, 2)
    assert isinstance(flow, Coupling)
    optimizer = torch.optim.Adam(flow.parameters(), lr=0.01)
    for step in range(600):
        y, _ = sheared(256, 1000 * seed + step)
        optimizer.zero_grad()
        (-flow.log_prob(torch.ones_like(y), y).mean()).backward()
        optimizer.step()
    y, true = sheared(20_000, 10**6 + seed)
    with torch.no_grad():
        return float((true - flow.log_prob(torch.ones_like(y), y)).mean())


@pytest.mark.system("nice", rung="works")
def test_by_maximum_likelihood_it_learns_a_sheared_density(off: str, effect: Effect) -> None:
    plain = [gap(0, seed) for seed in range(3)]
    values = plain if off else [gap(2, seed) for seed in range(3)]
    effect("nats above the true density of sheared points", values, at_most=0.05, beside={"Gaussian": plain})


@pytest.mark.system("nice", rung="works")
def test_a_posterior_that_it_bends_comes_closer_to_a_ridge(off: str, effect: Effect) -> None:
    """The target U2 of Rezende and Mohamed 2015, for which planar maps stand beside it."""
    plain = [fitted_kl("coupling", 0, seed) for seed in range(3)]
    values = plain if off else [fitted_kl("coupling", 2, seed) for seed in range(3)]
    gains = [a - b for a, b in zip(plain, values, strict=True)]
    planar = [a - fitted_kl("planar", 8, seed) for seed, a in enumerate(plain)]
    effect("nats that coupling layers gain on U2", gains, at_least=0.1, beside={"eight planar maps": planar})
