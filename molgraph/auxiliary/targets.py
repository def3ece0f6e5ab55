"""What methods share: a target as JSON values and back, why rows cannot be read, and what was fitted."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from molgraph.base.contracts import Method, Target
from molgraph.base.errors import UsageError
from molgraph.chem.smiles import parse_smiles
from molgraph.data.table import Table


def target_meta(target: Target) -> dict[str, Any]:
    """A row-level target as JSON values."""
    return {"name": target.name, "kind": target.kind, "classes": list(target.classes), "bounds": target.bounds}


def target_from_meta(meta: Mapping[str, Any]) -> Target:
    """The target that ``target_meta`` described.

    Example:
        >>> target_from_meta(target_meta(Target("y", "multiclass", classes=("a", "b")))).columns
        ('y:a', 'y:b')
    """
    bounds = meta["bounds"]
    low_high = None if bounds is None else (float(bounds[0]), float(bounds[1]))
    if meta["kind"] not in ("regression", "binary", "multiclass", "bounded"):
        raise ValueError(f"{meta['kind']!r} is no kind of target")
    return Target(str(meta["name"]), meta["kind"], classes=tuple(map(str, meta["classes"])), bounds=low_high)


def reasons(table: Table) -> np.ndarray:
    """Why a row cannot be read, object array [n]; empty where it can.

    Example:
        >>> from molgraph.data.table import make_table
        >>> reasons(make_table(["C", None])).tolist()
        ['', 'no molecule in this row']
    """
    found = table.reason.copy()
    for i in np.flatnonzero(table.ok):
        found[i] = parse_smiles(table.smiles[i]).reason
    found[~table.ok & (found == "")] = "no molecule in this row"
    return found


def whole(method: Method) -> Any:
    """What a method's ``fit`` left; raises ``UsageError`` before it."""
    if not hasattr(method, "_fitted"):
        raise UsageError("this method has not been fitted", hint="call fit(table) first")
    return method._fitted
