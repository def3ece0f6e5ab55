"""Normalisation of the rows of a batch, which may belong to graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.registry import get, register
from molgraph.nn.relation import Relation
from molgraph.nn.segment import segment_mean


class Norm(nn.Module):
    """The base class of norms: ``(rows [n, d], relation from rows to graphs) -> [n, d]``.

    Row i belongs to graph ``members.target[i]``; a graph may have no rows, and a batch none at all. ``by_row`` says
    that a row's result depends on that row alone, or on statistics of the whole batch in training: under such a norm
    rows that look alike can be computed once, and ``members`` is not read.

    Args:
        d: width of the rows.
    """

    by_row: bool = False

    def __init__(self, d: int) -> None:
        super().__init__()

    @abstractmethod
    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""


def make_norms(norm: str, widths: Iterable[int]) -> nn.ModuleList:
    """A registered norm for rows of each width.

    Raises:
        UsageError: an unknown norm; the message holds the nearest known ones.

    Example:
        >>> [each.norm.normalized_shape for each in make_norms("layer", [8, 4])]
        [(8,), (4,)]
    """
    return nn.ModuleList(get("norm", norm)(d) for d in widths)


@register("norm", "none", summary="rows as they are")
class NoNorm(Norm):
    """The rows as they are."""

    by_row = True

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d], unchanged."""
        return h


@register(
    "norm", "batch", system="batchnorm", summary="over all rows of the batch", paper="Ioffe and Szegedy 2015, ICML"
)
class Batch(Norm):
    """Batch normalisation; a batch of fewer than two rows is normalised by the running statistics."""

    by_row = True

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.norm = nn.BatchNorm1d(d)

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        if h.shape[0] < 2 and self.training:
            own = self.norm
            assert own.running_mean is not None and own.running_var is not None
            return (h - own.running_mean) * (own.running_var + own.eps).rsqrt() * own.weight + own.bias
        return self.norm(h)


@register(
    "norm",
    "layer",
    system="layernorm",
    summary="over the channels of each row",
    paper="Ba, Kiros and Hinton 2016, arXiv:1607.06450",
)
class Layer(Norm):
    """Layer normalisation."""

    by_row = True

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.norm = nn.LayerNorm(d)

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        return self.norm(h)


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
        centred = h - self.alpha * segment_mean(h, members).index_select(0, graph_of)
        spread = (segment_mean(centred.square(), members) + 1e-5).rsqrt().index_select(0, graph_of)
        return self.gamma * centred * spread + self.beta
