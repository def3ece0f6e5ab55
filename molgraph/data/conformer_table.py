"""Expand a table of molecules into a table of conformers, one row each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.base.printable import count
from molgraph.chem.conformer import Conformers
from molgraph.data.graph_values import Geometry
from molgraph.data.table import UNREADABLE, Entities, Table

SHOWN = 3  # reasons why rows have no conformer


class ConformerRows(NamedTuple):
    """A row for each conformer, and one for each molecule that has none."""

    table: Table  # whose column of molecules holds atoms in space; a row's weight is shared among its conformers
    row: np.ndarray  # int64, the row of the given table that each one stands for, ascending
    first: np.ndarray  # int64, the first of the rows that stand for each one of the given table


def with_geometries(table: Table, values: np.ndarray | None = None) -> Table:
    """The table with atoms in space in its column of molecules: ``values``, or none.

    Raises:
        UnsupportedError: no column of molecules or several, another column, or targets of atoms or bonds.
    """
    kinds = [column.kind for column in table.entities]
    if kinds != ["molecule"]:
        raise UnsupportedError(
            f"conformers are made of one column of molecules, and the table has {', '.join(kinds) or 'none'}",
            hint="name the column (--smiles, --input); where atoms have positions, leave --conformers out",
        )
    if any(target.level != "row" for target in table.targets):
        words = "a conformer has hydrogens that the SMILES does not write, so values of atoms and bonds do not fit it"
        raise UnsupportedError(words, hint="take a model that reads molecules, such as dmpnn")
    values = np.full(len(table), None, dtype=object) if values is None else values
    return replace(table, entities=(Entities(table.entities[0].name, "geometry", values),))


def expand(table: Table, made: Sequence[Conformers]) -> ConformerRows:
    """A row for each conformer of each row that is ``ok``; rows whose molecule has none are marked with the reason.

    Args:
        table: with one column of molecules.
        made: conformers of each row that is ``ok``, in order.

    Example:
        >>> from molgraph.chem.conformer import make_conformers
        >>> from molgraph.data.table import make_table
        >>> rows = expand(make_table(["CO", "", "C"]), make_conformers(["CO", "C"], n=2))
        >>> rows.row.tolist(), str(rows.table.entities[0].values[0]), rows.table.entities[0].values[2]
        ([0, 0, 1, 2, 2], 'geometry of 6 atoms', None)
    """
    n, values, rows = np.ones(len(table), dtype=np.int64), list[Geometry | None](), np.flatnonzero(table.ok)
    n[rows] = [max(len(entry.positions), 1) for entry in made]
    row, first = np.repeat(np.arange(len(table)), n), np.cumsum(n) - n
    of_row = dict(zip(rows.tolist(), made, strict=True))
    for i in range(len(table)):
        entry = of_row.get(i)
        values += [None] if entry is None or entry.reason else [Geometry(entry.numbers, at) for at in entry.positions]
    bad = [i for i, entry in of_row.items() if entry.reason]
    reasons = np.array([of_row[i].reason for i in bad], dtype=object)
    column = np.empty(len(row), dtype=object)
    column[:] = values
    expanded = with_geometries(table.with_status(np.array(bad, dtype=np.int64), UNREADABLE, reasons).take(row), column)
    if len(row) > len(table):
        weights = np.ones(len(table)) if table.weights is None else table.weights
        expanded = replace(expanded, weights=(weights / n)[row])
    return ConformerRows(expanded, row, first)


def conformer_notes(made: Sequence[Conformers], part: str, relax: str) -> tuple[str, ...]:
    """Why molecules of a part have no conformer, the most common reasons first, and how many another field relaxed."""
    reasons = Counter(entry.reason for entry in made if entry.reason)
    notes = [f"left out of the {part} part: {n:,} x {words}" for words, n in reasons.most_common(SHOWN)]
    if other := sum(entry.relaxed == "uff" != relax for entry in made):
        notes.append(f"{count(other, 'molecule')} of the {part} part relaxed by UFF, as MMFF94 lacks parameters")
    return tuple(notes)
