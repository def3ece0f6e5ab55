"""Prepare the values that the template of a training's report shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import pandas as pd
from markupsafe import Markup

from molgraph.base.contracts import Prediction, Target
from molgraph.chem.draw import draw_molecule
from molgraph.data.table import Table
from molgraph.evaluate import report_plots as plots
from molgraph.evaluate.metrics import columns_of, get_metric
from molgraph.evaluate.report_style import NONE, number, short
from molgraph.evaluate.statistics import score_interval

FLOOR = "mean"
MAX_TARGETS, MAX_WORST, MAX_ROWS, MAX_NOTES = 6, 8, 50, 12


def plain_table(frame: pd.DataFrame) -> Markup:
    """A frame as an HTML table, numbers with three digits, empty where there is none."""
    shown = frame.copy()
    for name in shown.select_dtypes("number"):
        whole = shown[name].dropna().mod(1).eq(0).all()
        shown[name] = ["" if v != v else f"{v:,.0f}" if whole else f"{v:.3g}" for v in shown[name]]
    return Markup(shown.fillna("").to_html(index=False, border=0))  # pandas escapes what is in cells


def flatten(values: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    """Nested mappings as pairs of dotted key and text.

    Example:
        >>> flatten({"seed": 0, "versions": {"torch": "2"}})
        [('seed', '0'), ('versions.torch', '2')]
    """
    out: list[tuple[str, str]] = []
    for key, value in values.items():
        if isinstance(value, Mapping):
            out.extend(flatten(value, f"{prefix}{key}."))
        else:
            text = ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
            out.append((f"{prefix}{key}", text))
    return out


def score_tables(
    scores: pd.DataFrame, table: Table, predictions: Mapping[str, Prediction], counts: Mapping[str, str]
) -> list[dict[str, Any]]:
    """One table a target: a row a method, a column a metric, the best in bold, an interval for each score.

    Of many targets, whose resampling would take long, the first metric alone has intervals.
    """
    return [
        _score_table(part, table, predictions, target, counts)
        for target in table.row_targets
        if not (part := scores[scores["target"] == target.name]).empty
    ]


def _score_table(
    part: pd.DataFrame,
    table: Table,
    predictions: Mapping[str, Prediction],
    target: Target,
    counts: Mapping[str, str],
) -> dict[str, Any]:
    metrics = [get_metric(name) for name in part["metric"].unique()]
    few, y = len(table.row_targets) <= MAX_TARGETS, _measured(table, target)
    values = part.groupby("metric")["value"]
    best = {m.name: (values.max() if m.higher_is_better else values.min())[m.name] for m in metrics}
    scores, rows = {(r.method, r.metric): r for r in part.itertuples()}, []
    for method in part["method"].unique():
        cells, n = [], 0
        for i, m in enumerate(metrics):
            one, span = scores.get((method, m.name)), ""
            if one is None:
                cells.append({"text": NONE, "best": False, "note": "", "range": ""})
                continue
            if method in predictions and method != FLOOR and (few or i == 0) and m.kinds:
                _, low, high = score_interval(y, columns_of(predictions[method], target), m.name, n=500)
                span = f"{number(low)} to {number(high)}" if np.isfinite(low) else ""
            leads = one.value == best[m.name]
            cells.append({"text": number(one.value), "best": leads, "note": one.note, "range": span})
            n = one.n if m.kinds else n
        rows.append({"method": method, "floor": method == FLOOR, "cells": cells, "n": n})
    notes = [counts[target.name]] if target.name in counts else []
    if n_limits := int(table.with_targets([target.name]).limited.sum()):
        notes.append(f"{n_limits:,} of these rows are limits such as >8: they count in the share of limits met alone.")
    notes += [f"{r.method}, {get_metric(r.metric).label}: {r.note}." for r in part.itertuples() if r.note]
    ranges = [any(row["cells"][k]["range"] for row in rows) for k in range(len(metrics))]
    return {
        "target": target.name,
        "metrics": [f"{m.label or m.name} {'↑' if m.higher_is_better else '↓'}" for m in metrics],
        "rows": rows,
        "notes": notes[:MAX_NOTES],
        "ranged": "" if not any(ranges) else "each score" if any(ranges[1:]) else "the first score",
    }


def _measured(table: Table, target: Target) -> np.ndarray:
    y = table.with_targets([target.name]).y
    return np.full(len(table), np.nan) if y is None else y[:, 0]


def target_detail(table: Table, predictions: Mapping[str, Prediction], target: Target, best: str) -> dict[str, Any]:
    """A target's figure and the molecules that the best method got most wrong."""
    y, key = _measured(table, target), f"target-{table.row_targets.index(target)}"
    shown = {name: columns_of(p, target) for name, p in predictions.items() if name != FLOOR or len(predictions) == 1}
    methods = " and ".join(shown)
    if target.kind == "binary":
        figure = plots.classifier(y, shown, target.name, key=key)
        alt = f"ROC, precision-recall and calibration curves of {methods}"
        caption = "Dashed: chance (ROC), the share of ones (precision), perfect calibration."
    elif target.kind == "multiclass":
        figure, alt = plots.confusion(y, shown, target.classes, key=key), f"Confusion matrices of {methods}"
        caption = "Numbers are test rows; colour is the share of a measured class."
    else:
        figure = plots.parity(y, shown, target.name, key=key)
        alt = f"Predicted against measured {target.name} of {methods}"
        caption = "Each point is a measured test value; on the dashed line the prediction is exact. "
        caption += "Last panel: the share of values with at most this error."
    return {
        "heading": f"{target.name}: predicted and measured",
        "figure": figure,
        "alt": alt,
        "caption": caption,
        "worst_method": best,
        "worst": list(_worst(table, y, shown, target, best)),
    }


