"""Normalisation of the rows of a batch, which may belong to graphs."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable
from typing import Annotated

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.base.parts import make_part
from molgraph.base.ranges import LARGEST, Range, Width
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
    "norm",
    "batch",
    systems=(
        SystemCard("batchnorm"),
        SystemCard(
            "batchnorm-four-fixes",
            off="-s params.norm=batch",
            beside=("batch",),
            left_out="batch and group statistics together, which group_graph has; decay of scale and shift",
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.norm=batch(ghost=8)'",
        ),
    ),
    summary="over all rows of the batch, or of so many graphs of it",
    paper="Ioffe and Szegedy 2015, ICML; ghost batches: Hoffer et al. 2017, NeurIPS 30",
)
class Batch(Norm):
    """Batch normalisation; a batch of fewer than two atoms is normalised by the running statistics.

    A row that stands for several atoms counts as often in mean and variance as it has pairs in ``members``.

    Args:
        d: width of the rows.
        ghost: graphs whose rows have mean and variance of their own in training, as if the batch had so many; the whole
            batch if None.
    """

    by_row = True

    def __init__(self, d: int, ghost: Annotated[int, Range(1, LARGEST)] | None = None) -> None:
        super().__init__(d)
        self.norm = CountedBatchNorm(d) if ghost is None else GhostBatchNorm(d, ghost)

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


class GhostBatchNorm(CountedBatchNorm):
    """``BatchNorm1d`` whose training statistics are those of the rows of ``ghost`` graphs at a time.

    Hoffer et al. 2017, algorithm 1; Summers and Dinneen 2020, section 3.2: smaller batches regularise, whatever the
    batch that the step takes. The running statistics move by the mean of the groups', each by its rows.

    Args:
        d: width of the rows.
        ghost: consecutive graphs of a group; a last group of less than half as many goes to the one before.
    """

    def __init__(self, d: int, ghost: int) -> None:
        super().__init__(d)
        self.ghost = ghost

    def forward(self, h: Float[Tensor, "n d"], members: Relation) -> Float[Tensor, "n d"]:  # type: ignore[override]
        """float [n, d] to [n, d]."""
        n_groups = max(1, (members.n_target + self.ghost // 2) // self.ghost)
        mean, variance = self.running_mean, self.running_var
        assert mean is not None and variance is not None and self.momentum is not None
        if not self.training or n_groups == 1 or members.n_pairs != len(h):
            return super().forward(h, members)
        group = (members.target // self.ghost).clamp(max=n_groups - 1)
        own_mean, own_variance, count = group_moments(h.to(mean.dtype), group, n_groups)
        share = count / count.sum().clamp(min=1)
        with torch.no_grad():
            unbiased = own_variance * (count / (count - 1).clamp(min=1)).unsqueeze(1)
            mean.lerp_(share @ own_mean, self.momentum)
            variance.lerp_(share @ unbiased, self.momentum)
            if self.num_batches_tracked is not None:
                self.num_batches_tracked += 1
        centred = h - own_mean.index_select(0, group)
        scale = (own_variance + self.eps).rsqrt().index_select(0, group)
        return (centred * scale * self.weight + self.bias).to(h.dtype)


def group_moments(
    h: Float[Tensor, "n d"], group: Int[Tensor, " n"], n_groups: int
) -> tuple[Float[Tensor, "g d"], Float[Tensor, "g d"], Float[Tensor, " g"]]:
    """Mean and variance (of a population) of the rows of each group, and their number; 0 of a group without rows.

    Example:
        >>> group_moments(torch.tensor([[1.0], [3.0], [5.0]]), torch.tensor([0, 0, 1]), 2)[0].tolist()
        [[2.0], [5.0]]
    """
    count = torch.bincount(group, minlength=n_groups).to(h.dtype)
    by = count.clamp(min=1).unsqueeze(1)
    zeros = h.new_zeros(n_groups, h.shape[1])
    mean = zeros.index_add(0, group, h) / by
    return mean, zeros.index_add(0, group, (h - mean.index_select(0, group)).square()) / by, count


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
