"""The core's one verb: rows speak along a relation."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from molgraph.nn.relation import Relation
from molgraph.nn.segment import REDUCE, gather_sum


def propagate(
    source_rows: Tensor,
    relation: Relation,
    *,
    target_rows: Tensor | None = None,
    edge_rows: Tensor | None = None,
    message: Callable[[Tensor, Any, Any], Tensor] | None = None,
    reduce: str = "sum",
    update: Callable[[Any, Tensor], Tensor] | None = None,
) -> Tensor:
    """Send rows along a relation, reduce what arrives at each target, update the target.

    ``h'_t = update(h_t, reduce over pairs (s, t) of message(h_s, h_t, e_st))`` (Gilmer et al. 2017, equations
    1 and 2). Without a message, gather-and-sum is one linear operation and no row a pair is ever written.

    Args:
        source_rows: float [n_source, d].
        relation: p pairs.
        target_rows: float [n_target, d'], handed to ``message`` (one row a pair) and to ``update``.
        edge_rows: float [p, d_edge], one row a pair in the relation's order, handed to ``message``.
        message: ``(source rows [p, d], target rows [p, d'] or None, edge rows or None) -> [p, d_message]``.
        reduce: ``sum``, ``mean``, ``max`` or ``softmax`` (each channel's sum weighted by its own softmax).
        update: ``(target_rows, reduced [n_target, d_message]) -> rows``.

    Returns:
        float [n_target, ...]; a target without pairs is reduced to zeros.

    Raises:
        ValueError: rows that do not fit the relation, edge rows without a message, an unknown ``reduce``.

    Example:
        >>> import torch
        >>> path = Relation.from_pairs(torch.tensor([0, 1]), torch.tensor([1, 2]), 3, 3)
        >>> propagate(torch.tensor([[1.0], [2.0], [4.0]]), path).tolist()
        [[0.0], [1.0], [2.0]]
    """
    _check("source_rows", source_rows, relation.n_source, "sources")
    _check("target_rows", target_rows, relation.n_target, "targets")
    _check("edge_rows", edge_rows, relation.source.shape[0], "pairs")
    if message is None and edge_rows is not None:
        raise ValueError("edge_rows are read by a message: pass message=... too")
    if reduce not in REDUCE:
        raise ValueError(f"no reduce is named {reduce!r}; known: {', '.join(REDUCE)}")
    if message is None and reduce == "sum":
        out = gather_sum(source_rows, relation)
    else:
        rows = source_rows.index_select(0, relation.source)
        if message is not None:
            heard = None if target_rows is None else target_rows.index_select(0, relation.target)
            rows = message(rows, heard, edge_rows)
        out = REDUCE[reduce](rows, relation)
    return out if update is None else update(target_rows, out)


def _check(name: str, rows: Tensor | None, n: int, of_what: str) -> None:
    if rows is not None and rows.shape[0] != n:
        raise ValueError(f"{name} has {rows.shape[0]} rows, the relation has {n} {of_what}")
