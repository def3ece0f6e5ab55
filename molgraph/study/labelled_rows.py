"""Take the labelled, readable rows of a table with one target, some of them at random where there are many."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import LabelError
from molgraph.base.seeds import generator
from molgraph.data.levels import labelled
from molgraph.data.standardise import standardise
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


def first_target(table: Table, rows: int, fewest: int, seed: int) -> tuple[Table, Target, list[str]]:
    """The standardised rows with a value of the first target, that target, and what was left out.

    Args:
        table: of molecules, as it was read.
        rows, fewest, seed: as ``labelled_rows`` takes them.

    Raises:
        LabelError: no target of whole rows, fewer rows than ``fewest``, or values that are all equal.
    """
    if not table.row_targets or table.y is None:
        raise LabelError("the table has no target of its rows", hint="name its column: -t COLUMN")
    target, more = table.row_targets[0], len(table.row_targets)
    table = replace(standardise(table.with_targets([target.name]), "standard"), weights=None)
    table, drawn = labelled_rows(table.take(np.flatnonzero(labelled(table))), rows, fewest, seed)
    return table, target, [*[f"of {more} targets the first, {target.name}"] * (more > 1), *drawn]
