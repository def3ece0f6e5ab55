"""What classical methods share about targets: which a table has, whether their labels fit, and their JSON form."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.data.table import Table


def row_targets(table: Table) -> tuple[tuple[Target, ...], np.ndarray]:
    """A table's targets at the row level and their values; raises ``DataError`` where a label does not fit.

    Example:
        >>> from molgraph.data.table import make_table
        >>> targets, y = row_targets(make_table(["C"], targets=(Target("y"),), y=[1.0]))
        >>> targets[0].name, y.tolist()
        ('y', [[1.0]])
    """
    targets = table.row_targets
    if not targets or table.y is None:
        raise DataError("the table has no target to learn", hint="name the measured columns with targets=")
    for j, target in enumerate(targets):
        if target.kind not in ("binary", "multiclass"):
            continue
        known = 2 if target.kind == "binary" else len(target.classes)
        labels = table.y[np.isfinite(table.y[:, j]), j]
        wrong = labels[~np.isin(labels, np.arange(known))]
        if len(wrong):
            raise DataError(
                f"the {target.kind} target {target.name!r} has the label {wrong[0]:g}",
                hint=f"its labels must be 0 to {known - 1}",
            )
    return targets, table.y


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
