"""Readouts that sort the states of atoms: SortPool and FSPool."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.ranges import Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.cluster_convolution import ClusterConvolution
from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, segment_sum


@register(
    "readout",
    "sort",
    summary="the first rows in the order of the last channel, through two convolutions",
    paper="Zhang et al. 2018, AAAI",
)
class Sort(ClusterConvolution):
    """SortPool and the convolutions of DGCNN.

    Zhang et al. 2018, "An End-to-End Deep Learning Architecture for Graph Classification": the ``k`` rows of a graph
    that come first by their last channel, largest first, ties broken by the channel before and so on, zeros where there
    are fewer; then ``ClusterConvolution``. The order is learned through the values alone.

    Args:
        d_in: width of the rows; the output is ``32 (k // 2 - 4)`` wide.
        k: rows that are kept, 10 or more; the paper's is such that 60% of the graphs have more.

    Raises:
        ValueError: a ``k`` below 10, which leaves nothing to convolve.
    """

    def __init__(self, d_in: int, k: Width = 30) -> None:
        super().__init__(d_in, k)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, 32 (k // 2 - 4)]."""
        return self.over(first_rows(h, relation, self.k))


def first_rows(h: Sources, relation: Relation, k: int) -> Float[Tensor, "{relation.n_target} {k} d"]:
    """The first ``k`` rows of each graph by their last channel, then by the one before: float [g, k, d], then zeros."""
    _, rank = torch.unique(h.detach().flip(1), dim=0, return_inverse=True)  # rows in lexicographic order
    rank = rank.index_select(0, relation.source)
    order = (relation.target * max(len(h), 1) - rank).argsort()
    place = places(relation)
    kept = place < k
    source, place = relation.source[order][kept], (relation.target * k + place)[kept]
    rows = h.index_select(0, source)  # the gradient of h[source] is not the same for each run
    return h.new_zeros(relation.n_target * k, h.shape[1]).index_copy(0, place, rows).unflatten(0, (-1, k))


def places(relation: Relation) -> Int[Tensor, " p"]:
    """The number of each pair among the pairs of its target, from 0."""
    first = relation.offsets[:-1].index_select(0, relation.target)
    return torch.arange(relation.n_pairs, device=first.device) - first


@register(
    "readout",
    "fspool",
    systems=(SystemCard("fspool", off="sum", beside=("sum", "mean")),),
    summary="each channel sorted by itself, a learned weight for each rank",
    paper="Zhang et al. 2020, ICLR",
)
class FSPool(Readout):
    """Featurewise sort pooling.

    Zhang, Hare and Prugel-Bennett 2020, "FSPool: Learning Set Representations with Featurewise Sort Pooling",
    equations 2 and 3: ``y_d = sum_i f_d(i / (n - 1)) x_d(i)``, where ``x_d(0) >= x_d(1) >= ...`` are the values of
    channel d in the n rows, and ``f_d`` is linear between its values at equal steps from 0 to 1, which are learned.
    The sum (all values 1) and the maximum of graphs of at most ``pieces + 1`` rows are among what it can be. Which
    values stood in one row is lost. Sorting every channel makes it the slowest readout of wide rows.

    Args:
        d_in: width of the rows.
        pieces: linear pieces of ``f``.
    """

    def __init__(self, d_in: int, pieces: Width = 20) -> None:
        super().__init__(d_in)
        self.pieces, self.knots = pieces, nn.Parameter(torch.randn(pieces + 1, d_in))

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        rows, graph_of = h.index_select(0, relation.source), relation.target
        down = rows.detach().t().contiguous().argsort(dim=1, descending=True)  # sorting contiguous channels is faster
        down = down.gather(1, graph_of[down].argsort(dim=1, stable=True)).t()
        last = (relation.offsets.diff() - 1).clamp(min=1).index_select(0, graph_of)
        at = (places(relation) * self.pieces).to(rows.dtype) / last
        knots = torch.arange(self.pieces + 1, device=at.device)
        near = (1 - (at.unsqueeze(1) - knots).abs()).relu()  # of the two knots beside each rank
        return segment_sum(rows.gather(0, down) * (near @ self.knots), relation)
