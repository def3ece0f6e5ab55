"""Define and register the metrics.

scikit-learn and scipy.stats are imported by the functions that need them: with them here, every command that
scores nothing would begin a second later.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from molgraph.base import registry
from molgraph.base.contracts import Kind, Metric

NUMBERS: tuple[Kind, ...] = ("regression", "bounded")
LABELS: tuple[Kind, ...] = ("binary", "multiclass")


class Undefined(ValueError):
    """Raised by a metric's function where these rows give it no value; its text becomes the score's note."""


def metric(
    name: str, label: str, kinds: tuple[Kind, ...], *, higher: bool, needs: str, paper: str = ""
) -> Callable[[Callable], Callable]:
    """Register the decorated function as a metric: one row of ``molgraph models --kind metric``."""

    def add(function: Callable) -> Callable:
        measure = Metric(name, function, higher, kinds, label, needs, paper)
        registry.register("metric", name, summary=label, paper=paper)(measure)
        return function

    return add


def two_classes(y: np.ndarray) -> None:
    """Raise ``Undefined`` where the measured rows have one class."""
    if len(np.unique(y)) < 2:
        raise Undefined(f"one class only ({y[0]:g}) among the measured rows")


def two_values(y: np.ndarray, what: str = "measured") -> None:
    """Raise ``Undefined`` where all values are the same."""
    if np.ptp(y) == 0:
        raise Undefined(f"all {what} values are the same")


def most_probable(p: np.ndarray) -> np.ndarray:
    """int64 [n]: the class of the largest probability; of a binary target 1 from probability 0.5."""
    return p.argmax(axis=1) if p.ndim == 2 else (p >= 0.5).astype(np.int64)


def _shares(p: np.ndarray) -> np.ndarray:
    """Probabilities [n, classes], away from 0 and 1 by the machine's precision, as scikit-learn has them."""
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    least = np.finfo(np.float64).eps
    return np.clip(p, least, 1 - least)


@metric("rmse", "RMSE", NUMBERS, higher=False, needs="2 rows")
def rmse(y: np.ndarray, p: np.ndarray) -> float:
    """Root of the mean squared error.

    Example:
        >>> rmse(np.array([0.0, 0.0]), np.array([3.0, 3.0]))
        3.0
    """
    return float(np.sqrt(((y - p) ** 2).mean()))


@metric("mae", "MAE", NUMBERS, higher=False, needs="2 rows")
def mae(y: np.ndarray, p: np.ndarray) -> float:
    """Mean absolute error."""
    return float(np.abs(y - p).mean())


@metric("r2", "R²", NUMBERS, higher=True, needs="two different measured values")
def r2(y: np.ndarray, p: np.ndarray) -> float:
    """Coefficient of determination: one less the squared error over that of the rows' own mean."""
    two_values(y)
    return float(1 - ((y - p) ** 2).mean() / ((y - y.mean()) ** 2).mean())


@metric("pearson", "Pearson r", NUMBERS, higher=True, needs="two different values, measured and predicted")
def pearson(y: np.ndarray, p: np.ndarray) -> float:
    """Pearson's linear correlation."""
    two_values(y)
    two_values(p, "predicted")
    return float(np.corrcoef(y, p)[0, 1])


@metric("spearman", "Spearman ρ", NUMBERS, higher=True, needs="two different values, measured and predicted")
def spearman(y: np.ndarray, p: np.ndarray) -> float:
    """Spearman's rank correlation, ties at their mean rank."""
    from scipy.stats import rankdata

    two_values(y)
    two_values(p, "predicted")
    return float(np.corrcoef(rankdata(y), rankdata(p))[0, 1])


@metric("kendall", "Kendall τ", NUMBERS, higher=True, needs="two different values, measured and predicted")
def kendall(y: np.ndarray, p: np.ndarray) -> float:
    """Kendall's rank correlation tau-b."""
    from scipy.stats import kendalltau

    two_values(y)
    two_values(p, "predicted")
    return float(kendalltau(y, p).statistic)