def _worst(
    table: Table, y: np.ndarray, shown: Mapping[str, np.ndarray], target: Target, best: str
) -> Iterator[dict[str, Any]]:
    p, classes = shown[best], target.kind == "multiclass"
    if classes:
        code = np.where(np.isfinite(y), y, 0).astype(np.int64)
        error = np.where(np.isfinite(y), 1 - p[np.arange(len(y)), code], np.nan)
    else:
        error = np.abs(p - y)
    order = np.argsort(np.where(np.isfinite(error), -error, np.inf), kind="stable")
    for i in order[: min(MAX_WORST, int(np.isfinite(error).sum()))]:
        lines = [("measured", target.classes[int(y[i])] if classes else number(float(y[i])))]
        for name, q in shown.items():
            if classes:
                k = int(q[i].argmax()) if np.isfinite(q[i]).all() else -1
                lines.append((name, NONE if k < 0 else f"{target.classes[k]} ({number(q[i][k])})"))
            else:
                lines.append((f"{name}: P(1)" if target.kind == "binary" else name, number(float(q[i]))))
        first = table.entities[0]
        molecule = first.kind == "molecule"
        picture = _picture(str(first.values[i])) if molecule else Markup.escape(table.inputs[i])
        yield {"id": table.ids[i], "picture": picture, "lines": lines}


def _picture(smiles: str, width: int = 220, height: int = 150) -> Markup:
    return Markup(draw_molecule(smiles, width=width, height=height))  # draw_molecule escapes what it was given


def new_rows(p: Prediction) -> dict[str, Any]:
    """A prediction's rows for people: structure, values with their spread, status and reason."""
    rows, n = [], min(len(p), MAX_ROWS)
    for i in range(n):
        cells = [number(v) for v in p.value[i]]
        if p.spread is not None:
            cells = [c if c == NONE else f"{c} ± {number(s)}" for c, s in zip(cells, p.spread[i], strict=True)]
        text = "" if p.inputs is None else str(p.inputs[i])
        row = {"id": p.ids[i], "picture": _picture(text, 150, 100) if text else "", "input": short(text, 200)}
        rows.append(row | {"cells": cells, "ok": p.status[i] == "ok", "status": p.status[i], "reason": p.reason[i]})
    caption = f"{int(p.ok.sum()):,} of {len(p):,} rows have a prediction"
    if p.spread is not None:
        caption += "; ± is the standard deviation that the model states, which is not calibrated"
    caption += f"; the first {n} are shown" if len(p) > n else ""
    return {"columns": p.columns, "rows": rows, "caption": caption + "."}


def unread_rows(table: Table, predictions: Mapping[str, Prediction]) -> dict[str, Any] | None:
    """Test rows that a method gives no value for, with the reason; None where there are none."""
    status, reason = table.status.copy(), table.reason.copy()
    for p in predictions.values():
        fresh = (status == "ok") & ~p.ok
        status[fresh], reason[fresh] = p.status[fresh], p.reason[fresh]
    bad = np.flatnonzero(status != "ok")
    if not len(bad):
        return None
    rows = [
        {"id": table.ids[i], "input": str(table.inputs[i])[:200], "status": status[i], "reason": reason[i]}
        for i in bad[:MAX_ROWS]
    ]
    more = f"; the first {MAX_ROWS} are shown" if len(bad) > MAX_ROWS else ""
    return {"rows": rows, "caption": f"{len(bad):,} of {len(table):,} test rows{more}."}
