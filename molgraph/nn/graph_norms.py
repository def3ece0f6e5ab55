"""Normalisation by statistics over the rows of each graph: GraphNorm, group norm over a graph, PairNorm."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.norms import Norm, check_groups
from molgraph.nn.relation import Relation
from molgraph.nn.segment import segment_mean


def mean_of(h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
    """The mean of each row's graph, summed in double precision: where all rows are alike it is them to the last bit.

    The rounding of a float32 mean, divided by a spread of almost 0, would depend on the graphs beside it.
    """
    mean = segment_mean(h.double(), members).to(h.dtype)
    return mean.index_select(0, members.target)


@register(
    "norm",
    "graph",
    system="graphnorm",
    summary="over the rows of each graph, a learned share of the mean",
    paper="Cai et al. 2021, ICML",
)
class Graph(Norm):
    """GraphNorm: ``gamma (h - alpha mean) / std + beta`` within each graph, Cai et al. 2021, equation 6."""

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.alpha, self.gamma, self.beta = (nn.Parameter(torch.full((d,), v)) for v in (1.0, 1.0, 0.0))

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        graph_of = members.target
        centred = h - self.alpha * mean_of(h, members)
        spread = (segment_mean(centred.square(), members) + 1e-5).rsqrt().index_select(0, graph_of)
        return self.gamma * centred * spread + self.beta


@register(
    "norm",
    "group_graph",
    systems=(SystemCard("groupnorm", off="none", beside=("none", "layer", "batch")),),
    summary="over groups of channels of all rows of each graph",
    paper="Wu and He 2018, ECCV",
)
class GroupGraph(Norm):
    """Group normalisation of each graph, Wu and He 2018, equations 1 to 6, rows in the place of an image's positions.

    ``gamma (h - mean) / sqrt(variance + eps) + beta``, mean and variance of a group's channels in all rows of a graph.
    One group is layer normalisation of the graph, as many groups as channels are instance normalisation, which makes
    the rows of a graph of one row zero.

    Args:
        d: width of the rows.
        n_groups: equal groups of consecutive channels; by default as many as leave 16 channels or more to each.

    Raises:
        ValueError: groups that do not divide the channels.
    """

    def __init__(self, d: int, n_groups: Width | None = None) -> None:
        super().__init__(d)
        self.n_groups = check_groups(d, n_groups)
        self.gamma, self.beta = nn.Parameter(torch.ones(d)), nn.Parameter(torch.zeros(d))

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        graph_of, groups = members.target, h.unflatten(1, (self.n_groups, -1))
        mean = mean_of(groups.mean(2), members)
        centred = groups - mean.unsqueeze(2)
        variance = segment_mean(centred.square().mean(2), members).index_select(0, graph_of)
        return self.gamma * (centred * (variance + 1e-5).rsqrt().unsqueeze(2)).flatten(1) + self.beta


@register(
    "norm",
    "pair",
    summary="keeps the distances between the rows of a graph: against oversmoothing",
    paper="Zhao and Akoglu 2020, ICLR",
)
class Pair(Norm):
    """PairNorm: ``scale c / sqrt(mean_v ||c_v||^2)`` with ``c = h - mean``, Zhao and Akoglu 2020, equations 10 and 11.

    The mean squared distance of a graph's pairs of rows is the same after each layer. Use it in deep networks over
    graphs of several rows: the only row of a graph becomes zero.

    Args:
        d: width of the rows.
        scale: the root mean square length of a graph's rows afterwards.
    """

    def __init__(self, d: int, scale: Annotated[float, Range(0, above=True)] = 1.0) -> None:
        super().__init__(d)
        self.scale = scale

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        centred = h - mean_of(h, members)
        length = segment_mean(centred.square().sum(1, keepdim=True), members)
        return self.scale * centred * (length + 1e-5).rsqrt().index_select(0, members.target)
