"""A table in, its graphs out: each distinct molecule once, made now or found on disk."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.data.features import FEATURISER
from molgraph.data.featurize import featurize, rdkit_version
from molgraph.data.graphstore import GraphStore, Level
from molgraph.data.stored import cached, content_key, load_store, save_store
from molgraph.data.table import Table

__all__ = ["GraphStore", "Graphs", "Level", "load_store", "save_store", "store_for"]


@dataclass(frozen=True)
class Graphs:
    """The graphs of a table.

    Args:
        store: each distinct molecule once.
        graph_of_row: int64 [n_rows], the graph of each row; -1 for rows that were not ``ok`` already.
    """

    store: GraphStore
    graph_of_row: np.ndarray


def store_for(table: Table, *, cache: Path | None = None, workers: int = 1) -> Graphs:
    """Make the graphs of a table's molecules.

    Args:
        table: rows that are not ``ok`` are passed over.
        cache: a folder in which stores are kept and found again, or None to keep them in memory.
        workers: processes that featurise; the result does not depend on it.

    Raises:
        StorageError: the cache can't be written.

    Example:
        >>> from molgraph.data.table import make_table
        >>> graphs = store_for(make_table(["CCO", None, "CCO", "C"]))
        >>> len(graphs.store), graphs.graph_of_row.tolist()
        (2, [0, -1, 0, 1])
    """
    rows = np.flatnonzero(table.ok)
    graph_of_row = np.full(len(table), -1, dtype=np.int64)
    codes, distinct = pd.factorize(table.smiles[rows])
    graph_of_row[rows] = codes
    texts = list(distinct)
    if cache is None:
        return Graphs(featurize(texts, workers=workers), graph_of_row)
    key = content_key(texts, FEATURISER, rdkit_version())
    return Graphs(cached(cache, key, lambda: featurize(texts, workers=workers)), graph_of_row)
