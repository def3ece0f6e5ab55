"""Tabulate how often intervals hold the measured value, and the error, by distance and by grade of the domain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.table import VALUES
from molgraph.data.table import Table
from molgraph.evaluate.coverage import coverage_frame
from molgraph.evaluate.report_style import number

HEAD = ("method", "test rows", "within", "mean width", "error", "rows")


def reliability_tables(table: Table, predictions: Mapping[str, Prediction]) -> list[dict[str, Any]]:
    """For each target the coverage of intervals or sets, and the error, of the methods that give them.

    Returns:
        ``caption``, ``head`` and ``rows`` of each table, as ``coverage_frame`` measures them; none of a target without.
    """
    frames = [coverage_frame(table, p).assign(method=name) for name, p in predictions.items()]
    every, out = pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(), []
    for target in table.row_targets:
        subset = every[(every["target"] == target.name) & (every["n"] > 0)] if len(every) else every
        if not len(subset):
            continue
        what = "intervals, their mean width, and RMSE"
        if target.kind not in VALUES:
            what = "sets of classes, the classes in one, and 1 less the probability of the measured class"
        rows = [
            [r.method, r.part, f"{r.coverage:.1%}", number(r.width), number(r.error), f"{r.n:,}"]
            for r in subset.itertuples()
        ]
        caption = f"{target.name}: share of measured values within {what}"
        out.append({"caption": caption, "head": list(HEAD), "rows": rows})
    return out
