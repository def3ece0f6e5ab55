"""Trials that every registered readout meets."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from molgraph.base.registry import entry, names
from molgraph.nn.readouts import Readout
from molgraph.nn.relation import Relation

D = 6
GRAPH_OF = torch.tensor([0, 0, 0, 2, 2, 3])  # graph 1 has no rows, graph 3 has one
N = len(GRAPH_OF)


def build(name: str) -> Readout:
    torch.manual_seed(0)
    return entry("readout", name).value(D).eval()  # some draw at random in training


def rows(n: int = N) -> Tensor:
    return torch.randn(n, D, generator=torch.Generator().manual_seed(1))


def to_graphs(of_row: Tensor = GRAPH_OF, graph_of: Tensor = GRAPH_OF, n: int = N, n_graphs: int = 4) -> Relation:
    """Pair i goes from the row ``of_row[i]`` to the graph ``graph_of[i]``."""
    return Relation.from_pairs(of_row, graph_of, n, n_graphs)


EACH = to_graphs(torch.arange(N))


@pytest.mark.parametrize("name", names("readout"))
class TestEveryReadout:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("readout", name)
        assert issubclass(found.value, Readout) and found.summary and found.value.__doc__

    def test_gives_a_state_a_graph(self, name: str) -> None:
        readout = build(name)
        out, penalties = readout(rows(), EACH)
        assert out.shape == (4, readout.d_out) and out.isfinite().all()
        assert all(value.shape == () and value.isfinite() for value in penalties.values())
        assert out[[0, 2, 3]].abs().sum(1).min() > 0

    def test_the_order_of_rows_changes_nothing(self, name: str) -> None:
        readout, order = build(name), torch.tensor([4, 2, 0, 5, 1, 3])
        again = readout(rows()[order], to_graphs(torch.arange(N), GRAPH_OF[order]))
        torch.testing.assert_close(again, readout(rows(), EACH), rtol=0, atol=1e-5)

    def test_a_graph_does_not_see_its_neighbours(self, name: str) -> None:
        readout = build(name)
        alone, _ = readout(rows()[3:5], to_graphs(torch.arange(2), torch.tensor([0, 0]), 2, 1))
        torch.testing.assert_close(alone[0], readout(rows(), EACH)[0][2], rtol=0, atol=1e-5)

    def test_a_row_that_stands_for_two_counts_twice(self, name: str) -> None:
        """So it is where rows that look alike are computed once."""
        readout, h = build(name).double(), rows(3).double()
        of_row, graph_of = torch.tensor([0, 1, 1, 2]), torch.tensor([0, 0, 0, 1])
        written_out = readout(h[of_row], to_graphs(torch.arange(4), graph_of, 4, 2))
        torch.testing.assert_close(readout(h, to_graphs(of_row, graph_of, 3, 2)), written_out)

    def test_bfloat16_rows_are_read_in_single_precision(self, name: str) -> None:
        h, readout = rows().bfloat16(), build(name)
        with torch.autocast("cpu", torch.bfloat16):
            out = readout(h, EACH)
        assert out[0].dtype == torch.float32
        torch.testing.assert_close(out, readout(h.float(), EACH))

    def test_gradients_are_finite_and_reach_every_parameter(self, name: str) -> None:
        readout, h = build(name), rows().requires_grad_()
        out, penalties = readout(h, EACH)
        sum(penalties.values(), out.sin().sum()).backward()
        assert h.grad is not None and h.grad.isfinite().all() and h.grad.abs().sum() > 0
        for label, parameter in readout.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{label} is not used"

    def test_batches_without_rows(self, name: str) -> None:
        none = torch.zeros(0, dtype=torch.long)
        for n_graphs in (3, 0):
            out, penalties = build(name)(rows(0), to_graphs(none, none, 0, n_graphs))
            assert out.isfinite().all() and len(out) == n_graphs
            assert all(value.isfinite() for value in penalties.values())
