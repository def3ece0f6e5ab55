"""Take the labelled, readable rows of a table with one target, some of them at random where there are many."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.data.table import Table


def labelled_rows(table: Table, rows: int, fewest: int, seed: int) -> tuple[Table, list[str]]:
    """The rows with a value of the table's only target, and a note where not all are taken.

    Args:
        table: with one target of whole rows.
        rows: taken at most, drawn by the seed.
        fewest: needed.
        seed: of the draw.

    Raises:
        LabelError: fewer than ``fewest``, or values that are all equal.
    """
    y, notes = np.asarray(table.y)[:, 0], list[str]()
    kept = np.flatnonzero(np.isfinite(y) & table.ok)
    if len(kept) > rows:
        notes.append(f"{rows:,} of {len(kept):,} rows, drawn at random")
        kept = np.sort(generator(seed, "rows").permutation(kept)[:rows])
    if len(kept) < fewest or np.ptp(y[kept]) == 0:
        words = f"{len(kept)} rows have a molecule and a value of {table.row_targets[0].name}, or all values are equal"
        raise LabelError(words, hint=f"give {fewest} rows or more, with labels that vary")
    return table.take(kept), notes
