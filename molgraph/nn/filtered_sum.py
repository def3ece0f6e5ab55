"""Gather, filter and sum along a relation in one operation, without a row for each triplet (DimeNet++)."""

from __future__ import annotations

from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.nn.weighted_sum import Weights, gather_weighted, weighted_sum


def filtered_sum(
    h: Float[Tensor, "n_source d"],
    basis: Float[Tensor, "c k n_source"],
    weight: Float[Tensor, "c k d"],
    angles: Weights,
) -> Float[Tensor, "n_target d"]:
    """``out_t = sum over pairs (s, t) and channels c of w_c,st (h_s * (b_c,s W_c))``.

    This is DimeNet's sum over triplets: ``basis`` are radial functions of each order c at a pair, ``angles`` the
    angular function of each order at a triplet. Their product, one row a triplet, is not formed, nor are the rows of
    all channels kept for the gradient: memory is that of ``h`` and the angles. Differentiates any number of times.

    Args:
        h: float [n_source, d].
        basis: float [c, k, n_source], k functions of each channel at each source row.
        weight: float [c, k, d].
        angles: c weights for each pair of the relation.

    Returns:
        float [n_target, d], in the type of the angles.
    """
    if torch._C._are_functorch_transforms_active():
        return _plain(h, basis, weight, angles.pairs, angles.back, angles.along)
    with torch.autocast(h.device.type, enabled=False):
        operands = [tensor.to(angles.pairs.dtype) for tensor in (h, basis, weight)]
        return _FilteredSum.apply(*operands, angles.pairs, angles.back, angles.along)


def _plain(*inputs: Any) -> Tensor:
    h, basis, weight, pairs, back, along = inputs
    return weighted_sum(h * torch.bmm(basis.transpose(1, 2), weight), Weights(along, pairs, back))


class _FilteredSum(torch.autograd.Function):
    """Channel by channel, so that what is made of a part of a batch stays in the cache."""

    @staticmethod
    def forward(
        ctx: Any,
        h: Float[Tensor, "n_source d"],
        basis: Float[Tensor, "c k n_source"],
        weight: Float[Tensor, "c k d"],
        pairs: Float[Tensor, "c p"],
        back: Float[Tensor, "c p"],
        along: Any,
    ) -> Float[Tensor, "n_target d"]:
        ctx.along = along
        ctx.save_for_backward(h, basis, weight, pairs, back)
        out = h.new_zeros(along.relation.n_target, h.shape[1])
        for b, w, angle in zip(basis, weight, pairs, strict=True):
            out += gather_weighted((b.t() @ w).mul_(h), along.relation, angle)
        return out

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        h, basis, weight, _, back = inputs = ctx.saved_tensors
        needed, again = ctx.needs_input_grad[:4], torch.is_grad_enabled()
        if again or needed[1] or needed[3]:  # a gradient of gradients, or of positions
            operands = [*inputs] if again else [x.detach() for x in inputs]
            asked = [x if again else x.requires_grad_() for x, asks in zip(operands, needed, strict=False) if asks]
            with torch.enable_grad():
                out = _plain(*operands, ctx.along)
            gradients = iter(torch.autograd.grad(out, asked, grad, create_graph=again))
            return *(next(gradients) if asks else None for asks in needed), None, None
        d_h, d_weight = torch.zeros_like(h), torch.empty_like(weight)
        for b, w, angle, d_w in zip(basis, weight, back, d_weight, strict=True):
            sent = gather_weighted(grad, ctx.along.relation.transpose, angle)
            d_h.addcmul_(sent, b.t() @ w)
            torch.mm(b, sent.mul_(h), out=d_w)
        return d_h if needed[0] else None, None, d_weight if needed[2] else None, None, None, None
