"""Arithmetic along a relation: gather-and-sum as one linear operation; maximum and softmax over a target's pairs."""

from __future__ import annotations

from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from molgraph.nn.relation import Relation

# One row of width d for each source, pair or target of the argument named ``relation``.
Sources: TypeAlias = Float[Tensor, " {relation.n_source} d"]
Pairs: TypeAlias = Float[Tensor, " {relation.source.shape[0]} d"]
Targets: TypeAlias = Float[Tensor, " {relation.n_target} d"]


class _GatherSum(torch.autograd.Function):
    """``out[t] = sum of x[source[k]] for k in offsets[t]:offsets[t + 1]``; its adjoint is itself on the transpose."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "n_source d"],
        source: Int[Tensor, " p"],
        offsets: Int[Tensor, " n_target_1"],
        back_source: Int[Tensor, " p"],
        back_offsets: Int[Tensor, " n_source_1"],
    ) -> Float[Tensor, "n_target_1-1 d"]:
        ctx.save_for_backward(source, offsets, back_source, back_offsets)
        # detached: for rows that require a gradient embedding_bag also makes what its own backward would read
        return F.embedding_bag(source, x.detach(), offsets, mode="sum", include_last_offset=True)

    @staticmethod
    def backward(
        ctx: Any, grad: Float[Tensor, "n_target d"]
    ) -> tuple[Float[Tensor, "n_source d"], None, None, None, None]:
        source, offsets, back_source, back_offsets = ctx.saved_tensors
        return _GatherSum.apply(grad.contiguous(), back_source, back_offsets, source, offsets), None, None, None, None


def gather_sum(x: Sources, relation: Relation) -> Targets:
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


def gather(x: Sources, relation: Relation, reduce: str) -> Targets:
    """Reduce the source rows of each target's pairs: float [n_source, d] to [n_target, d].

    A sum writes no row a pair; the others do.
    """
    if reduce == "sum":
        return gather_sum(x, relation)
    return REDUCE[reduce](x.index_select(0, relation.source), relation)


def reduce_pairs(pairs: Tensor, relation: Relation, reduce: str) -> Targets:
    """Reduce one row a pair over each target's pairs: float [p, d] to [n_target, d].

    Raises:
        ValueError: not one row a pair, as a message may give by mistake.
    """
    p = relation.source.shape[0]
    if pairs.ndim != 2 or pairs.shape[0] != p:
        raise ValueError(
            f"a message of the shape {[*pairs.shape]} came for {p} pairs: give one row a pair, [{p}, width]"
        )
    return REDUCE[reduce](pairs, relation)


def segment_sum(pairs: Pairs, relation: Relation) -> Targets:
    """Sum one row a pair over each target's pairs: float [p, d] to [n_target, d]."""
    each = torch.arange(pairs.shape[0] + 1, device=pairs.device)
    return gather_sum(pairs, Relation(each[:-1], relation.offsets, pairs.shape[0], relation.n_target, _back(relation)))


def segment_mean(pairs: Pairs, relation: Relation) -> Targets:
    """Mean over each target's pairs; zeros where there are none."""
    return divide(segment_sum(pairs, relation), relation)


def divide(sums: Targets, relation: Relation) -> Targets:
    """Sums over each target's pairs divided by their number, 1 where there are none."""
    counts = relation.offsets.diff().clamp(min=1).unsqueeze(1)  # integers: bfloat16 has no 257
    return (sums / counts.to(torch.promote_types(sums.dtype, torch.float32))).to(sums.dtype)


def segment_max(pairs: Pairs, relation: Relation) -> Targets:
    """Largest value of each channel over each target's pairs; zeros where there are none."""
    index = relation.target.unsqueeze(1).expand_as(pairs)
    empty = pairs.new_zeros(relation.n_target, pairs.shape[1])
    return empty.scatter_reduce(0, index, pairs, "amax", include_self=False)


def segment_weights(scores: Pairs, relation: Relation) -> Pairs:
    """Softmax of the scores over each target's pairs: float [p, d] to [p, d], each channel by itself."""
    target = relation.target
    top = segment_max(scores.detach(), relation)  # subtracted for safety: it changes no value and no gradient
    weights = (scores - top.index_select(0, target)).exp()
    return weights / segment_sum(weights, relation).index_select(0, target)


def segment_softmax(pairs: Pairs, relation: Relation) -> Targets:
    """Sum over each target's pairs, each channel weighted by its own softmax."""
    return segment_sum(pairs * segment_weights(pairs, relation), relation)


def _back(relation: Relation) -> tuple[Int[Tensor, " p"], Int[Tensor, " p+1"]]:
    each = torch.arange(relation.source.shape[0] + 1, device=relation.source.device)
    return relation.target, each


REDUCE = {"sum": segment_sum, "mean": segment_mean, "max": segment_max, "softmax": segment_softmax}
