"""Weighted sums along a relation, several weights for each pair, without a row for each pair."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.segment import segment_sum

CHUNK = 1 << 16  # pairs whose rows are written out at once, for gradients of weights


@dataclass(frozen=True)
class OrderedRelation:
    """A relation, and its pairs in the order of their sources.

    Args:
        relation: p pairs; it has its transpose.
        order: int64 [p], the pairs sorted by source.
    """

    relation: Relation
    order: Int[Tensor, " p"]

    @classmethod
    def of(cls, relation: Relation) -> OrderedRelation:
        """Sort the pairs."""
        order = np.argsort(relation.source.numpy(force=True), kind="stable")
        offsets = row_offsets(torch.bincount(relation.source, minlength=relation.n_source))
        put = torch.as_tensor(order, device=relation.source.device)
        back = relation.target.index_select(0, put), offsets
        return cls(Relation(relation.source, relation.offsets, relation.n_source, relation.n_target, back), put)


@dataclass(frozen=True)
class Weights:
    """Several weights for each pair of a relation, in both orders; made once, used in every layer.

    Args:
        along: the relation.
        pairs: float [c, p], c weights a pair.
        back: float [c, p], the same in the order of the sources.
    """

    along: OrderedRelation
    pairs: Float[Tensor, "c p"]
    back: Float[Tensor, "c p"]

    @classmethod
    def of(cls, along: OrderedRelation, pairs: Float[Tensor, "c p"]) -> Weights:
        """Put the weights into both orders."""
        return cls(along, pairs, pairs.index_select(1, along.order))


def weighted_sum(x: Float[Tensor, "c n_source d"], weights: Weights) -> Float[Tensor, "n_target d"]:
    """``out_t = sum over pairs (s, t) and channels c of w_c,st x_c,s``; differentiates any number of times.

    Args:
        x: float [c, n_source, d], the source rows of each channel.
        weights: float [c, p].

    Returns:
        float [n_target, d], in the type of the weights; zeros for a target without pairs.

    Example:
        >>> r = OrderedRelation.of(Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 1]), 2, 2))
        >>> weighted_sum(torch.tensor([[[1.0], [2.0]]]), Weights.of(r, torch.tensor([[10.0, 1.0]]))).tolist()
        [[0.0], [12.0]]
    """
    x = x.to(weights.pairs.dtype)
    if torch._C._are_functorch_transforms_active():
        relation = weights.along.relation
        sums = [
            segment_sum(rows.index_select(0, relation.source) * w.unsqueeze(1), relation)
            for rows, w in zip(x, weights.pairs, strict=True)
        ]
        return torch.stack(sums).sum(0)
    return _Sum.apply(x, weights.pairs, weights.back, weights.along)


def gather_weighted(
    rows: Float[Tensor, "n_source d"], relation: Relation, weights: Float[Tensor, " p"]
) -> Float[Tensor, "n_target d"]:
    """``out_t = sum over pairs (s, t) of w_st rows_s`` outside of any gradient."""
    return F.embedding_bag(
        relation.source, rows.contiguous(), relation.offsets, mode="sum", per_sample_weights=weights,
        include_last_offset=True,
    )  # fmt: skip


class _Sum(torch.autograd.Function):
    """``out_t = sum_c sum_(s,t) w_c,st x_c,s``; it is linear in x and in w, and so are its adjoints."""

    @staticmethod
    def forward(
        ctx: Any,
        x: Float[Tensor, "c n_source d"],
        pairs: Float[Tensor, "c p"],
        back: Float[Tensor, "c p"],
        along: OrderedRelation,
    ) -> Float[Tensor, "n_target d"]:
        ctx.along, ctx.of_weights = along, pairs.requires_grad
        ctx.save_for_backward(*([x] if ctx.of_weights else []), pairs, back)
        r = along.relation
        out = gather_weighted(x[0], r, pairs[0])
        for rows, weights in zip(x[1:], pairs[1:], strict=True):
            out += gather_weighted(rows, r, weights)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        *x, pairs, back = ctx.saved_tensors
        of_x = _Spread.apply(grad, pairs, back, ctx.along) if ctx.needs_input_grad[0] else None
        return of_x, _Dots.apply(grad, x[0], ctx.along) if ctx.of_weights else None, None, None


class _Spread(torch.autograd.Function):
    """``out_c,s = sum_(s,t) w_c,st g_t``: the adjoint of ``_Sum`` in x."""

    @staticmethod
    def forward(
        ctx: Any,
        g: Float[Tensor, "n_target d"],
        pairs: Float[Tensor, "c p"],
        back: Float[Tensor, "c p"],
        along: OrderedRelation,
    ) -> Float[Tensor, "c n_source d"]:
        ctx.along = along
        ctx.save_for_backward(g, pairs, back)
        r, g = along.relation.transpose, g.contiguous()
        out = g.new_empty(len(back), r.n_target, g.shape[1])
        for i, weights in enumerate(back):
            out[i] = gather_weighted(g, r, weights)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        g, pairs, back = ctx.saved_tensors
        of_g = _Sum.apply(grad, pairs, back, ctx.along) if ctx.needs_input_grad[0] else None
        return of_g, _Dots.apply(g, grad, ctx.along) if ctx.needs_input_grad[1] else None, None, None


class _Dots(torch.autograd.Function):
    """``out_c,st = g_t . x_c,s``: the adjoint of ``_Sum`` in the weights."""

    @staticmethod
    def forward(
        ctx: Any, g: Float[Tensor, "n_target d"], x: Float[Tensor, "c n_source d"], along: OrderedRelation
    ) -> Float[Tensor, "c p"]:
        ctx.along = along
        ctx.save_for_backward(g, x)
        source, target = along.relation.source, along.relation.target
        out = g.new_empty(len(x), len(source))
        for start in range(0, len(source), CHUNK):
            here = slice(start, start + CHUNK)
            rows = g.index_select(0, target[here])
            for dots, values in zip(out, x, strict=True):
                dots[here] = (rows * values.index_select(0, source[here])).sum(1)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        (g, x), back = ctx.saved_tensors, grad.index_select(1, ctx.along.order)
        of_g = _Sum.apply(x, grad, back, ctx.along) if ctx.needs_input_grad[0] else None
        return of_g, _Spread.apply(g, grad, back, ctx.along) if ctx.needs_input_grad[1] else None, None
