"""Trials that every registered joiner meets."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from molgraph.base.registry import entry, names
from molgraph.nn.encoder import Encoded, Rows
from molgraph.nn.joiners import Joiner, JoinPart

WIDTHS, EQUAL, ROW_WIDTHS = (5, 7), (5, 5), (3, 4)  # of the parts; where one encoder is shared they are equal
OF_ROW = (torch.tensor([0, 0, 1, 2, 1]), torch.tensor([1, 0, 1, 1, 2]))  # the entities of five rows
GRAPH_OF = (torch.tensor([0, 0, 1, 2, 2, 2]), torch.tensor([0, 1, 1, 1]))  # entity 2 of the second part has no rows


def widths_of(name: str) -> tuple[int, int]:
    return EQUAL if entry("joiner", name).value.shared else WIDTHS


def build(name: str) -> Joiner:
    torch.manual_seed(0)
    make, widths = entry("joiner", name).value, widths_of(name)
    return make(widths, row_widths=ROW_WIDTHS) if make.needs_rows else make(widths)


def parts(name: str = "concat", leaves: bool = False) -> tuple[JoinPart, ...]:
    """Two entity columns of three distinct entities each."""
    made, draw = [], torch.Generator().manual_seed(0)
    for width, row_width, of_row, graph_of in zip(widths_of(name), ROW_WIDTHS, OF_ROW, GRAPH_OF, strict=True):
        states = torch.randn(3, width, generator=draw).requires_grad_(leaves)
        h = torch.randn(len(graph_of), row_width, generator=draw).requires_grad_(leaves)
        made.append(JoinPart(Encoded(states, (Rows("atom", h, graph_of),)), of_row))
    return tuple(made)


def of_rows(given: tuple[JoinPart, ...], which: Tensor) -> tuple[JoinPart, ...]:
    """The parts of some rows of the batch."""
    return tuple(JoinPart(part.encoded, part.of_row[which]) for part in given)  # type: ignore[index]


@pytest.mark.parametrize("name", names("joiner"))
class TestEveryJoiner:
    def test_says_what_it_is(self, name: str) -> None:
        found = entry("joiner", name)
        assert issubclass(found.value, Joiner) and found.summary and found.value.__doc__

    def test_gives_a_state_a_row(self, name: str) -> None:
        joiner = build(name)
        out = joiner(parts(name))
        assert out.shape == (5, joiner.d_out) and out.isfinite().all()
        assert torch.pdist(out).min() > 0, "five different pairs"

    def test_rows_do_not_see_each_other(self, name: str) -> None:
        joiner = build(name).eval()
        together = joiner(parts(name))
        for i in range(5):
            alone = joiner(of_rows(parts(name), torch.tensor([i])))
            torch.testing.assert_close(alone[0], together[i], rtol=0, atol=1e-5)

    def test_each_part_matters(self, name: str) -> None:
        out = build(name)(parts(name))
        assert not torch.allclose(out[2], out[4])  # one drug, two proteins
        assert not torch.allclose(out[0], out[2], atol=1e-6)  # two drugs, one protein

    def test_gradients_are_finite_and_reach_every_parameter(self, name: str) -> None:
        joiner, given = build(name), parts(name, leaves=True)
        joiner(given).sin().sum().backward()
        for part in given:
            states = part.encoded.graphs
            assert states.grad is not None and states.grad.isfinite().all() and states.grad.abs().sum() > 0
        for label, parameter in joiner.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), f"{label} is not used"

    def test_a_batch_of_no_rows(self, name: str) -> None:
        assert build(name)(of_rows(parts(name), torch.zeros(0, dtype=torch.long))).shape[0] == 0
