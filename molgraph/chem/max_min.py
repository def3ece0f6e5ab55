"""Pick a diverse subset of fingerprints by the greedy max-min Tanimoto distance."""

from __future__ import annotations

import numpy as np

from molgraph.chem.tanimoto import BitTable


def pick_max_min(x: np.ndarray, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Pick the first row, then again and again the one whose most similar picked row is least similar to it.

    Kennard & Stone 1969, Technometrics 11:137, with the Tanimoto distance; of equal rows the first is taken.

    Args:
        x: [rows, bits] of 0 and 1.
        n: rows to pick; all where there are fewer.

    Returns:
        int64 [n], the rows in the order of the picks; float64 [n], the similarity of each to the most similar one that
        was picked before it, NaN for the first.

    Example:
        >>> rows, similarity = pick_max_min(np.array([[1, 1, 0], [1, 1, 1], [0, 0, 1]]), 2)
        >>> rows.tolist(), similarity.tolist()
        ([0, 2], [nan, 0.0])
    """
    n, table = min(n, len(x)), BitTable(x)
    rows, similarity = np.zeros(n, dtype=np.int64), np.full(n, np.nan)
    closest = np.full(len(x), -1.0)
    for place in range(n):
        if place:
            rows[place] = np.argmin(closest)
            similarity[place] = closest[rows[place]]
        closest = np.maximum(closest, table.similarity(table.take(rows[place : place + 1]))[:, 0])
        closest[rows[place]] = np.inf
    return rows, similarity
