"""Measure how many values intervals hold, and how large errors are, by the distance to the training molecules."""

from __future__ import annotations

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.data.table import Table
from molgraph.evaluate.measures import NUMBERS
from molgraph.evaluate.metrics import columns_of

QUARTERS = ("nearest quarter", "second quarter", "third quarter", "farthest quarter")
GRADES = ("inside", "edge", "outside")
LEAST = 20  # rows below which they are not divided into quarters


def coverage_frame(table: Table, prediction: Prediction) -> pd.DataFrame:
    """Shares of measured values inside their intervals, or of classes inside their sets.

    Args:
        table: rows with measured values of targets of rows.
        prediction: of these rows, with intervals or sets (``TARGET_set``), and ``distance`` where it is known.

    Returns:
        A row for each target and part: ``target``, ``part`` (all rows, quarters by distance, grades of the domain),
        ``n``, ``coverage``, ``width`` (mean; of classes the mean number in a set), ``error`` (RMSE; of classes the
        mean of 1 less the probability of the measured class). No rows where there are neither intervals nor sets.
    """
    rows, column = [], 0
    for j, target in enumerate(table.row_targets):
        columns = slice(column, column + len(target.columns))
        column = columns.stop
        if table.y is None or target.name in prediction.unlearned:
            continue
        y, value = table.y[:, j], columns_of(prediction, target)
        held, width, error = np.zeros(len(table), bool), np.full(len(table), np.nan), np.full(len(table), np.nan)
        if target.kind in NUMBERS and prediction.interval is not None:
            low, high = (end[:, columns.start] for end in prediction.interval)
            held, width, error = (low <= y) & (y <= high), high - low, (y - value) ** 2
        elif f"{target.name}_set" in prediction.extra:
            sets = [str(members).split("|") if members else [] for members in prediction.extra[f"{target.name}_set"]]
            known = np.isfinite(y) & prediction.ok
            classes = target.classes or ("0", "1")
            names = [str(classes[int(c)]) if k else "" for c, k in zip(np.nan_to_num(y), known, strict=True)]
            held = np.array([name in members for name, members in zip(names, sets, strict=True)], dtype=bool)
            width = np.where(known, [float(len(members)) for members in sets], np.nan)
            p = value if value.ndim == 1 else value[np.arange(len(y)), np.nan_to_num(y).astype(int)]
            error = np.abs(y - value) if value.ndim == 1 else 1 - p
        else:
            continue
        use = np.isfinite(y) & np.isfinite(width)
        for name, part in _parts(prediction, use).items():
            mean = float(error[part].mean()) if part.any() else np.nan
            rows.append(
                {
                    "target": target.name,
                    "part": name,
                    "n": int(part.sum()),
                    "coverage": float(held[part].mean()) if part.any() else np.nan,
                    "width": float(width[part].mean()) if part.any() else np.nan,
                    "error": mean**0.5 if target.kind in NUMBERS else mean,
                }
            )
    return pd.DataFrame(rows, columns=["target", "part", "n", "coverage", "width", "error"])


def coverage_words(frame: pd.DataFrame, nominal: float) -> list[str]:
    """A sentence for each target on its coverage, that by distance, and its error by grade."""
    words = []
    for target, group in frame.groupby("target", sort=False):
        parts = group.set_index("part")
        whole = parts.loc["all"]
        text = f"{target}: intervals of {nominal:.0%} hold {whole.coverage:.0%} of {int(whole.n):,} test values"
        quarters = parts[parts.index.isin(QUARTERS)]
        if len(quarters):
            by = ", ".join(f"{share:.0%}" for share in quarters["coverage"])
            text += f" ({by} from the nearest quarter to the farthest)"
        grades = parts[parts.index.isin(GRADES) & (parts["n"] > 0)]
        if len(grades) > 1:
            by = ", ".join(f"{row.error:.3g} {row.Index} ({int(row.n):,} rows)" for row in grades.itertuples())
            text += f"; error {by}"
        words.append(text)
    return words


def calibration_words(table: Table, prediction: Prediction) -> list[str]:
    """A sentence for each binary target on the Brier score of its probabilities, as predicted and calibrated."""
    words = []
    for j, target in enumerate(table.row_targets):
        fine = prediction.extra.get(f"{target.name}_calibrated")
        if target.kind != "binary" or fine is None or table.y is None:
            continue
        y, p = table.y[:, j], columns_of(prediction, target)
        known = np.isfinite(y) & np.isfinite(p)
        if known.any():
            before, after = (float(((y - estimate)[known] ** 2).mean()) for estimate in (p, fine))
            words.append(
                f"{target.name}: Brier score {before:.3f}, {after:.3f} of the calibrated probabilities"
                f" ({target.name}_calibrated), on {int(known.sum()):,} test values"
            )
    return words


def _parts(prediction: Prediction, use: np.ndarray) -> dict[str, np.ndarray]:
    """The rows of each part, those to use alone."""
    parts = {"all": use}
    distance = prediction.extra.get("distance")
    if distance is not None and use.sum() >= LEAST:
        order = np.flatnonzero(use)[np.argsort(distance[use], kind="stable")]
        for name, rows in zip(QUARTERS, np.array_split(order, len(QUARTERS)), strict=True):
            parts[name] = np.isin(np.arange(len(use)), rows)
    if "domain" in prediction.extra:
        parts |= {grade: use & (prediction.extra["domain"] == grade) for grade in GRADES}
    return parts
