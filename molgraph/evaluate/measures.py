"""Measured and predicted values come in; one number goes out: the functions behind the metrics, registered.

scikit-learn and scipy.stats are imported by the functions that need them: with them here, every command that
scores nothing would begin a second later.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from molgraph.base import registry
from molgraph.base.contracts import Kind, Metric

Weights = np.ndarray | None
_NUMBERS: tuple[Kind, ...] = ("regression", "bounded")
_LABELS: tuple[Kind, ...] = ("binary", "multiclass")


class Undefined(ValueError):
    """Raised by a metric's function where these rows give it no value; its text becomes the score's note."""


def _metric(name: str, label: str, kinds: tuple[Kind, ...], *, higher: bool) -> Callable[[Callable], Callable]:
    def add(function: Callable) -> Callable:
        summary = f"{label}, {'higher' if higher else 'lower'} is better"
        registry.register("metric", name, summary=summary)(Metric(name, function, higher, kinds, label))
        return function

    return add


def _two_classes(y: np.ndarray) -> None:
    if len(np.unique(y)) < 2:
        raise Undefined(f"one class only ({y[0]:g}) among the measured rows")


def _two_values(y: np.ndarray, what: str = "measured") -> None:
    if np.ptp(y) == 0:
        raise Undefined(f"all {what} values are the same")


def _hard(p: np.ndarray) -> np.ndarray:
    return p.argmax(axis=1) if p.ndim == 2 else (p >= 0.5).astype(np.int64)


def _shares(p: np.ndarray) -> np.ndarray:
    """Probabilities [n, classes], away from 0 and 1 by the machine's precision, as scikit-learn has them."""
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    least = np.finfo(np.float64).eps
    return np.clip(p, least, 1 - least)


@_metric("rmse", "RMSE", _NUMBERS, higher=False)
def rmse(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Root of the mean squared error.

    Example:
        >>> rmse(np.array([0.0, 0.0]), np.array([3.0, 3.0]))
        3.0
    """
    return float(np.sqrt(np.average((y - p) ** 2, weights=weights)))


@_metric("mae", "MAE", _NUMBERS, higher=False)
def mae(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Mean absolute error."""
    return float(np.average(np.abs(y - p), weights=weights))


@_metric("r2", "R²", _NUMBERS, higher=True)
def r2(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Coefficient of determination: one less the squared error over that of the rows' own mean."""
    from sklearn.metrics import r2_score

    _two_values(y)
    return float(r2_score(y, p, sample_weight=weights))


@_metric("spearman", "Spearman ρ", _NUMBERS, higher=True)
def spearman(y: np.ndarray, p: np.ndarray) -> float:
    """Spearman's rank correlation, ties at their mean rank."""
    from scipy.stats import rankdata

    _two_values(y)
    _two_values(p, "predicted")
    return float(np.corrcoef(rankdata(y), rankdata(p))[0, 1])


@_metric("kendall", "Kendall τ", _NUMBERS, higher=True)
def kendall(y: np.ndarray, p: np.ndarray) -> float:
    """Kendall's rank correlation tau-b."""
    from scipy.stats import kendalltau

    _two_values(y)
    _two_values(p, "predicted")
    return float(kendalltau(y, p).statistic)


@_metric("roc_auc", "ROC AUC", ("binary",), higher=True)
def roc_auc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Area under the ROC curve, from ranks (Mann-Whitney U), ties at half."""
    from scipy.stats import rankdata

    _two_classes(y)
    if weights is not None:
        from sklearn.metrics import roc_auc_score

        return float(roc_auc_score(y, p, sample_weight=weights))
    one = y == 1
    n_one, n_zero = int(one.sum()), int((~one).sum())
    return float((rankdata(p)[one].sum() - n_one * (n_one + 1) / 2) / (n_one * n_zero))


@_metric("prc_auc", "PRC AUC", ("binary",), higher=True)
def prc_auc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Average precision: the precision-recall curve summed by steps, without interpolation."""
    from sklearn.metrics import average_precision_score

    _two_classes(y)
    return float(average_precision_score(y, p, sample_weight=weights))


@_metric("mcc", "MCC", _LABELS, higher=True)
def mcc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Matthews' correlation coefficient of the most probable class (binary: probability 0.5 and above)."""
    from sklearn.metrics import matthews_corrcoef

    _two_classes(y)
    return float(matthews_corrcoef(y.astype(np.int64), _hard(p), sample_weight=weights))


@_metric("accuracy", "Accuracy", _LABELS, higher=True)
def accuracy(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Share of rows whose most probable class is the measured one."""
    return float(np.average(_hard(p) == y, weights=weights))


@_metric("log_loss", "Log loss", _LABELS, higher=False)
def log_loss(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Mean of minus the log of the measured class's probability."""
    return float(np.average(-np.log(_shares(p)[np.arange(len(y)), y.astype(np.int64)]), weights=weights))


@_metric("brier", "Brier score", ("binary",), higher=False)
def brier(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Mean squared difference of probability and label."""
    return float(np.average((y - p) ** 2, weights=weights))
