"""Make the graphs of a table's entities, each distinct one once, or find them on disk."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.errors import StorageError
from molgraph.data.content import text_digests
from molgraph.data.featuriser import Featuriser
from molgraph.data.featurize import Molecules
from molgraph.data.graph_io import MANIFEST, load_store, save_store
from molgraph.data.graph_store import GraphStore, InputSpec
from molgraph.data.table import Entities, Table

__all__ = ["CachedGraphs", "graphs_of", "load_store", "marked", "save_store", "store_for"]

MARKS = "smiles_mark"


@dataclass(frozen=True)
class CachedGraphs:
    """The graphs of an entity column."""

    store: GraphStore  # each distinct entity once
    graph_of_row: np.ndarray  # int64 [n_rows], the graph of each row; -1 for rows that were not ``ok`` already


def store_for(table: Table, *, cache: Path | None = None, workers: int = 1) -> CachedGraphs:
    """Make the graphs of a table's molecules.

    Args:
        table: rows that are not ``ok`` are passed over.
        cache: a folder in which stores are kept and found again, or None to keep them in memory. A store that
            holds these molecules among others serves too: that of a whole table serves each of its parts.
        workers: processes that featurise; the result does not depend on it.

    Raises:
        StorageError: the cache can't be written.

    Example:
        >>> from molgraph.data.table import make_table
        >>> graphs = store_for(make_table(["CCO", None, "CCO", "C"]))
        >>> len(graphs.store), graphs.graph_of_row.tolist()
        (2, [0, -1, 0, 1])
    """
    return graphs_of(table, table.entity("molecule"), Molecules(), cache=cache, workers=workers)


def graphs_of(
    table: Table,
    column: Entities,
    featuriser: Featuriser,
    *,
    spec: InputSpec | None = None,
    cache: Path | None = None,
    workers: int = 1,
) -> CachedGraphs:
    """Make the graphs of one entity column, each distinct entity once.

    Args:
        table: rows that are not ``ok`` are passed over.
        column: one of its entity columns.
        featuriser: of that column's kind.
        spec: as for ``Featuriser.featurise``.
        cache, workers: as for ``store_for``; entities that are no text are made anew each time, as
            are the graphs of a featuriser that learns.
    """
    rows = np.flatnonzero(table.ok)
    graph_of_row = np.full(len(table), -1, dtype=np.int64)
    values = column.values[rows]
    text = all(isinstance(value, str) for value in values)
    codes, _ = pd.factorize(values if text else np.array([featuriser.key(v) for v in values], dtype=object))
    distinct = list(values[np.unique(codes, return_index=True)[1]])
    graph_of_row[rows] = codes
    if cache is None or not text or featuriser.learns:
        return CachedGraphs(featuriser.featurise(distinct, spec=spec, workers=workers), graph_of_row)
    marks = text_digests(distinct, *featuriser.versions)
    key = hashlib.blake2b(marks.tobytes(), digest_size=16).hexdigest()
    for folder in sorted((path.parent for path in cache.glob(f"*/{MANIFEST}")), key=lambda path: path.name != key):
        cached = _within(folder, marks)
        if cached is not None:
            graph_of_row[rows] = cached[1][codes]
            return CachedGraphs(cached[0], graph_of_row)
    store = marked(featuriser.featurise(distinct, spec=spec, workers=workers), distinct, *featuriser.versions)
    save_store(store, cache / key)
    return CachedGraphs(store, graph_of_row)


def marked(store: GraphStore, texts: Sequence[str], *versions: str) -> GraphStore:
    """The store with a mark of each entity's text, by which ``graphs_of`` finds it among others."""
    marks = text_digests(texts, *(versions or Molecules().versions))
    return replace(store, extra={**store.extra, MARKS: marks})


def _within(folder: Path, marks: np.ndarray) -> tuple[GraphStore, np.ndarray] | None:
    """The store in a folder and the graph of each mark, where it has them all and is whole."""
    try:
        known = load_store(folder, verify=False).extra.get(MARKS)
        if known is None or len(known) < len(marks):
            return None
        order = np.argsort(known[:, 0], kind="stable")
        place = order[np.minimum(np.searchsorted(known[order, 0], marks[:, 0]), len(known) - 1)]
        return (load_store(folder), place) if (known[place] == marks).all() else None
    except StorageError:  # damaged, or another process took it away: it is not needed
        return None
