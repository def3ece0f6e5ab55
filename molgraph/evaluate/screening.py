"""Compute virtual-screening metrics: early enrichment, and calibration of probabilities."""

from __future__ import annotations

import math

import numpy as np

from molgraph.evaluate.measures import LABELS, metric, most_probable, two_classes

ALPHA = 20.0  # Truchon and Bayly's: the first 8% of the list have 80% of the weight
SHARE = 0.01
BINS = 10


@metric(
    "bedroc",
    "BEDROC (α = 20)",
    ("binary",),
    higher=True,
    needs="both classes; any score that ranks",
    paper="Truchon and Bayly 2007, J. Chem. Inf. Model. 47:488",
)
def bedroc(y: np.ndarray, p: np.ndarray) -> float:
    """Boltzmann-enhanced discrimination of ROC, alpha = 20: how early in the ranking the ones stand, 0 to 1.

    Truchon and Bayly 2007, equation 36. Rows of equal score share the mean weight of the places that they take
    together, so that the value does not depend on the order of the rows.

    Args:
        y: [n] labels 0 and 1.
        p: [n] scores, higher for ones.

    Example:
        >>> y = np.array([1, 0, 0, 0])
        >>> round(bedroc(y, np.array([0.9, 0.1, 0.2, 0.3])), 9), round(bedroc(y, np.arange(4.0)), 9)
        (1.0, 0.0)
    """
    two_classes(y)
    n, ones = len(y), int((y == 1).sum())
    weight = np.exp(-ALPHA * np.arange(1, n + 1) / n)
    weight = _shared(p, weight)
    by_chance = ones / n * weight.sum()
    value = float(weight[y == 1].sum() / by_chance)
    ratio = ones / n
    most = (1 - math.exp(-ALPHA * ratio)) / (ratio * (1 - math.exp(-ALPHA)))
    least = (1 - math.exp(ALPHA * ratio)) / (ratio * (1 - math.exp(ALPHA)))
    return float(min(max((value - least) / (most - least), 0.0), 1.0))  # rounding aside, it is inside


@metric(
    "ef1",
    "Enrichment at 1%",
    ("binary",),
    higher=True,
    needs="both classes; any score that ranks; hundreds of rows",
    paper="Truchon and Bayly 2007, J. Chem. Inf. Model. 47:488",
)
def enrichment(y: np.ndarray, p: np.ndarray) -> float:
    """Enrichment factor: the share of ones among the first 1% of the ranking (rounded up), over that of all rows.

    Of rows with one score across the border, as many count as there is room for, at their mean.

    Example:
        >>> y = np.array([1] * 10 + [0] * 90)
        >>> enrichment(y, np.arange(100)[::-1])
        10.0
    """
    two_classes(y)
    first = np.zeros(len(y))
    taken = math.ceil(len(y) * SHARE)
    first[:taken] = 1.0
    return float(_shared(p, first)[y == 1].sum() / taken / np.mean(y == 1))


@metric(
    "ece",
    "Calibration error (10 bins)",
    LABELS,
    higher=False,
    needs="probabilities; tens of rows a bin",
    paper="Naeini et al. 2015, AAAI 29; Guo et al. 2017, ICML 34",
)
def calibration_error(y: np.ndarray, p: np.ndarray) -> float:
    """Expected calibration error: the mean gap between probability and frequency over 10 bins of equal width.

    A binary target's bins are of P(1) and the frequency is that of ones (Naeini et al. 2015); a multiclass target's
    are of the largest probability and the frequency is that of being right (Guo et al. 2017). Bins count by their rows.

    Example:
        >>> round(calibration_error(np.array([0, 1]), np.array([0.5, 0.5])), 9)
        0.0
    """
    right = (most_probable(p) == y).astype(np.float64) if p.ndim == 2 else y
    sure = p.max(axis=1) if p.ndim == 2 else p
    bins = np.searchsorted(np.linspace(0, 1, BINS + 1)[1:-1], sure)
    gaps = np.bincount(bins, weights=sure - right, minlength=BINS)
    return float(np.abs(gaps).sum() / len(y))


@metric("balanced_accuracy", "Balanced accuracy", LABELS, higher=True, needs="two classes; probabilities")
def balanced_accuracy(y: np.ndarray, p: np.ndarray) -> float:
    """Mean over the measured classes of the share of their rows whose most probable class is theirs."""
    two_classes(y)
    hit = most_probable(p) == y
    return float(np.mean([hit[y == c].mean() for c in np.unique(y)]))


@metric("f1", "F1", ("binary",), higher=True, needs="both classes; probabilities")
def f1(y: np.ndarray, p: np.ndarray) -> float:
    """Harmonic mean of precision and recall of class 1, from probability 0.5; 0 where no one is found."""
    two_classes(y)
    pred, true = most_probable(p) == 1, y == 1
    return float(2 * (pred & true).sum() / (pred.sum() + true.sum()))


def top_rate(y: np.ndarray, p: np.ndarray, group: np.ndarray) -> float:
    """Share of the groups whose first row is a one: of docked poses, how often the best-ranked one is right.

    Of rows with one score at the top, each counts for its share. A group without a one counts, as it does for the
    docking program. Groups and rows without a score are left out.

    Args:
        y: [n] labels 0 and 1.
        p: [n] scores, higher for ones.
        group: [n], such as the complex of each pose.

    Example:
        >>> top_rate(np.array([1, 0, 0, 1]), np.array([0.9, 0.1, 0.5, 0.5]), np.array(["a", "a", "b", "b"]))
        0.75
    """
    known = np.isfinite(p) & np.isfinite(y)
    y, p, (_, group) = y[known], p[known], np.unique(group[known], return_inverse=True)
    best = np.full(group.max(initial=-1) + 1, -np.inf)
    np.maximum.at(best, group, p)
    top = p == best[group]
    return float(np.mean(np.bincount(group, top * y) / np.bincount(group, top))) if len(y) else float("nan")


def _shared(p: np.ndarray, places: np.ndarray) -> np.ndarray:
    """What each row's place in the ranking is worth, rows of one score sharing theirs equally."""
    order = np.argsort(-p, kind="stable")
    _, group, counts = np.unique(-p[order], return_inverse=True, return_counts=True)
    mean = np.bincount(group, weights=places) / counts
    out = np.empty(len(p))
    out[order] = mean[group]
    return out
