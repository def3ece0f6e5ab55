"""Readouts: from the states of a graph's rows to one state a graph."""

from __future__ import annotations

from abc import abstractmethod
from typing import TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.registry import register
from molgraph.nn.attention import AdditiveAttention
from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, divide, segment_sum, segment_weights

Graphs: TypeAlias = Float[Tensor, "{relation.n_target} {self.d_out}"]  # a state for each target of ``relation``


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

    def forward(self, h: Sources, relation: Relation) -> tuple[Graphs, Penalties]:
        """float [r, d] to float32 (or float64) [g, d_out], and the penalties, where there are any."""
        with torch.autocast(h.device.type, enabled=False):
            found = self.read(h.to(torch.promote_types(h.dtype, torch.float32)), relation)
        return found if isinstance(found, tuple) else (found, {})

    @abstractmethod
    def read(self, h: Sources, relation: Relation) -> Graphs | tuple[Graphs, Penalties]:
        """The readout itself: the states, or the states and the penalties."""


@register("readout", "sum", summary="sum over the rows")
class Sum(Readout):
    """``sum_v h_v``."""

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, d]."""
        return propagate(h, relation)


@register("readout", "mean", summary="mean over the rows")
class Mean(Readout):
    """``sum_v h_v / n``."""

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, d]."""
        return divide(propagate(h, relation), relation)


@register("readout", "max", summary="maximum over the rows")
class Max(Readout):
    """``max_v h_v`` in each channel; zeros for a graph without rows."""

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, d]."""
        return propagate(h, relation, reduce="max")


@register("readout", "sum_max", summary="tanh of the sum and of the maximum", paper="DeepChem, GraphGather")
class SumMax(Readout):
    """``tanh([sum_v h_v, max_v h_v])``."""

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in)
        self.d_out = 2 * d_in

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, 2 d]."""
        return torch.cat([propagate(h, relation), propagate(h, relation, reduce="max")], dim=1).tanh()


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

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, d]."""
        return propagate(h, relation) / self.norm


@register(
    "readout",
    "set2set",
    system="set2set",
    summary="an LSTM asks, softmax attention over the rows answers, several times",
    paper="Vinyals, Bengio & Kudlur 2016, ICLR",
)
class Set2Set(Readout):
    """Attention of an LSTM's query over the rows of each graph.

    Vinyals et al. 2016, equations 3 to 7: ``q_t = LSTM(q*_(t-1))``, ``a_i = softmax_i(h_i . q_t)``,
    ``r_t = sum_i a_i h_i``, ``q*_t = [q_t, r_t]``; the output is the last ``q*``.

    Args:
        d_in: width of the rows; the output is twice as wide.
        steps: number of questions.
    """

    def __init__(self, d_in: int, steps: int = 3) -> None:
        super().__init__(d_in)
        self.steps, self.d_out = steps, 2 * d_in
        self.lstm = nn.LSTMCell(2 * d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, 2 d]."""
        rows, graph_of = h.index_select(0, relation.source), relation.target
        out = rows.new_zeros(relation.n_target, self.d_out)
        q = cell = rows.new_zeros(relation.n_target, h.shape[1])
        for _ in range(self.steps):
            q, cell = self.lstm(out, (q, cell))
            weights = segment_weights((rows * q.index_select(0, graph_of)).sum(1, keepdim=True), relation)
            out = torch.cat([q, segment_sum(weights * rows, relation)], dim=1)
        return out


@register(
    "readout",
    "attentive",
    summary="a GRU over what the graph's state attends to, several times",
    paper="Xiong et al. 2020, J. Med. Chem. 63:8749",
)
class Attentive(Readout):
    """The molecule's state as a node that attends to its atoms.

    Xiong et al. 2020, "Molecule embedding": ``s = ReLU(sum_v h_v)``, then ``steps`` times
    ``s <- ReLU(GRU(elu(sum_v a_v W h_v + b), s))`` with the additive attention ``a``.

    Args:
        d_in: width of the rows.
        steps: how often it attends.
    """

    def __init__(self, d_in: int, steps: int = 2) -> None:
        super().__init__(d_in)
        self.steps = steps
        self.attention, self.cell = AdditiveAttention(d_in, d_in), nn.GRUCell(d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> Graphs:
        """float [r, d] to [g, d]."""
        state = propagate(h, relation).relu()
        for _ in range(self.steps):
            state = self.cell(F.elu(self.attention(h, state, relation)), state).relu()
        return state
