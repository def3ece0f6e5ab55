"""Find leaks: pairs of a training and a test row that hold forms of one molecule."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from molgraph.chem.scaffold import relate
from molgraph.data.splits.split import Leak
from molgraph.data.splits.structures import entity_keys
from molgraph.data.table import Table

MOST_PER_TEST_ROW = 10  # a molecule that stands in training a thousand times is named ten times


def find_leaks(
    table: Table, train: np.ndarray, test: np.ndarray, parents: np.ndarray | None = None
) -> tuple[Leak, ...]:
    """Pairs of a training and a test row with the same stereo-free parent, in order of the test rows.

    Args:
        table: all rows. In a table of pairs both entities must be the same; graphs and geometries have no such pairs.
        train: int64, training rows.
        test: int64, test rows.
        parents: object array [n], stereo-free parents of all rows, where they are known already.

    Returns:
        The pairs, at most ten training rows for each test row, with what ties them: ``duplicate``, ``salt form``,
        ``stereoisomer`` or ``isotopologue``.
    """
    smiles = next((e.values for e in table.entities if e.kind == "molecule"), None)
    if parents is None or len(table.entities) > 1:
        rows = np.concatenate([train, test]).astype(np.int64)
        parents = np.full(len(table), "", dtype=object)
        parents[rows] = entity_keys(table, rows)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row in train:
        if parents[row] and len(rows_of[parents[row]]) < MOST_PER_TEST_ROW:
            rows_of[parents[row]].append(int(row))
    leaks = []
    for row in test:
        for other in rows_of.get(parents[row], ()) if parents[row] else ():
            tie = "duplicate" if smiles is None else relate(smiles[other], smiles[row])
            leaks.append(Leak(str(table.ids[other]), str(table.ids[row]), tie))
    return tuple(leaks)
