"""Compute the best RMSE, MAE, R² or rank correlation that a model can reach on noisy labels."""

from __future__ import annotations

import numpy as np

from molgraph.base.seeds import generator
from molgraph.evaluate.metrics import evaluate_metric, get_metric

NOISY = ("rmse", "mae", "r2", "spearman", "kendall")


def noise_ceiling(y: np.ndarray, sd: float, metric: str, *, rows: int = 0, n: int = 200) -> float:
    """The mean score of a model that knows every true value, judged by labels with noise.

    RMSE and MAE are those of the noise itself. For the others (Brown, Muchmore and Hajduk 2009, Drug Discov. Today
    14:420) true values are the measured ones, drawn to their mean until noise restores the measured spread, and new
    labels are drawn from them ``n`` times.

    Args:
        y: measured values, float [molecules].
        sd: standard deviation of one measurement, in y's unit.
        metric: one of ``NOISY``; another has no ceiling: NaN, as without noise, or where all that y has is noise.
        rows: test rows of a fold, drawn each time; 0 for all.

    Example:
        >>> noise_ceiling(np.arange(9.0), 0.6, "rmse")
        0.6
    """
    y = y[np.isfinite(y)]
    if metric not in NOISY or not np.isfinite(sd) or sd <= 0 or len(y) < 3:
        return float("nan")
    if metric in ("rmse", "mae"):
        return float(sd * (1.0 if metric == "rmse" else np.sqrt(2 / np.pi)))
    kept = 1 - sd**2 / y.var(ddof=1)
    if kept <= 0:
        return float("nan")
    true = y.mean() + (y - y.mean()) * np.sqrt(kept)
    rng, judge = generator(0, "noise ceiling"), get_metric(metric)
    size = min(rows or len(true), len(true))
    scores = []
    for _ in range(n):
        part = rng.choice(true, size, replace=False)
        scores.append(evaluate_metric(judge, part + rng.normal(0, sd, size), part)[0])
    return float(np.mean(scores))
