"""Tabulate how often intervals hold the measured value, and the error by grade of the applicability domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.base.table import VALUES
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of
from molgraph.evaluate.report_style import number

GRADES = ("inside", "edge", "outside")  # of the wrapper domain, from near to far


def reliability_tables(table: Table, predictions: Mapping[str, Prediction]) -> list[dict[str, Any]]:
    """For each target the coverage of intervals and the error by grade, of the methods that give them.

    Returns:
        ``caption``, ``head`` and ``rows`` of each table; of a target or method without intervals and grades none.
    """
    out = []
    for j, target in enumerate(table.row_targets):
        y = np.full(len(table), np.nan) if table.y is None else table.y[:, j]
        covered = [row for name, p in predictions.items() if (row := _coverage(name, p, target, y))]
        if covered:
            caption = f"{target.name}: share of measured values within their interval"
            out.append({"caption": caption, "head": ["method", "within", "mean width", "rows"], "rows": covered})
        graded = [row for name, p in predictions.items() for row in _by_grade(name, p, target, y)]
        if graded:
            what = (
                "mean absolute error" if target.kind in VALUES else "mean of 1 less the probability of the true class"
            )
            caption = f"{target.name}: {what}, by how far molecules are from the training's"
            out.append({"caption": caption, "head": ["method", "domain", "error", "rows"], "rows": graded})
    return out


def _coverage(name: str, p: Prediction, target: Target, y: np.ndarray) -> list[str]:
    """A method's row: share within the interval, mean width, rows; empty where it has none."""
    if p.interval is None or target.kind not in VALUES:
        return []
    place = [column for each in p.targets for column in each.columns].index(target.name)
    low, high = (each[:, place] for each in p.interval)
    known = np.isfinite(y) & np.isfinite(low) & np.isfinite(high)
    if not known.any():
        return []
    within = ((y >= low) & (y <= high))[known].mean()
    return [name, f"{within:.1%}", number(float((high - low)[known].mean())), f"{known.sum():,}"]


def _by_grade(name: str, p: Prediction, target: Target, y: np.ndarray) -> list[list[str]]:
    """A method's rows: the error of each grade's molecules; none where it gives no grades."""
    if "domain" not in p.extra:
        return []
    value, grades = columns_of(p, target), np.asarray(p.extra["domain"], dtype=object)
    if target.kind == "multiclass":
        code = np.where(np.isfinite(y), y, 0).astype(np.int64)
        error = np.where(np.isfinite(y), 1 - value[np.arange(len(y)), code], np.nan)
    else:
        error = np.abs(value - y)
    rows = []
    for grade in GRADES:
        own = error[(grades == grade) & np.isfinite(error)]
        if len(own):
            rows.append([name, grade, number(float(own.mean())), f"{len(own):,}"])
    return rows
