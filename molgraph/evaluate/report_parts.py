"""Prepare the values that the report's template shows."""

from __future__ import annotations

import base64
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
from molgraph.evaluate.statistics import score_interval

FLOOR = "mean"
MAX_TARGETS, MAX_WORST, MAX_ROWS = 6, 8, 50
NONE = "\N{EM DASH}"


def data_uri(svg: str) -> str:
    """An SVG as the address of an image, so that its ids and styles touch nothing else on the page."""
    return "" if not svg else "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()


def number(value: float) -> str:
    """Three significant digits, or a dash for NaN.

    Example:
        >>> number(0.12345), number(0.69), number(1234.5), number(float("nan")) == NONE
        ('0.123', '0.690', '1,234', True)
    """
    if not np.isfinite(value):
        return NONE
    text = f"{value:,.0f}" if 1000 <= abs(value) < 1e7 else f"{value:#.3g}".rstrip(".") if value else "0"
    return text.replace("-", "\N{MINUS SIGN}")


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
    out = []
    for target in table.row_targets:
        part = scores[scores["target"] == target.name]
        if part.empty:
            continue
        names = list(dict.fromkeys(part["metric"]))
        metrics = [get_metric(name) for name in names]
        found = {(r.method, r.metric): r for r in part.itertuples()}
        best = {}
        for m in metrics:
            values = part.loc[part["metric"] == m.name, "value"].dropna()
            best[m.name] = (values.max() if m.higher_is_better else values.min()) if len(values) else np.nan
        rows = []
        for method in dict.fromkeys(part["method"]):
            cells, n = [], 0
            for m in metrics:
                one = found.get((method, m.name))
                if one is None:
                    cells.append({"text": NONE, "best": False, "note": "", "range": ""})
                    continue
                n = one.n
                resampled = m is metrics[0] or len(table.row_targets) <= MAX_TARGETS
                span = _span(table, predictions, method, target, m.name) if resampled else ""
                text = number(one.value)
                cells.append({"text": text, "best": one.value == best[m.name], "note": one.note, "range": span})
            rows.append({"method": method, "floor": method == FLOOR, "cells": cells, "n": n})
        arrows = [f"{m.label or m.name} {'↑' if m.higher_is_better else '↓'}" for m in metrics]
        notes = [counts[target.name]] if target.name in counts else []
        notes += [f"{r.method}, {get_metric(r.metric).label}: {r.note}." for r in part.itertuples() if r.note]
        ranges = [any(row["cells"][k]["range"] for row in rows) for k in range(len(metrics))]
        ranged = "" if not any(ranges) else "each score" if any(ranges[1:]) else "the first score"
        out.append({"target": target.name, "metrics": arrows, "rows": rows, "notes": notes[:12], "ranged": ranged})
    return out


def _span(table: Table, predictions: Mapping[str, Prediction], method: str, target: Target, metric: str) -> str:
    if method not in predictions or method == FLOOR:
        return ""
    found = score_interval(_measured(table, target), columns_of(predictions[method], target), metric, n=500)
    return f"{number(found.low)} to {number(found.high)}" if np.isfinite(found.low) else ""


def _measured(table: Table, target: Target) -> np.ndarray:
    y = table.with_targets([target.name]).y
    return np.full(len(table), np.nan) if y is None else y[:, 0]


def target_detail(table: Table, predictions: Mapping[str, Prediction], target: Target, best: str) -> dict[str, Any]:
    """A target's figure and the molecules that the best method got most wrong."""
    y = _measured(table, target)
    shown = {name: columns_of(p, target) for name, p in predictions.items() if name != FLOOR} or {
        name: columns_of(p, target) for name, p in predictions.items()
    }
    methods = " and ".join(shown)
    if target.kind == "binary":
        figure, alt = (
            plots.classifier(y, shown, target.name),
            f"ROC, precision-recall and calibration curves of {methods}",
        )
        caption = "Dashed: chance (ROC), the share of ones (precision), perfect calibration."
    elif target.kind == "multiclass":
        figure, alt = plots.confusion(y, shown, target.classes), f"Confusion matrices of {methods}"
        caption = "Numbers are test rows; colour is the share of a measured class."
    else:
        figure, alt = plots.parity(y, shown, target.name), f"Predicted against measured {target.name} of {methods}"
        caption = (
            "Each point is a measured test value; on the dashed line the prediction is exact. "
            "Last panel: the share of values with at most this error."
        )
    return {
        "heading": f"{target.name}: predicted and measured",
        "figure": data_uri(figure),
        "alt": alt,
        "caption": caption,
        "worst_method": best,
        "worst": list(_worst(table, y, shown, target, best)),
    }


