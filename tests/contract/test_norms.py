"""Trials that every registered norm meets."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from molgraph.base.registry import entry, names
from molgraph.nn.norms import Norm
from molgraph.nn.relation import Relation

D = 6
GRAPH_OF = torch.tensor([0, 0, 0, 2, 2, 3])  # graph 1 has no rows, graph 3 has one


def build(name: str) -> Norm:
    torch.manual_seed(0)
    return entry("norm", name).value(D)


def rows(n: int = len(GRAPH_OF)) -> Tensor:
    return 3 + 2 * torch.randn(n, D, generator=torch.Generator().manual_seed(1))


def members(graph_of: Tensor = GRAPH_OF, n_graphs: int = 4) -> Relation:
    return Relation.from_pairs(torch.arange(len(graph_of)), graph_of, len(graph_of), n_graphs)


@pytest.mark.parametrize("name", names("norm"))
class TestEveryNorm:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("norm", name)
        assert issubclass(found.value, Norm) and found.summary and found.value.__doc__

    @pytest.mark.parametrize("training", [True, False])
    @pytest.mark.parametrize("n", [6, 1, 0])
    def test_gives_rows_of_the_same_shape(self, name: str, n: int, training: bool) -> None:
        out = build(name).train(training)(rows(n), members(GRAPH_OF[:n]))
        assert out.shape == (n, D) and out.isfinite().all() and out.dtype == torch.float32

    @pytest.mark.parametrize("training", [True, False])
    def test_the_order_of_rows_within_a_graph_changes_nothing(self, name: str, training: bool) -> None:
        order = torch.tensor([2, 0, 1, 4, 3, 5])
        plain = build(name).train(training)(rows(), members())
        again = build(name).train(training)(rows()[order], members())
        torch.testing.assert_close(again, plain[order], rtol=0, atol=1e-5)

    def test_a_graph_does_not_see_its_neighbours_in_prediction(self, name: str) -> None:
        norm = build(name)
        norm(rows(), members())  # statistics of training
        together = norm.eval()(rows(), members())
        alone = norm(rows()[3:5], members(torch.tensor([0, 0]), 1))
        torch.testing.assert_close(alone, together[3:5], rtol=0, atol=1e-5)

    def test_rows_that_are_all_alike_are_finite(self, name: str) -> None:
        h = torch.ones(6, D, requires_grad=True)
        out = build(name).train()(h, members())
        out.sum().backward()
        assert out.isfinite().all() and h.grad is not None and h.grad.isfinite().all()

    def test_gradients_are_finite_and_reach_every_parameter(self, name: str) -> None:
        norm, h = build(name).train(), rows().requires_grad_()
        norm(h, members()).sin().sum().backward()
        assert h.grad is not None and h.grad.isfinite().all() and h.grad.abs().sum() > 0
        for label, parameter in norm.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{label} is not used"

    def test_computes_in_float64(self, name: str) -> None:
        wide = build(name).double()(rows().double(), members())
        assert wide.dtype == torch.float64
        torch.testing.assert_close(wide.float(), build(name)(rows(), members()), rtol=1e-4, atol=1e-5)
