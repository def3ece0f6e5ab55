"""Attention readouts, from atom states to a graph state: gated sum, Set2Set, self-attention, AttentiveFP."""

from __future__ import annotations

from typing import Annotated, TypeAlias

import torch
from torch import nn
from torch.nn import functional as F

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.nn.attention import AdditiveAttention, ChangeWeights
from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Pairs, Sources, segment_sum, segment_weights

Steps: TypeAlias = Annotated[int, Range(1, 100)]


class AttentionReadout(Readout):
    """A readout that weighs the rows of each graph by softmaxes.

    ``change``: what each of its weights, float [pairs, heads], are replaced by, for an audit; None for nothing.
    """

    change: ChangeWeights | None = None

    def weights(self, scores: Pairs, relation: Relation) -> Pairs:
        """The softmax of float [pairs, heads] over the rows of each graph."""
        weights = segment_weights(scores, relation)
        return weights if self.change is None else self.change(weights)


@register(
    "readout",
    "gated",
    summary="sum over the rows, each channel weighted by a learned gate",
    paper="Li et al. 2016, ICLR; Gilmer et al. 2017, ICML",
)
class Gated(Readout):
    """``sum_v sigmoid(i(h_v)) * j(h_v)``, Li et al. 2016, equation 7, as Gilmer et al. 2017, equation 4, have it.

    ``i`` and ``j`` are linear layers of the last states. The papers give ``i`` the rows' first states too, as ``mpnn``
    does with this readout.

    Args:
        d_in: width of the rows.
    """

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in)
        self.gate, self.value = nn.Linear(d_in, d_in), nn.Linear(d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return propagate(self.gate(h).sigmoid() * self.value(h), relation)


@register(
    "readout",
    "set2set",
    system="set2set",
    summary="attention over the rows by the state of an LSTM, several times",
    paper="Vinyals, Bengio & Kudlur 2016, ICLR",
)
class Set2Set(AttentionReadout):
    """Attention of an LSTM's query over the rows of each graph.

    Vinyals et al. 2016, equations 3 to 7: ``q_t = LSTM(q*_(t-1))``, ``a_i = softmax_i(h_i . q_t)``,
    ``r_t = sum_i a_i h_i``, ``q*_t = [q_t, r_t]``; the output is the last ``q*``.

    Args:
        d_in: width of the rows; the output is twice as wide.
        steps: number of questions.
    """

    def __init__(self, d_in: int, steps: Steps = 3) -> None:
        super().__init__(d_in)
        self.steps, self.d_out = steps, 2 * d_in
        self.lstm = nn.LSTMCell(2 * d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, 2 d]."""
        rows, graph_of = h.index_select(0, relation.source), relation.target
        out = rows.new_zeros(relation.n_target, self.d_out)
        q = cell = rows.new_zeros(relation.n_target, h.shape[1])
        for _ in range(self.steps):
            q, cell = self.lstm(out, (q, cell))
            weights = self.weights((rows * q.index_select(0, graph_of)).sum(1, keepdim=True), relation)
            out = torch.cat([q, segment_sum(weights * rows, relation)], dim=1)
        return out


@register(
    "readout",
    "attentive",
    summary="attention over the rows by the state of a GRU, several times",
    paper="Xiong et al. 2020, J. Med. Chem. 63:8749",
)
class Attentive(AttentionReadout):
    """The molecule's state as a node that attends to its atoms.

    Xiong et al. 2020, "Molecule embedding": ``s = ReLU(sum_v h_v)``, then ``steps`` times
    ``s <- ReLU(GRU(elu(sum_v a_v W h_v + b), s))`` with the additive attention ``a``.

    Args:
        d_in: width of the rows.
        steps: rounds of attention.
    """

    def __init__(self, d_in: int, steps: Steps = 2) -> None:
        super().__init__(d_in)
        self.steps = steps
        self.attention, self.cell = AdditiveAttention(d_in, d_in), nn.GRUCell(d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        state = propagate(h, relation).relu()
        for _ in range(self.steps):
            state = self.cell(F.elu(self.attention(h, state, relation, self.change)), state).relu()
        return state


@register(
    "readout",
    "self_attentive",
    summary="several attention-weighted sums of the rows, side by side",
    paper="Lin et al. 2017, ICLR",
)
class SelfAttentive(AttentionReadout):
    """Structured self-attention of several heads over the rows of each graph.

    Lin et al. 2017, equations 6 to 8: ``A = softmax(W_2 tanh(W_1 H^T))`` over the rows, the output is ``A H``, its
    ``heads`` rows side by side. The penalty ``attention`` is the mean over graphs of ``||A A^T - I||^2``, least where
    each head looks at one row of its own; the objective's ``penalties={"attention": 0.1}`` weighs it, by 1 otherwise.

    Args:
        d_in: width of the rows; the output is ``heads`` times as wide.
        heads: ways to weigh the rows.
        d_hidden: width of the hidden layer of the scores.
    """

    def __init__(self, d_in: int, heads: Width = 4, d_hidden: Width = 128) -> None:
        super().__init__(d_in)
        self.d_out = heads * d_in
        self.w_1, self.w_2 = nn.Linear(d_in, d_hidden, bias=False), nn.Linear(d_hidden, heads, bias=False)

    def read(self, h: Sources, relation: Relation) -> tuple[GraphStates, Penalties]:
        """float [r, d] to [g, heads d], and the penalty."""
        scores = self.w_2(self.w_1(h).tanh()).index_select(0, relation.source)
        a = self.weights(scores, relation)
        out = segment_sum(a.unsqueeze(2) * h.index_select(0, relation.source).unsqueeze(1), relation)
        gram = segment_sum(a.unsqueeze(2) * a.unsqueeze(1), relation)
        apart = (gram - torch.eye(a.shape[1], dtype=a.dtype, device=a.device)).square().sum((1, 2))
        some = relation.offsets.diff() > 0  # a graph without rows has no attention
        return out.flatten(1), {"attention": (apart * some).sum() / some.sum().clamp(min=1)}
