"""What `propagate` is given in; a sentence that says what does not fit out."""

from __future__ import annotations

from torch import Tensor

from molgraph.nn.relation import Relation
from molgraph.nn.segment import REDUCE


def check_call(
    relation: Relation,
    source_rows: Tensor,
    target_rows: Tensor | None,
    edge_rows: Tensor | None,
    reads_edges: bool,
    reduce: str,
) -> None:
    """Refuse what does not fit the relation.

    Args:
        relation: p pairs.
        source_rows: float [n_source, d].
        target_rows: float [n_target, d'].
        edge_rows: float [p, d_edge].
        reads_edges: whether there is a message to read them.
        reduce: a name.

    Raises:
        ValueError: rows of another number or not of two dimensions, edge rows that nobody reads, an unknown ``reduce``.
    """
    _check("source_rows", source_rows, relation.n_source, "sources")
    _check("target_rows", target_rows, relation.n_target, "targets")
    _check("edge_rows", edge_rows, relation.source.shape[0], "pairs")
    if edge_rows is not None and not reads_edges:
        raise ValueError("edge_rows are read by a message: pass message=... too")
    if reduce not in REDUCE:
        raise ValueError(f"no reduce is named {reduce!r}; known: {', '.join(REDUCE)}")


def _check(name: str, rows: Tensor | None, n: int, of_what: str) -> None:
    if rows is None:
        return
    if rows.ndim != 2:
        raise ValueError(
            f"{name} has the shape {[*rows.shape]}, where one row of numbers for each of the {n} {of_what} is needed: "
            f"give a tensor of two dimensions, [{n}, width]"
        )
    if rows.shape[0] != n:
        raise ValueError(f"{name} has {rows.shape[0]} rows, the relation has {n} {of_what}")
