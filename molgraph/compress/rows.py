"""Split a table for model compression into train, valid and test rows; test molecules are new to the source model."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import EmptyError, MolgraphError
from molgraph.data.splits import split_table
from molgraph.data.table import Table

SPLITS = ("scaffold/balanced", "random")
HELD = 0.1  # of the rows, for early stopping, and as many to measure on
FEWEST = 10  # test rows without which nothing is measured

Parts = tuple[np.ndarray, np.ndarray, np.ndarray]


def split_rows(table: Table, seen: np.ndarray, seed: int) -> Parts:
    """Rows to learn from, for early stopping and to measure on, by scaffolds; at random where there are too few.

    Where the source learnt from some rows and ``FEWEST`` or more are left for each of the other parts, these hold none
    that it learnt from, as a smaller model with the source's weights knows them too.

    Args:
        table: labelled, readable rows.
        seen: bool [n], rows whose molecules the source learnt from.
        seed: of the split.

    Raises:
        EmptyError: too few rows for three parts.
    """
    fresh = np.flatnonzero(~seen)
    if not seen.any() or len(fresh) < 2 * FEWEST:
        return _split(table, (1 - 2 * HELD, HELD, HELD), seed)
    share = HELD * len(table) / len(fresh)
    if share < 0.5:
        learn, valid, test = _split(table.take(fresh), (1 - 2 * share, share, share), seed)
    else:
        valid, _, test = _split(table.take(fresh), (0.5, 0.0, 0.5), seed)
        learn = np.zeros(0, dtype=np.int64)
    return np.sort(np.concatenate([np.flatnonzero(seen), fresh[learn]])), fresh[valid], fresh[test]


def _split(table: Table, fractions: tuple[float, float, float], seed: int) -> Parts:
    for splitter in SPLITS:
        try:
            split = split_table(table, splitter, fractions=fractions, seed=seed, quiet=True)
        except MolgraphError:
            continue
        return split.train, split.valid, split.test
    raise EmptyError(f"{len(table)} rows are too few for three parts", hint="give more rows")
