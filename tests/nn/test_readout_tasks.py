"""What set readouts can learn and cost, by the tasks of their papers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils.flop_counter import FlopCounterMode

from molgraph.base.registry import get
from molgraph.nn.relation import Relation
from molgraph.nn.set_readouts import Perceiver, SetTransmission


def sets(n: int, seed: int, least: int = 5, most: int = 40) -> tuple[Tensor, Relation, list[int]]:
    """Standard normal numbers, float [rows, 1], in sets of 5 to 40."""
    make = torch.Generator().manual_seed(seed)
    sizes = torch.randint(least, most + 1, (n,), generator=make)
    graph_of = torch.arange(n).repeat_interleave(sizes)
    x = torch.randn(len(graph_of), 1, generator=make)
    return x, Relation.from_pairs(torch.arange(len(x)), graph_of, len(x), n), sizes.tolist()


def learned(parts: list[nn.Module], answer: Callable[[Tensor, Relation], Tensor], aim: Callable[..., Tensor]) -> float:
    """The mean squared error on new sets after 400 steps, as a share of the targets' variance."""
    step = torch.optim.Adam([p for part in parts for p in part.parameters() if p.requires_grad], lr=0.01)
    for i in range(400):
        x, members, sizes = sets(64, i)
        step.zero_grad()
        F.mse_loss(answer(x, members), aim(x, sizes)).backward()
        step.step()
    x, members, sizes = sets(500, 10_000)
    y = aim(x, sizes)
    return float(F.mse_loss(answer(x, members).detach(), y) / y.var())


@pytest.mark.slow
def test_fspool_learns_the_range_of_a_set_where_sum_and_mean_do_not() -> None:
    """Zhang et al. 2019: half the error of a sum or a mean at most, with no more parameters in the rest."""

    def error(name: str) -> float:
        torch.manual_seed(0)
        readout = get("readout", name)(8)
        before, after = nn.Sequential(nn.Linear(1, 8), nn.ReLU(), nn.Linear(8, 8)), nn.Linear(readout.d_out, 1)
        aim = lambda x, sizes: torch.stack([part.max() - part.min() for part in x.split(sizes)]).unsqueeze(1)  # noqa: E731
        return learned([readout, before, after], lambda x, m: after(readout(before(x), m)[0]), aim)

    own = error("fspool")
    assert own < 0.5 * min(error("sum"), error("mean")), own


@pytest.mark.parametrize("hears", [True, False])
def test_a_transmission_lets_each_row_learn_the_sum_of_its_set(hears: bool) -> None:
    """Segol and Lipman 2020: without ``B`` no network of rows comes below nine tenths of the conditional variance."""
    torch.manual_seed(0)
    layer, out = SetTransmission(1, 8), nn.Sequential(nn.ReLU(), nn.Linear(8, 1))
    if not hears:
        layer.sent.weight.data.zero_()
        layer.sent.weight.requires_grad_(False)
    sums = lambda x, sizes: torch.cat([part.sum().expand(len(part), 1) for part in x.split(sizes)])  # noqa: E731
    error = learned([layer, out], lambda x, members: out(layer(x, members)), sums)
    x, _, sizes = sets(500, 10_000)
    y = sums(x, sizes)
    left = float((y - x).square().mean() / y.var())  # given its own number, a row knows its sum to that
    assert error < 1e-3 if hears else error >= 0.9 * left, (error, left)


def test_the_perceivers_work_grows_with_the_rows_and_full_attention_with_their_square() -> None:
    """Jaegle et al. 2021: counted in operations of 50 and of 800 rows."""

    def work(run: Callable[[Tensor], object], n: int) -> int:
        with FlopCounterMode(display=False) as counted:
            run(torch.randn(n, 8))
        return counted.get_total_flops()

    readout, full = Perceiver(8), nn.MultiheadAttention(8, 1)
    one = {n: Relation.from_pairs(torch.arange(n), torch.zeros(n, dtype=torch.long), n, 1) for n in (50, 800)}
    own = work(lambda x: readout(x, one[len(x)]), 800) / work(lambda x: readout(x, one[len(x)]), 50)
    assert 1 < own <= 16 < 40 < work(lambda x: full(x, x, x), 800) / work(lambda x: full(x, x, x), 50)
