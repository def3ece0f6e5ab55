"""Arithmetic along a relation: gather-and-sum as one linear operation; other reductions over a target's pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn import functional as F

from molgraph.nn.relation import Relation

# One row of any shape for each source, pair or target of the argument named ``relation``.
Sources: TypeAlias = Float[Tensor, " {relation.n_source} *d"]
Pairs: TypeAlias = Float[Tensor, " {relation.source.shape[0]} *d"]
Targets: TypeAlias = Float[Tensor, " {relation.n_target} *d"]
# A name in ``REDUCE``, or ``(pairs [p, *d], relation) -> [n_target, *d_reduced]``.
Reduce: TypeAlias = str | Callable[[Tensor, Relation], Tensor]


class _GatherSum(torch.autograd.Function):
    """``out[t] = sum of x[source[k]] for k in offsets[t]:offsets[t + 1]``; its adjoint is itself on the transpose."""

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """As torch's, which binds the arguments to their names anew at each call: that costs more than a small sum."""
        if torch._C._are_functorch_transforms_active():
            return super().apply(*args)
        return super(torch.autograd.Function, cls).apply(*args)  # type: ignore[misc]

    @staticmethod
    def forward(
        x: Float[Tensor, "n_source d"],
        source: Int[Tensor, " p"],
        offsets: Int[Tensor, " n_target_1"],
        back_source: Int[Tensor, " p"],
        back_offsets: Int[Tensor, " n_source_1"],
    ) -> Float[Tensor, "n_target_1-1 d"]:
        # detached: for rows that require a gradient embedding_bag also makes what its own backward would read
        return F.embedding_bag(source, x.detach(), offsets, mode="sum", include_last_offset=True)

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        _, *index = inputs
        ctx.save_for_backward(*index)

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "n_target d"]) -> tuple[Tensor, None, None, None, None]:
        source, offsets, back_source, back_offsets = ctx.saved_tensors
        return _GatherSum.apply(grad.contiguous(), back_source, back_offsets, source, offsets), None, None, None, None

    @staticmethod
    def vmap(info: Any, dims: tuple[int | None, ...], x: Tensor, *index: Tensor) -> tuple[Tensor, int | None]:
        """Samples stand side by side in a row; a relation is one and the same for all of them."""
        if dims[0] is None or any(dim is not None for dim in dims[1:]):
            raise ValueError("vmap goes over rows, not over relations")
        rows = x.movedim(dims[0], 1)
        return _GatherSum.apply(rows.flatten(1), *index).unflatten(1, rows.shape[1:]), 1


class _DualGatherSum(_GatherSum):
    """The same with a derivative in forward mode, which ``torch.compile`` does not trace."""

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Tensor, ...], output: Tensor) -> None:
        _GatherSum.setup_context(ctx, inputs, output)
        ctx.save_for_forward(*inputs[1:])

    @staticmethod
    def jvp(ctx: Any, tangent: Float[Tensor, "n_source d"], *_: None) -> Float[Tensor, "n_target d"]:
        """A sum is linear: its change is the sum of the changes."""
        return _GatherSum.apply(tangent.contiguous(), *ctx.saved_tensors)


def gather_sum(x: Sources, relation: Relation) -> Targets:
    """Sum the source rows of each target's pairs; differentiates any number of times, under ``torch.func`` too.

    Args:
        x: float [n_source, *d].
        relation: p pairs.

    Returns:
        float [n_target, *d]; zeros for a target without pairs.

    Example:
        >>> r = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 1]), 2, 3)
        >>> gather_sum(torch.tensor([[1.0], [2.0]]), r).tolist()
        [[0.0], [3.0], [0.0]]
    """
    if x.ndim != 2:
        return gather_sum(x.flatten(1), relation).view(relation.n_target, *x.shape[1:])
    plain = not (x.requires_grad and torch.is_grad_enabled())
    if plain and not torch._C._are_functorch_transforms_active():  # no transpose needed
        return F.embedding_bag(relation.source, x, relation.offsets, mode="sum", include_last_offset=True)
    back = relation.transpose
    if not torch.compiler.is_compiling() and torch._C._are_functorch_transforms_active():
        return _DualGatherSum.apply(x, relation.source, relation.offsets, back.source, back.offsets)
    return _GatherSum.apply(x, relation.source, relation.offsets, back.source, back.offsets)


def gather(x: Sources, relation: Relation, reduce: Reduce) -> Float[Tensor, " {relation.n_target} *any"]:
    """Reduce the source rows of each target's pairs: float [n_source, *d] to [n_target, *d].

    A sum writes no row a pair; the others do.
    """
    if reduce == "sum":
        return gather_sum(x, relation)
    return reduce_pairs(x.index_select(0, relation.source), relation, reduce)


def reduce_pairs(pairs: Tensor, relation: Relation, reduce: Reduce) -> Float[Tensor, " {relation.n_target} *any"]:
    """Reduce one row a pair over each target's pairs: float [p, *d] to [n_target, *d].

    Raises:
        ValueError: not one row a pair, as a message may give by mistake; an unknown name.
    """
    if pairs.ndim < 2 or pairs.shape[0] != relation.n_pairs:
        raise ValueError(
            f"a message of the shape {[*pairs.shape]} came for {relation.n_pairs} pairs: give one row a pair, "
            f"[{relation.n_pairs}, width]"
        )
    if callable(reduce):
        return reduce(pairs, relation)
    if reduce not in REDUCE:
        raise ValueError(f"no reduce is named {reduce!r}; known: {', '.join(REDUCE)}, or give a function")
    return REDUCE[reduce](pairs, relation)


