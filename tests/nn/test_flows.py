"""Flows against autograd's Jacobian, as densities, and as posteriors of an energy that no Gaussian fits."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.nn.bottleneck import LatentState
from molgraph.nn.bottlenecks.associative import AssociativePrior
from molgraph.nn.bottlenecks.flows import FlowBottleneck
from molgraph.nn.variational import gaussian_kl, standard_normal


def make_flow(kind: str, d: int, n_maps: int) -> FlowBottleneck:
    return make_part("bottleneck", f"{kind}(n_maps={n_maps})", d, d)


def wild(kind: str, d: int, n_maps: int, seed: int) -> FlowBottleneck:
    """A flow with large weights of any sign, where invertibility would be lost without its constraint."""
    torch.manual_seed(seed)
    flow = make_flow(kind, d, n_maps).double()
    for weight in flow.parameters():
        nn.init.normal_(weight, std=1.5)
    return flow


@pytest.mark.parametrize("kind", ["planar", "radial"])
@pytest.mark.parametrize("d", [1, 2, 7])
def test_the_log_determinant_is_that_of_the_jacobian(kind: str, d: int) -> None:
    for seed in range(3):
        flow, z = wild(kind, d, 4, seed), torch.randn(5, d, dtype=torch.float64)
        moved = flow.bend(z)
        for i in range(5):
            jacobian = torch.autograd.functional.jacobian(lambda row, flow=flow: flow.bend(row[None]).z[0], z[i])
            sign, value = torch.linalg.slogdet(jacobian)
            assert sign == 1, "orientation is kept, so the map can be inverted"
            torch.testing.assert_close(moved.log_det[i], value, rtol=0, atol=1e-5)


@pytest.mark.parametrize("kind", ["planar", "radial"])
def test_the_density_after_a_flow_integrates_to_one(kind: str) -> None:
    """The points of a grid are moved; each cell then has the mass of the area that it was moved to."""
    torch.manual_seed(1)
    flow = make_flow(kind, 2, 3).double()
    for weight in flow.parameters():
        nn.init.normal_(weight, std=0.7)
    line = torch.linspace(-6, 6, 500, dtype=torch.float64)
    start = torch.cartesian_prod(line, line)
    with torch.no_grad():
        z, log_det = flow.bend(start)
        log_q = standard_normal(start).log_prob(start) - log_det
    corners = z.reshape(500, 500, 2)
    right, up = corners[1:, :-1] - corners[:-1, :-1], corners[:-1, 1:] - corners[:-1, :-1]
    area = (right[..., 0] * up[..., 1] - right[..., 1] * up[..., 0]).abs()
    mass = (log_q.exp().reshape(500, 500)[:-1, :-1] * area).sum()
    assert float(mass) == pytest.approx(1.0, abs=0.02)


def energy(z: Tensor) -> Tensor:
    """U2 of the paper: a sine-shaped ridge."""
    return 0.5 * ((z[:, 1] - torch.sin(torch.pi * z[:, 0] / 2)) / 0.4).square() + 0.05 * z[:, 0].square()


def fitted_kl(kind: str, n_maps: int) -> float:
    """``KL(q || p)`` up to the constant of p, after maximising the bound: with a learned Gaussian and K maps."""
    torch.manual_seed(0)
    flow = make_flow(kind, 2, n_maps)
    mean, log_s = nn.Parameter(torch.zeros(2)), nn.Parameter(torch.zeros(2))
    optimizer = torch.optim.Adam([*flow.parameters(), mean, log_s], lr=0.02)

    def loss(n: int) -> Tensor:
        noise = torch.randn(n, 2)
        z, log_det = flow.bend(mean + log_s.exp() * noise)
        return (standard_normal(noise).log_prob(noise) - log_s.sum() - log_det + energy(z)).mean()

    for _ in range(600):
        optimizer.zero_grad()
        loss(256).backward()
        optimizer.step()
    with torch.no_grad():
        return float(loss(50_000))


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["planar", "radial"])
def test_a_flow_comes_closer_to_a_bent_density_than_a_gaussian(kind: str) -> None:
    assert fitted_kl(kind, 8) < fitted_kl(kind, 0) - (0.1 if kind == "planar" else 0.03)


def test_the_bank_never_gives_a_row_itself_and_keeps_what_it_is_given() -> None:
    torch.manual_seed(0)
    prior = AssociativePrior(3, 3, n_rows=12, n_neighbours=4)
    codes = torch.randn(12, 3)
    codes[5] = codes[6]  # a duplicate may be a neighbour, the row itself not
    prior.refresh(codes, torch.arange(12))
    near = prior.nearest(codes, torch.arange(12))
    assert near.shape == (12, 4) and not (near == torch.arange(12)[:, None]).any()
    assert near[5, 0] == 6 and near[6, 0] == 5
    distance = torch.cdist(codes, codes).fill_diagonal_(torch.inf)
    expected = distance.sort(dim=1).values[:, :4]
    torch.testing.assert_close(distance.gather(1, near), expected, rtol=0, atol=1e-3)
    assert prior.nearest(codes[:1], torch.tensor([-1]))[0, 0] == 0, "a row that is not in the bank"
    prior.refresh(torch.full((2, 3), 9.0), torch.tensor([40, 3]))
    assert prior.bank[3].tolist() == [9.0] * 3 and torch.equal(prior.bank[4:], codes[4:])
    assert prior.density(codes, LatentState(codes, torch.arange(12))).mean.shape == (12, 3)


def test_a_bank_of_one_leaves_a_standard_normal_and_a_close_neighbour_costs_less() -> None:
    torch.manual_seed(0)
    alone = AssociativePrior(2, 2, n_rows=1)
    assert torch.equal(
        alone.density(torch.ones(1, 2), LatentState(torch.ones(1, 2), torch.tensor([0]))).mean, torch.zeros(1, 2)
    )
    prior = AssociativePrior(2, 2, n_rows=2)
    prior.refresh(torch.tensor([[3.0, 3.0], [3.1, 3.0]]), torch.arange(2))
    q = standard_normal(torch.zeros(1, 2))._replace(mean=torch.tensor([[3.0, 3.0]]))
    assert (
        gaussian_kl(q, prior.eval().density(q.mean, LatentState(q.mean, torch.tensor([0])))).sum()
        < gaussian_kl(q).sum()
    )
