"""Write targets as JSON values, say why rows cannot be read, and get what a method has fitted."""

from __future__ import annotations

from typing import Any

import numpy as np

from molgraph.base.contracts import Method, Target
from molgraph.base.errors import UsageError
from molgraph.chem.smiles import why_unreadable
from molgraph.data.table import Table


def target_meta(target: Target) -> dict[str, Any]:
    """A target as JSON values; the level is left out where it is that of rows, as in files of 0.1."""
    level = {} if target.level == "row" else {"level": target.level}
    return {"name": target.name, "kind": target.kind, "classes": list(target.classes), "bounds": target.bounds} | level


def reasons(table: Table) -> np.ndarray:
    """Why a row cannot be read, object array [n]; empty where it can.

    Example:
        >>> from molgraph.data.table import make_table
        >>> reasons(make_table(["C", None])).tolist()
        ['', 'no molecule in this row']
    """
    found = table.reason.copy()
    for column in table.entities:
        if column.kind == "molecule":
            why = {text: why_unreadable(text) for text in dict.fromkeys(column.values[table.ok])}
            for i in np.flatnonzero(table.ok):
                found[i] = found[i] or why[column.values[i]]
    found[~table.ok & (found == "")] = "no molecule in this row"
    return found


def whole(method: Method) -> Any:
    """What a method's ``fit`` left; raises ``UsageError`` before it."""
    if not hasattr(method, "_fitted"):
        raise UsageError("this method has not been fitted", hint="call fit(table) first")
    return method._fitted
