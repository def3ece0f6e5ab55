"""Check that a split's file was made for a table, whatever standardiser the molecules of either went through."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from molgraph.base.errors import MismatchError
from molgraph.base.registry import names
from molgraph.chem.standardise import FIRST
from molgraph.data.splits.split import ANEW, Split, digests_of, row_contents, rows_hash
from molgraph.data.standardise import standardise
from molgraph.data.table import Table


def check_rows(split: Split, table: Table, source: str = "the split") -> None:
    """Raise ``MismatchError`` unless the table's rows are those of the split, as they stand or once standardised.

    Row numbers mean the same rows before and after standardising, so that one file serves ``train`` (which
    standardises) and a benchmark (which does not).

    Raises:
        MismatchError: the cause (the number of rows, their order, or the first one that differs) and what to do.
    """
    made = f"{source} was made for"
    if len(table) != split.n_rows:
        raise MismatchError(f"{made} a table of {split.n_rows} rows, this one has {len(table)}", hint=ANEW)
    tried = f"{ANEW}; tried with the standardisers {', '.join(names('standardiser'))}"
    closest: np.ndarray | None = None
    for contents in _forms(table):
        if not split.content or rows_hash(contents) == split.content:
            return
        mine, theirs = digests_of(contents), split.digests
        if len(mine) != len(theirs) or mine == theirs:  # a file of an earlier version has none
            continue
        found, asked = (np.array([text[i : i + 2] for i in range(0, len(text), 2)]) for text in (mine, theirs))
        differs = found != asked
        if sorted(found) == sorted(asked):
            row = int(differs.argmax())
            raise MismatchError(
                f"{made} the same rows in another order, from row {row + 1} (id {str(table.ids[row])!r}) on",
                hint=f"{ANEW}; a split kept as a .csv of ids knows no order",
            )
        closest = differs if closest is None or differs.sum() < closest.sum() else closest
    if closest is None:
        raise MismatchError(f"{made} other rows: ids or molecules differ, or stand in another order", hint=tried)
    if closest.mean() > 0.9:  # a digest is one of 256, so that a few are equal by chance
        raise MismatchError(
            f"{made} other rows: not one has the id and molecule that it had",
            hint=f"were the ids read from another column then (--id)? Else {tried}",
        )
    row, more = int(closest.argmax()), int(closest.sum()) - 1
    others = f", and {more:,} more have" if more else ""
    raise MismatchError(
        f"{made} other rows: row {row + 1} (id {str(table.ids[row])!r}) has another id or molecule{others}", hint=tried
    )


def _forms(table: Table) -> Iterator[list[str]]:
    """The contents of the rows: as they stand, then after each standardiser."""
    yield row_contents(table)
    if any(e.kind == "molecule" for e in table.entities):
        for preset in [*names("standardiser")[::-1], *(f"{name}/1" for name in FIRST)]:  # the default first
            if preset != "none":
                yield row_contents(standardise(table, preset))