def _worst(
    table: Table, y: np.ndarray, shown: Mapping[str, np.ndarray], target: Target, best: str
) -> Iterator[dict[str, Any]]:
    p = shown[best]
    if target.kind == "multiclass":
        code = np.where(np.isfinite(y), y, 0).astype(np.int64)
        error = np.where(np.isfinite(y), 1 - p[np.arange(len(y)), code], np.nan)
    else:
        error = np.abs(p - y)
    order = np.argsort(np.where(np.isfinite(error), -error, np.inf), kind="stable")
    for i in order[: min(MAX_WORST, int(np.isfinite(error).sum()))]:
        said = target.classes[int(y[i])] if target.kind == "multiclass" else number(float(y[i]))
        lines = [("measured", said)]
        for name, q in shown.items():
            if target.kind == "multiclass":
                known = np.isfinite(q[i]).all()
                k = int(q[i].argmax()) if known else 0
                lines.append((name, f"{target.classes[k]} ({number(q[i][k])})" if known else NONE))
            else:
                lines.append((f"{name}: P(1)" if target.kind == "binary" else name, number(float(q[i]))))
        yield {"id": table.ids[i], "picture": _entity_picture(table, int(i)), "lines": lines}


def _entity_picture(table: Table, row: int) -> Markup:
    """A row's molecule as a picture; another entity as text."""
    first = table.entities[0]
    return _picture(str(first.values[row])) if first.kind == "molecule" else Markup.escape(table.inputs[row])


def _picture(smiles: str, width: int = 220, height: int = 150) -> Markup:
    return Markup(draw_molecule(smiles, width=width, height=height))  # draw_molecule escapes what it was given


def new_rows(p: Prediction) -> dict[str, Any]:
    """A prediction's rows for people: structure, values with their spread, status and reason."""
    rows = []
    n = min(len(p), MAX_ROWS)
    for i in range(n):
        cells = [number(v) for v in p.value[i]]
        if p.spread is not None:
            cells = [c if c == NONE else f"{c} ± {number(s)}" for c, s in zip(cells, p.spread[i], strict=True)]
        text = "" if p.inputs is None else str(p.inputs[i])
        ok = p.status[i] == "ok"
        picture = _picture(text, 150, 100) if text else ""
        shown = text if len(text) <= 200 else text[:200] + "\N{HORIZONTAL ELLIPSIS}"
        row = {"id": p.ids[i], "picture": picture, "input": shown, "cells": cells, "ok": ok}
        rows.append(row | {"status": p.status[i], "reason": p.reason[i]})
    counts = f"{int(p.ok.sum()):,} of {len(p):,} rows have a prediction"
    spread = (
        "; ± is the standard deviation that the model states, which is not calibrated" if p.spread is not None else ""
    )
    more = f"; the first {n} are shown" if len(p) > n else ""
    return {"columns": p.columns, "rows": rows, "caption": counts + spread + more + "."}


def unread_rows(table: Table, predictions: Mapping[str, Prediction]) -> dict[str, Any] | None:
    """Test rows that a method gives no value for, with the reason; None where there are none."""
    status, reason = table.status.copy(), table.reason.copy()
    for p in predictions.values():
        fresh = (status == "ok") & ~p.ok
        status[fresh], reason[fresh] = p.status[fresh], p.reason[fresh]
    bad = np.flatnonzero(status != "ok")
    if not len(bad):
        return None
    texts = [str(table.inputs[i])[:200] for i in bad[:MAX_ROWS]]
    rows = [
        {"id": table.ids[i], "input": text, "status": status[i], "reason": reason[i]}
        for i, text in zip(bad[:MAX_ROWS], texts, strict=True)
    ]
    more = f"; the first {MAX_ROWS} are shown" if len(bad) > MAX_ROWS else ""
    return {"rows": rows, "caption": f"{len(bad):,} of {len(table):,} test rows{more}."}
