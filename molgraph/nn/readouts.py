"""Readouts from the states of a graph's rows to one state a graph: the base class, sums, means and maxima."""

from __future__ import annotations

from abc import abstractmethod
from typing import Annotated, Any, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, divide

GraphStates: TypeAlias = Float[Tensor, "{relation.n_target} {self.d_out}"]  # a state for each target of ``relation``


class Readout(nn.Module):
    """The base class of every readout: ``(rows [r, d], relation from rows to graphs) -> ([g, d_out], penalties)``.

    The relation has one pair for each atom, so a row that stands for several equal atoms of a graph is counted
    as often as they are. A graph without rows gives a finite state. Sums over whole molecules are too coarse in
    bfloat16, so a readout works in single precision at least, whatever the rows come in. A subclass writes ``read``.
    Penalties are scalars to add to the objective, by name; an encoder passes them on in its ``Encoded``.
    """

    def __init__(self, d_in: int) -> None:
        super().__init__()
        self.d_out = d_in

    def forward(self, h: Sources, relation: Relation) -> tuple[GraphStates, Penalties]:
        """float [r, d] to float32 (or float64) [g, d_out], and the penalties, where there are any."""
        with torch.autocast(h.device.type, enabled=False):
            output = self.read(h.to(torch.promote_types(h.dtype, torch.float32)), relation)
        return output if isinstance(output, tuple) else (output, {})

    @abstractmethod
    def read(self, h: Sources, relation: Relation) -> GraphStates | tuple[GraphStates, Penalties]:
        """The readout itself: the states, or the states and the penalties."""


@register("readout", "sum", summary="sum over the rows")
class Sum(Readout):
    """``sum_v h_v``."""

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return propagate(h, relation)


@register("readout", "mean", summary="mean over the rows")
class Mean(Readout):
    """``sum_v h_v / n``."""

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return divide(propagate(h, relation), relation)


@register("readout", "max", summary="maximum over the rows")
class Max(Readout):
    """``max_v h_v`` in each channel; zeros for a graph without rows."""

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return propagate(h, relation, reduce="max")


@register("readout", "sum_max", summary="tanh of the sum and of the maximum", paper="DeepChem, GraphGather")
class SumMax(Readout):
    """``tanh([sum_v h_v, max_v h_v])``."""

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in)
        self.d_out = 2 * d_in

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, 2 d]."""
        return torch.cat([propagate(h, relation), propagate(h, relation, reduce="max")], dim=1).tanh()


@register("readout", "norm", summary="sum over the rows divided by a constant", paper="chemprop 2, NormAggregation")
class NormReadout(Readout):
    """``sum_v h_v / norm``, which keeps the size of a molecule in sight.

    Args:
        d_in: width of the rows.
        norm: what the sum is divided by.
    """

    def __init__(self, d_in: int, norm: Annotated[float, Range(0, above=True)] = 100.0) -> None:
        super().__init__(d_in)
        self.norm = norm

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return propagate(h, relation) / self.norm


@register("readout", "concat", summary="several readouts side by side", paper="Corso et al. 2020, NeurIPS")
class Concat(Readout):
    """The states of several readouts side by side, as aggregators are in Corso et al. 2020, section 2.

    Args:
        d_in: width of the rows.
        parts: registered readouts, joined by ``+``.
    """

    def __init__(self, d_in: int, parts: str = "mean+max") -> None:
        super().__init__(d_in)
        self.readouts = nn.ModuleList(make_part("readout", part, d_in) for part in parts.split("+"))
        widths: list[Any] = [readout.d_out for readout in self.readouts]
        self.d_out = sum(widths)

    def read(self, h: Sources, relation: Relation) -> tuple[GraphStates, Penalties]:
        """float [r, d] to [g, the sum of the readouts' widths]; of penalties with one name, the mean."""
        outputs = [readout(h, relation) for readout in self.readouts]
        names = dict.fromkeys(name for _, penalties in outputs for name in penalties)
        shared = {name: torch.stack([losses[name] for _, losses in outputs if name in losses]).mean() for name in names}
        return torch.cat([graphs for graphs, _ in outputs], dim=1), shared
