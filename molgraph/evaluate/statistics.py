"""Compute intervals of a score and of the difference of two methods, and adjust p-values."""

from __future__ import annotations

from statistics import fmean
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Metric
from molgraph.base.errors import ShapeError
from molgraph.base.seeds import generator
from molgraph.evaluate.metrics import evaluate_metric, get_metric, has_value


class Interval(NamedTuple):
    """A value and the ends of its bootstrap interval; all NaN where the rows give none."""

    value: float
    low: float
    high: float


def score_interval(
    y: np.ndarray, p: np.ndarray, metric: str | Metric, *, n: int = 1000, level: float = 0.95, seed: int = 0
) -> Interval:
    """Percentile bootstrap interval of a score (Efron and Tibshirani 1993, chapter 13).

    Args:
        y: measured values, float [rows]; rows with a NaN in ``y`` or ``p`` are left out.
        p: predictions, float [rows] or [rows, classes].
        metric: name or metric.
        n: resamples of the rows.
        level: share of resamples inside the interval.
        seed: of the resampling.

    Example:
        >>> y = np.arange(50.0)
        >>> score_interval(y, y + 1, "mae")
        Interval(value=1.0, low=1.0, high=1.0)
    """
    return _bootstrap(y, [[p]], metric, n, level, seed)


def paired_difference(
    y: np.ndarray,
    a: np.ndarray | list[np.ndarray],
    b: np.ndarray | list[np.ndarray],
    metric: str | Metric,
    n: int = 1000,
    seed: int = 0,
    *,
    level: float = 0.95,
) -> Interval:
    """Score of ``a`` less score of ``b`` on the same rows, with a paired percentile bootstrap interval.

    Both are scored on each resample, so what makes a row hard for both cancels. An interval that holds 0 says
    that these rows do not tell the two apart. It speaks of the choice of test rows alone, not of other seeds. A list
    holds several fits of one method, whose mean score counts.

    Example:
        >>> y = np.arange(50.0)
        >>> paired_difference(y, y + 1, y + 3, "mae")
        Interval(value=-2.0, low=-2.0, high=-2.0)
    """
    return _bootstrap(y, [fits if isinstance(fits, list) else [fits] for fits in (a, b)], metric, n, level, seed)


def _bootstrap(
    y: np.ndarray, methods: list[list[np.ndarray]], metric: str | Metric, n: int, level: float, seed: int
) -> Interval:
    """Percentile interval of one method's score, or of the first's less the second's."""
    keep, judge = np.isfinite(y), get_metric(metric)
    for p in (p for fits in methods for p in fits):
        if len(p) != len(y):
            raise ShapeError(f"{len(p)} predictions for {len(y)} measured values")
        keep &= has_value(p)
    y, methods = y[keep], [[p[keep] for p in fits] for fits in methods]

    def statistic(rows: np.ndarray) -> float:
        first, *second = (fmean(evaluate_metric(judge, y[rows], p[rows])[0] for p in fits) for fits in methods)
        return first - second[0] if second else first

    value = statistic(np.arange(len(y)))
    if not np.isfinite(value):
        return Interval(float("nan"), float("nan"), float("nan"))
    rng = generator(seed, "bootstrap")
    samples = np.array([statistic(rng.integers(0, len(y), len(y))) for _ in range(n)])
    samples = samples[np.isfinite(samples)]  # a resample of one class only has no score
    if not len(samples):
        return Interval(value, float("nan"), float("nan"))
    low, high = np.quantile(samples, [(1 - level) / 2, (1 + level) / 2])
    return Interval(value, float(low), float(high))


def holm(p: np.ndarray) -> np.ndarray:
    """Adjust p-values by Holm's step-down rule (1979, Scand. J. Stat. 6:65).

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    ordered = np.sort(p)
    adjusted = np.minimum(np.maximum.accumulate(ordered * np.arange(len(p), 0, -1)), 1.0)
    return adjusted[np.searchsorted(ordered, p)]