@metric(
    "ci",
    "Concordance index",
    NUMBERS,
    higher=True,
    needs="two different measured values",
    paper="Gonen and Heller 2005, Biometrika 92:965",
)
def concordance_index(y: np.ndarray, p: np.ndarray) -> float:
    """Share of the pairs of rows of different measured values that the predictions order alike, ties at half.

    From Kendall's tau-b: with C pairs ordered alike and D the other way round, the index is
    ``1/2 + (C - D) / (2 pairs)``, and ``C - D = tau * sqrt(pairs * pairs that differ in the prediction)``.

    Example:
        >>> round(concordance_index(np.array([1.0, 2.0, 3.0]), np.array([0.1, 0.3, 0.2])), 9)
        0.666666667
    """
    from scipy.stats import kendalltau

    two_values(y)
    pairs, differing = (_unequal_pairs(values) for values in (y, p))
    tau = float(kendalltau(y, p).statistic) if differing else 0.0
    return min(max(0.5 + 0.5 * tau * float(np.sqrt(differing / pairs)), 0.0), 1.0)  # rounding aside, it is inside


def _unequal_pairs(values: np.ndarray) -> int:
    counts = np.unique(values, return_counts=True)[1].astype(np.int64)
    return (len(values) ** 2 - int((counts**2).sum())) // 2


registry.alias("metric", "concordance_index", "ci")


@metric("roc_auc", "ROC AUC", ("binary",), higher=True, needs="both classes; any score that ranks")
def roc_auc(y: np.ndarray, p: np.ndarray) -> float:
    """Area under the ROC curve, from ranks (Mann-Whitney U), ties at half."""
    from scipy.stats import rankdata

    two_classes(y)
    one = y == 1
    n_one, n_zero = int(one.sum()), int((~one).sum())
    return float((rankdata(p)[one].sum() - n_one * (n_one + 1) / 2) / (n_one * n_zero))


@metric("prc_auc", "PRC AUC", ("binary",), higher=True, needs="both classes; any score that ranks")
def prc_auc(y: np.ndarray, p: np.ndarray) -> float:
    """Average precision: the precision-recall curve summed by steps, without interpolation."""
    two_classes(y)
    order = np.argsort(-p, kind="stable")
    hits, seen = np.cumsum(y[order] == 1), np.arange(1, len(y) + 1)
    ends = np.append(np.diff(p[order]) != 0, True)  # rows of one score are taken in together
    hits, seen = hits[ends], seen[ends]
    return float((np.diff(hits, prepend=0) * (hits / seen)).sum() / hits[-1])


@metric("mcc", "MCC", LABELS, higher=True, needs="two classes; probabilities")
def mcc(y: np.ndarray, p: np.ndarray) -> float:
    """Matthews' correlation coefficient of the most probable class (binary: probability 0.5 and above)."""
    two_classes(y)
    true, chosen = y.astype(np.int64), most_probable(p)
    k = int(max(true.max(), chosen.max())) + 1
    counts = np.bincount(true * k + chosen, minlength=k * k).reshape(k, k).astype(np.float64)
    rows, columns, n = counts.sum(axis=1), counts.sum(axis=0), counts.sum()
    below = np.sqrt((n**2 - rows @ rows) * (n**2 - columns @ columns))  # Gorodkin 2004, Comput. Biol. Chem. 28:367
    return float((n * np.trace(counts) - rows @ columns) / below) if below > 0 else 0.0


@metric("accuracy", "Accuracy", LABELS, higher=True, needs="probabilities")
def accuracy(y: np.ndarray, p: np.ndarray) -> float:
    """Share of rows whose most probable class is the measured one."""
    return float((most_probable(p) == y).mean())


@metric("log_loss", "Log loss", LABELS, higher=False, needs="probabilities")
def log_loss(y: np.ndarray, p: np.ndarray) -> float:
    """Mean of minus the log of the measured class's probability."""
    return float(-np.log(_shares(p)[np.arange(len(y)), y.astype(np.int64)]).mean())


@metric("brier", "Brier score", ("binary",), higher=False, needs="probabilities")
def brier(y: np.ndarray, p: np.ndarray) -> float:
    """Mean squared difference of probability and label."""
    return float(((y - p) ** 2).mean())
