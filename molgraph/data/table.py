"""Make a table from sequences of SMILES or RDKit molecules."""

from __future__ import annotations

from dataclasses import replace
from numbers import Number
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.packed import Packed, offsets_of
from molgraph.base.printable import encodable
from molgraph.base.table import MISSING, OK, UNREADABLE, Entities, Table, Target
from molgraph.chem.smiles import is_mol, write_smiles

__all__ = ["MISSING", "OK", "UNREADABLE", "Entities", "Table", "concatenate", "make_table", "row_name"]


def make_table(
    smiles: Any, *, ids: Any = None, targets: tuple[Target, ...] = (), y: Any = None, **columns: Any
) -> Table:
    """A table of one molecule column from plain sequences of SMILES or RDKit molecules, which are written as SMILES.

    What is neither (nothing, a number) is a row with a reason.

    Example:
        >>> table = make_table(["CCO", None, 5])
        >>> list(table.status), table.reason[2]
        (['ok', 'missing', 'unreadable'], 'a number, not SMILES text')
    """
    n = len(smiles)
    values, status, reason = np.empty(n, dtype=object), np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    for i, value in enumerate(smiles):
        if isinstance(value, str) and value and not value.isspace():
            values[i] = encodable(value)
        else:
            values[i], status[i], reason[i] = _judge(value)
    labels = np.array([encodable(str(i)) for i in (range(n) if ids is None else ids)], dtype=object)
    if y is not None:
        y = np.asarray(y, dtype=np.float64).reshape(n, -1)
    return Table(labels, (Entities("smiles", "molecule", values),), status, reason, tuple(targets), y, **columns)


def concatenate(first: Table, second: Table) -> Table:
    """The rows of two tables of the same entities, targets and features, one after the other."""

    def stacked(a: Any, b: Any) -> Any:
        return None if a is None or b is None else np.concatenate([a, b])

    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in (first, second)]
    pairs = zip(first.entities, second.entities, strict=True)
    return replace(
        first,
        **{name: stacked(getattr(first, name), getattr(second, name)) for name in ("ids", "status", "reason", "y")},
        entities=tuple(replace(a, values=np.concatenate([a.values, b.values])) for a, b in pairs),
        packed={name: Packed.of([*data.lists(), *second.packed[name].lists()]) for name, data in first.packed.items()},
        weights=None if first.weights is None and second.weights is None else np.concatenate(weights),
        features=stacked(first.features, second.features),
        split=None if first.split is None else np.concatenate([first.split, np.full(len(second), None, dtype=object)]),
        notes=tuple(dict.fromkeys((*first.notes, *second.notes))),
        index=None if first.index is None or second.index is None else first.index.append(second.index),
        limits=_both_limits(first, second),
        points=_both_points(first, second),
    )


def _both_points(first: Table, second: Table) -> Packed | None:
    """The points of two tables' curves, none in the rows of one that has none."""
    both = [part.points for part in (first, second)]
    if both == [None, None]:
        return None
    sizes = [
        np.zeros(len(part), np.int64) if p is None else p.sizes for part, p in zip((first, second), both, strict=True)
    ]
    return Packed(offsets_of(np.concatenate(sizes)), np.concatenate([p.values for p in both if p is not None]))


def _both_limits(first: Table, second: Table) -> np.ndarray | None:
    """The limits of two tables of the same targets, NaN in the rows of one that has none."""
    if first.limits is None and second.limits is None:
        return None
    shapes = [(len(part), len(part.row_targets), 2) for part in (first, second)]
    return np.concatenate(
        [
            np.full(shape, np.nan) if part.limits is None else part.limits
            for part, shape in zip((first, second), shapes, strict=True)
        ]
    )


def _judge(value: Any) -> tuple[str, str, str]:
    """Text, status and reason of a value that stands where SMILES are expected."""
    if is_mol(value):
        text, reason = write_smiles(value)
        return text, UNREADABLE if reason else OK, reason
    if isinstance(value, str) or (pd.api.types.is_scalar(value) and pd.isna(value)):
        return value if isinstance(value, str) else "", MISSING, "no molecule in this row"
    number = isinstance(value, Number) and not isinstance(value, bool)
    reason = "a number, not SMILES text" if number else f"not text: {type(value).__name__}"
    return str(value) if number else "", UNREADABLE, reason


def row_name(row: int, id: Any) -> str:
    """A row as messages call it: counted from 1, and by its id where the source has one.

    Ids of a source without any are row numbers from 0, as pandas counts, which would be a second number for one row.

    Example:
        >>> row_name(2, "AB-7"), row_name(2, "2")
        ('row 3 (id AB-7)', 'row 3')
    """
    return f"row {row + 1}" if str(id) in ("", str(row)) else f"row {row + 1} (id {id})"
