"""Readouts: the states of a graph's rows in, one state a graph out."""

from __future__ import annotations

from torch import Tensor, nn

from molgraph.base.registry import register
from molgraph.nn.passing import propagate
from molgraph.nn.relation import Relation


class Readout(nn.Module):
    """The base class of every readout: ``(rows [r, d], relation from rows to graphs) -> [g, d_out]``.

    The relation has one pair for each atom, so a row that stands for several equal atoms of a graph is counted
    as often as they are. A graph without rows gives zeros.
    """

    def __init__(self, d_in: int) -> None:
        super().__init__()
        self.d_out = d_in


@register("readout", "sum", summary="sum over the rows")
class Sum(Readout):
    """``sum_v h_v``."""

    def forward(self, h: Tensor, relation: Relation) -> Tensor:
        """float [r, d] to [g, d]."""
        return propagate(h, relation)


@register("readout", "mean", summary="mean over the rows")
class Mean(Readout):
    """``sum_v h_v / n``."""

    def forward(self, h: Tensor, relation: Relation) -> Tensor:
        """float [r, d] to [g, d]."""
        return propagate(h, relation) / relation.offsets.diff().clamp(min=1).to(h.dtype).unsqueeze(1)


@register("readout", "norm", summary="sum over the rows divided by a constant", paper="chemprop 2, NormAggregation")
class Norm(Readout):
    """``sum_v h_v / norm``, which keeps the size of a molecule in sight.

    Args:
        d_in: width of the rows.
        norm: what the sum is divided by.
    """

    def __init__(self, d_in: int, norm: float = 100.0) -> None:
        super().__init__(d_in)
        self.norm = norm

    def forward(self, h: Tensor, relation: Relation) -> Tensor:
        """float [r, d] to [g, d]."""
        return propagate(h, relation) / self.norm
