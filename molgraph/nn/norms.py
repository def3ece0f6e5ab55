"""Normalisation of the rows of a batch, which may belong to graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.base.ranges import Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.relation import Relation


class Norm(nn.Module):
    """The base class of norms: ``(rows [n, d], relation from rows to graphs) -> [n, d]``.

    Row i belongs to graph ``members.target[i]``; a graph may have no rows, and a batch none at all. ``by_row`` says
    that a row's result depends on that row alone, or on statistics of the whole batch in training: under such a norm
    rows that look alike can be computed once, and ``members`` has a pair for each atom that a row stands for.

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
    return nn.ModuleList(make_part("norm", norm, d) for d in widths)


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
    """Batch normalisation; a batch of fewer than two atoms is normalised by the running statistics.

    A row that stands for several atoms counts as often in mean and variance as it has pairs in ``members``.
    """

    by_row = True

    def __init__(self, d: int) -> None:
        super().__init__(d)
        self.norm = CountedBatchNorm(d)

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        return self.norm(h, members)


class CountedBatchNorm(nn.BatchNorm1d):
    """``BatchNorm1d`` over atoms, each of which is a row of its own or one that others share."""

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:  # type: ignore[override]
        """float [n, d] to [n, d]."""
        n, mean, variance = members.n_pairs, self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        if not self.training or (n == len(h) > 1):
            return super().forward(h)
        if n > 1:
            with torch.autocast(h.device.type, enabled=False):  # sums over all rows
                wide = h.to(mean.dtype)
                share = torch.bincount(members.source, minlength=len(h)).to(mean.dtype) / n
                own_mean = share @ wide
                own_variance = share @ (wide - own_mean).square()
            with torch.no_grad():
                mean.lerp_(own_mean.to(mean.dtype), self.momentum)
                variance.lerp_(own_variance.to(variance.dtype) * (n / (n - 1)), self.momentum)
                if self.num_batches_tracked is not None:
                    self.num_batches_tracked += 1
            mean, variance = own_mean, own_variance
        return ((h - mean) * ((variance + self.eps).rsqrt() * self.weight) + self.bias).to(h.dtype)


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
    "group",
    systems=(SystemCard("groupnorm", off="none", beside=("none", "layer", "batch")),),
    summary="over groups of the channels of each row",
    paper="Wu and He 2018, ECCV",
)
class Group(Norm):
    """Group normalisation of each row, Wu and He 2018, equations 1 to 6, without positions to average over.

    ``gamma (h - mean) / sqrt(variance + eps) + beta``, mean and variance of the row's own channels in a group. With one
    group it is ``layer``.

    Args:
        d: width of the rows.
        n_groups: equal groups of consecutive channels; by default as many as leave 16 channels or more to each.

    Raises:
        ValueError: groups that do not divide the channels, or of one channel, all of whose values would be zero.
    """

    by_row = True

    def __init__(self, d: int, n_groups: Width | None = None) -> None:
        super().__init__(d)
        self.norm = nn.GroupNorm(check_groups(d, n_groups), d)
        if n_groups == d:
            raise ValueError(f"{d} groups of one channel: a row would be zero, give fewer groups or use group_graph")

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:
        """float [n, d] to [n, d]."""
        return self.norm(h) if len(h) else h  # torch refuses an empty batch


def check_groups(d: int, n_groups: int | None = None) -> int:
    """The number of equal groups of ``d`` channels; None: at most 32, of 16 channels or more where there are so many.

    Raises:
        ValueError: groups that do not divide the channels.

    Example:
        >>> check_groups(64), check_groups(300), check_groups(8), check_groups(8, 2)
        (4, 15, 1, 2)
    """
    if n_groups is None:
        return max(n for n in range(1, 33) if d % n == 0 and (n == 1 or d // n >= 16))
    if n_groups < 1 or d % n_groups:
        raise ValueError(f"{n_groups} groups do not divide {d} channels into equal parts")
    return n_groups