def segment_sum(pairs: Pairs, relation: Relation) -> Targets:
    """Sum one row a pair over each target's pairs: float [p, *d] to [n_target, *d]."""
    index = torch.arange(pairs.shape[0] + 1, device=pairs.device)
    back = relation.target, index
    return gather_sum(pairs, Relation(index[:-1], relation.offsets, pairs.shape[0], relation.n_target, back))


def segment_mean(pairs: Pairs, relation: Relation) -> Targets:
    """Mean over each target's pairs; zeros where there are none."""
    return divide(segment_sum(pairs, relation), relation)


def segment_std(pairs: Pairs, relation: Relation) -> Targets:
    """Standard deviation over each target's pairs, 1e-5 under the root as in PNA; zeros where there are none."""
    centred = pairs - segment_mean(pairs, relation).index_select(0, relation.target)
    std = (segment_mean(centred.square(), relation) + 1e-5).sqrt()
    some = (relation.offsets.diff() > 0).view(-1, *[1] * (std.ndim - 1))
    return std * some


def divide(sums: Targets, relation: Relation) -> Targets:
    """Sums over each target's pairs divided by their number, 1 where there are none."""
    counts = relation.offsets.diff().clamp(min=1).view(-1, *[1] * (sums.ndim - 1))  # integers: bfloat16 has no 257
    return (sums / counts.to(torch.promote_types(sums.dtype, torch.float32))).to(sums.dtype)


def segment_max(pairs: Pairs, relation: Relation) -> Targets:
    """Largest value of each channel over each target's pairs, whose gradient equal ones share; zeros where none."""
    if pairs.ndim != 2:
        return segment_max(pairs.flatten(1), relation).view(relation.n_target, *pairs.shape[1:])
    if torch.compiler.is_compiling() or torch._C._are_functorch_transforms_active():
        return _largest(pairs, relation.target, relation.n_target)
    return _Largest.apply(pairs, relation.target, relation.offsets)


def _largest(pairs: Float[Tensor, "p d"], target: Int[Tensor, " p"], n: int) -> Float[Tensor, "n d"]:
    index = target[:, None].expand_as(pairs)
    start = pairs.new_full((n, pairs.shape[1]), -torch.inf)  # a 0 here would take a share of the gradient of a 0
    largest = start.scatter_reduce(0, index, pairs, "amax", include_self=False)
    return torch.where(largest == -torch.inf, torch.zeros_like(largest), largest)


class _Largest(torch.autograd.Function):
    """``_largest`` with a backward pass by whole rows, a third of the time of torch's, which goes number by number."""

    @staticmethod
    def forward(
        ctx: Any, pairs: Float[Tensor, "p d"], target: Int[Tensor, " p"], offsets: Int[Tensor, " n_1"]
    ) -> Float[Tensor, "n_1-1 d"]:
        largest = _largest(pairs, target, len(offsets) - 1)
        ctx.save_for_backward(pairs, largest, target, offsets)
        return largest

    @staticmethod
    def backward(ctx: Any, grad: Float[Tensor, "n d"]) -> tuple[Tensor, None, None]:
        pairs, largest, target, offsets = ctx.saved_tensors
        hit = (pairs == largest.index_select(0, target)).detach().to(grad.dtype)
        index = torch.arange(len(target), device=target.device)
        ties = F.embedding_bag(index, hit, offsets, mode="sum", include_last_offset=True).clamp(min=1)
        return (grad / ties).index_select(0, target) * hit, None, None


def segment_min(pairs: Pairs, relation: Relation) -> Targets:
    """Smallest value of each channel over each target's pairs; zeros where there are none."""
    return -segment_max(-pairs, relation)


def segment_weights(scores: Pairs, relation: Relation) -> Pairs:
    """Softmax of the scores over each target's pairs: float [p, *d] to [p, *d], each channel by itself."""
    target = relation.target
    top = segment_max(scores.detach(), relation)  # subtracted for safety: it changes no value and no gradient
    weights = (scores - top.index_select(0, target)).exp()
    return weights / segment_sum(weights, relation).index_select(0, target)


def softmax_by_graph(
    scores: Float[Tensor, " rows *d"], graph_of: Int[Tensor, " rows"], n: int
) -> Float[Tensor, " rows *d"]:
    """The softmax over the rows of each of ``n`` graphs, which may stand in any order; each channel by itself."""
    return (scores - logsumexp_by_graph(scores, graph_of, n)[graph_of]).exp()


def logsumexp_by_graph(
    scores: Float[Tensor, " rows *d"], graph_of: Int[Tensor, " rows"], n: int
) -> Float[Tensor, " n *d"]:
    """``log sum exp`` over the rows of each graph, each channel by itself; -69 of a graph without rows."""
    index = graph_of.view(-1, *[1] * (scores.ndim - 1)).expand_as(scores)
    highest = scores.new_zeros(n, *scores.shape[1:])
    highest = highest.scatter_reduce(0, index, scores.detach(), "amax", include_self=False)
    total = torch.zeros_like(highest).index_add(0, graph_of, (scores - highest[graph_of]).exp())
    return highest + total.clamp(min=1e-30).log()


def segment_softmax(pairs: Pairs, relation: Relation) -> Targets:
    """Sum over each target's pairs, each channel weighted by its own softmax."""
    return segment_sum(pairs * segment_weights(pairs, relation), relation)


REDUCE = {
    "sum": segment_sum,
    "mean": segment_mean,
    "max": segment_max,
    "min": segment_min,
    "std": segment_std,
    "softmax": segment_softmax,
}
