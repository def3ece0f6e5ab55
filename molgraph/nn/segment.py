"""Arithmetic along a relation: gather-and-sum as one linear operation; maximum and softmax over a target's pairs."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.nn.relation import Relation


class _GatherSum(torch.autograd.Function):
    """``out[t] = sum of x[source[k]] for k in offsets[t]:offsets[t + 1]``; its adjoint is itself on the transpose."""

    @staticmethod
    def forward(
        ctx: Any, x: Tensor, source: Tensor, offsets: Tensor, back_source: Tensor, back_offsets: Tensor
    ) -> Tensor:
        ctx.save_for_backward(source, offsets, back_source, back_offsets)
        # detached: for rows that require a gradient embedding_bag also makes what its own backward would read
        return F.embedding_bag(source, x.detach(), offsets, mode="sum", include_last_offset=True)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None, None, None]:
        source, offsets, back_source, back_offsets = ctx.saved_tensors
        return _GatherSum.apply(grad.contiguous(), back_source, back_offsets, source, offsets), None, None, None, None


def gather_sum(x: Tensor, relation: Relation) -> Tensor:
    """Sum the source rows of each target's pairs; differentiates any number of times.

    Args:
        x: float [n_source, d].
        relation: p pairs.

    Returns:
        float [n_target, d]; zeros for a target without pairs.

    Example:
        >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 1]), 2, 3)
        >>> gather_sum(torch.tensor([[1.0], [2.0]]), r).tolist()
        [[0.0], [3.0], [0.0]]
    """
    if not (x.requires_grad and torch.is_grad_enabled()):  # no transpose needed
        return F.embedding_bag(relation.source, x, relation.offsets, mode="sum", include_last_offset=True)
    back = relation.transpose
    return _GatherSum.apply(x, relation.source, relation.offsets, back.source, back.offsets)


def segment_sum(pairs: Tensor, relation: Relation) -> Tensor:
    """Sum one row a pair over each target's pairs: float [p, d] to [n_target, d]."""
    each = torch.arange(pairs.shape[0] + 1, device=pairs.device)
    return gather_sum(pairs, Relation(each[:-1], relation.offsets, pairs.shape[0], relation.n_target, _back(relation)))


def segment_mean(pairs: Tensor, relation: Relation) -> Tensor:
    """Mean over each target's pairs; zeros where there are none."""
    return divide(segment_sum(pairs, relation), relation)


def divide(sums: Tensor, relation: Relation) -> Tensor:
    """Sums over each target's pairs divided by their number, 1 where there are none."""
    counts = relation.offsets.diff().clamp(min=1).unsqueeze(1)  # integers: bfloat16 has no 257
    return (sums / counts.to(torch.promote_types(sums.dtype, torch.float32))).to(sums.dtype)


def segment_max(pairs: Tensor, relation: Relation) -> Tensor:
    """Largest value of each channel over each target's pairs; zeros where there are none."""
    index = relation.target.unsqueeze(1).expand_as(pairs)
    empty = pairs.new_zeros(relation.n_target, pairs.shape[1])
    return empty.scatter_reduce(0, index, pairs, "amax", include_self=False)


def segment_weights(scores: Tensor, relation: Relation) -> Tensor:
    """Softmax of the scores over each target's pairs: float [p, d] to [p, d], each channel by itself."""
    target = relation.target
    top = segment_max(scores.detach(), relation)  # subtracted for safety: it changes no value and no gradient
    weights = (scores - top.index_select(0, target)).exp()
    return weights / segment_sum(weights, relation).index_select(0, target)


def segment_softmax(pairs: Tensor, relation: Relation) -> Tensor:
    """Sum over each target's pairs, each channel weighted by its own softmax."""
    return segment_sum(pairs * segment_weights(pairs, relation), relation)


def _back(relation: Relation) -> tuple[Tensor, Tensor]:
    each = torch.arange(relation.source.shape[0] + 1, device=relation.source.device)
    return relation.target, each


REDUCE = {"sum": segment_sum, "mean": segment_mean, "max": segment_max, "softmax": segment_softmax}
