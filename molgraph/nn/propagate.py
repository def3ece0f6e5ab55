"""Message passing along a relation: one function, ``propagate``, for every model."""

from __future__ import annotations

from collections.abc import Callable

from jaxtyping import Float
from torch import Tensor

from molgraph.nn.relation import Relation
from molgraph.nn.segment import Reduce, gather, reduce_pairs


def propagate(
    source_rows: Float[Tensor, " n_source *d"], relation: Relation, *,
    target_rows: Float[Tensor, " n_target *d_t"] | None = None, edge_rows: Float[Tensor, " p *d_edge"] | None = None,
    message: Callable[..., Tensor] | None = None, reduce: Reduce = "sum", update: Callable[..., Tensor] | None = None,
) -> Float[Tensor, " {relation.n_target} *d_out"]:  # fmt: skip
    """Send rows along a relation, reduce what arrives at each target, update the target.

    Args:
        source_rows, relation: float [n_source, *d], numbers or vectors; p pairs.
        target_rows, edge_rows: float [n_target, *d'] and [p, *d_edge] in the relation's order; for ``message`` to read.
        message: ``(source rows [p, *d], target rows [p, *d'] or None, edge rows or None) -> [p, *d_message]``.
        reduce: ``sum``, ``mean``, ``max``, ``min``, ``std`` or ``softmax`` (each channel weighted by its own), zeros
            where no pair ends; or a function ``(pairs [p, *d_message], relation) -> [n_target, *d_reduced]``.
        update: ``(target_rows, reduced [n_target, *d_reduced]) -> rows [n_target, ...]``.

    Returns:
        ``h'_t = update(h_t, reduce over pairs (s, t) of message(h_s, h_t, e_st))``, Gilmer et al. 2017, equations 1, 2.

    Raises:
        ValueError: rows that do not fit the relation, edge rows without a message, an unknown ``reduce``.

    Example:
        >>> import torch
        >>> path = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 2]), 3, 3)
        >>> propagate(torch.tensor([[1.0], [2.0], [4.0]]), path).tolist()
        [[0.0], [1.0], [2.0]]
    """
    _check_rows("source_rows", source_rows, relation.n_source, "sources")
    _check_rows("target_rows", target_rows, relation.n_target, "targets")
    _check_rows("edge_rows", edge_rows, relation.n_pairs, "pairs")
    if edge_rows is not None and message is None:
        raise ValueError("edge_rows are read by a message: pass message=... too")
    if message is None:
        out = gather(source_rows, relation, reduce)
    else:
        heard = None if target_rows is None else target_rows.index_select(0, relation.target)
        out = reduce_pairs(message(source_rows.index_select(0, relation.source), heard, edge_rows), relation, reduce)
    return out if update is None else update(target_rows, out)


def _check_rows(name: str, rows: Tensor | None, n: int, of_what: str) -> None:
    if rows is not None and (rows.ndim < 2 or rows.shape[0] != n):
        raise ValueError(
            f"{name} has the shape {[*rows.shape]}, where the relation has {n} {of_what}: give one row for each, "
            f"[{n}, width] or [{n}, width, 3]"
        )
