"""Measured values and predictions come in; scores go out, each with the rows that it stands on and a note."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd
from scipy import stats
from sklearn import metrics as sk

from molgraph.base import registry
from molgraph.base.contracts import Kind, Metric, Prediction, Target
from molgraph.base.errors import DataError, UsageError, nearest
from molgraph.data.table import Table

Weights = np.ndarray | None
_NUMBERS: tuple[Kind, ...] = ("regression", "bounded")
_LABELS: tuple[Kind, ...] = ("binary", "multiclass")
_DEFAULTS: dict[str, tuple[str, ...]] = {
    "regression": ("rmse", "mae", "r2", "spearman"),
    "bounded": ("rmse", "mae", "r2", "spearman"),
    "binary": ("roc_auc", "prc_auc", "mcc", "brier"),
    "multiclass": ("accuracy", "mcc", "log_loss"),
}


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
    """Probabilities clipped away from 0 and 1 and summing to one, [n, classes]."""
    p = p if p.ndim == 2 else np.column_stack([1 - p, p])
    p = np.clip(p, 1e-15, None)
    return p / p.sum(axis=1, keepdims=True)


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
    _two_values(y)
    return float(sk.r2_score(y, p, sample_weight=weights))


@_metric("spearman", "Spearman ρ", _NUMBERS, higher=True)
def spearman(y: np.ndarray, p: np.ndarray) -> float:
    """Spearman's rank correlation, ties at their mean rank."""
    _two_values(y)
    _two_values(p, "predicted")
    return float(np.corrcoef(stats.rankdata(y), stats.rankdata(p))[0, 1])


@_metric("kendall", "Kendall τ", _NUMBERS, higher=True)
def kendall(y: np.ndarray, p: np.ndarray) -> float:
    """Kendall's rank correlation tau-b."""
    _two_values(y)
    _two_values(p, "predicted")
    return float(stats.kendalltau(y, p).statistic)


@_metric("roc_auc", "ROC AUC", ("binary",), higher=True)
def roc_auc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Area under the ROC curve, from ranks (Mann-Whitney U), ties at half."""
    _two_classes(y)
    if weights is not None:
        return float(sk.roc_auc_score(y, p, sample_weight=weights))
    one = y == 1
    n_one, n_zero = int(one.sum()), int((~one).sum())
    return float((stats.rankdata(p)[one].sum() - n_one * (n_one + 1) / 2) / (n_one * n_zero))


@_metric("prc_auc", "PRC AUC", ("binary",), higher=True)
def prc_auc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Average precision: the precision-recall curve summed by steps, without interpolation."""
    _two_classes(y)
    return float(sk.average_precision_score(y, p, sample_weight=weights))


@_metric("mcc", "MCC", _LABELS, higher=True)
def mcc(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Matthews' correlation coefficient of the most probable class (binary: probability 0.5 and above)."""
    _two_classes(y)
    return float(sk.matthews_corrcoef(y.astype(np.int64), _hard(p), sample_weight=weights))


@_metric("accuracy", "Accuracy", _LABELS, higher=True)
def accuracy(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Share of rows whose most probable class is the measured one."""
    return float(np.average(_hard(p) == y, weights=weights))


@_metric("log_loss", "Log loss", _LABELS, higher=False)
def log_loss(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Mean of minus the log of the measured class's probability, clipped at 1e-15."""
    return float(np.average(-np.log(_shares(p)[np.arange(len(y)), y.astype(np.int64)]), weights=weights))


@_metric("brier", "Brier score", ("binary",), higher=False)
def brier(y: np.ndarray, p: np.ndarray, weights: Weights = None) -> float:
    """Mean squared difference of probability and label."""
    return float(np.average((y - p) ** 2, weights=weights))


@dataclass(frozen=True)
class Score:
    """One metric of one target.

    Args:
        target: the target's name.
        metric: the metric's name.
        value: NaN where these rows give no value; ``note`` then says why.
        n: rows that have both a measured value and a prediction.
        note: why there is no value, and how many measured rows have no prediction; empty where all is well.
    """

    target: str
    metric: str
    value: float
    n: int
    note: str = ""


def get_metric(name: str | Metric) -> Metric:
    """The metric of that name; an unknown one raises ``UsageError`` with the nearest known ones."""
    return name if isinstance(name, Metric) else registry.get("metric", name)


def default_metric(kind: Kind) -> Metric:
    """The metric that a headline uses for a kind of target.

    Example:
        >>> default_metric("regression").name, default_metric("binary").name
        ('rmse', 'roc_auc')
    """
    return get_metric(_DEFAULTS[kind][0])


def default_metrics(kind: Kind) -> tuple[Metric, ...]:
    """The metrics that a table of scores shows for a kind of target."""
    return tuple(get_metric(name) for name in _DEFAULTS[kind])


def evaluate_metric(metric: Metric, y: np.ndarray, p: np.ndarray, weights: Weights = None) -> tuple[float, str]:
    """A metric's value on finite rows and a note; the value is NaN where the note says why it has none."""
    if len(y) < 2:
        return float("nan"), f"{len(y)} row{'' if len(y) == 1 else 's'} with a measured value and a prediction"
    if weights is not None and "weights" not in inspect.signature(metric.function).parameters:
        return float("nan"), f"{metric.name} has no weighted form"
    try:
        value = metric.function(y, p) if weights is None else metric.function(y, p, weights=weights)
    except Undefined as why:
        return float("nan"), str(why)
    return value, "" if np.isfinite(value) else f"{metric.name} is not finite on these rows"


def columns_of(prediction: Prediction, target: Target) -> np.ndarray:
    """A target's part of a prediction: [n], or [n, classes] for a multiclass target."""
    start = 0
    for known in prediction.targets:
        width = len(known.columns)
        if known.name == target.name:
            part = prediction.value[:, start : start + width]
            return part if known.kind == "multiclass" else part[:, 0]
        start += width
    names = [t.name for t in prediction.targets]
    raise DataError(f"the prediction has no target {target.name!r}", hint=nearest(target.name, names))


def score(
    measured: Table | np.ndarray,
    prediction: Prediction,
    targets: Sequence[Target] | None = None,
    metrics: Sequence[str | Metric] | None = None,
    *,
    weights: Weights = None,
) -> list[Score]:
    """Score a prediction against measured values, target by target.

    Args:
        measured: a table with ``y``, or y itself, float [n, number of targets].
        prediction: one row for each row of ``measured``.
        targets: which targets; the table's, or the prediction's where ``measured`` is an array.
        metrics: names or metrics; by default those of each target's kind.
        weights: [n] weights of rows, or None for equal ones.

    Returns:
        One score a target and metric, in that order; never a NaN without a note.

    Raises:
        DataError: lengths or targets do not fit.
        UsageError: an unknown metric, or one that cannot judge any of the targets.

    Example:
        >>> from molgraph.data.table import make_table
        >>> t = (Target("y"),)
        >>> table = make_table(["C", "CC", "CCC"], targets=t, y=[1.0, 2.0, float("nan")])
        >>> p = Prediction(table.ids, t, np.array([[1.0], [4.0], [9.0]]), table.status, table.reason)
        >>> score(table, p, metrics=["mae"])
        [Score(target='y', metric='mae', value=1.0, n=2, note='')]
    """
    if isinstance(measured, Table):
        table = measured if targets is None else measured.with_targets([t.name for t in targets])
        targets, y = table.row_targets, table.y
        if y is None:
            raise DataError("the table has no measured values", hint="name its target columns when you read it")
    else:
        targets = tuple(prediction.targets if targets is None else targets)
        y = np.asarray(measured, dtype=np.float64).reshape(len(measured), -1)
    if y.shape != (len(prediction), len(targets)):
        raise DataError(f"measured values are {y.shape}, expected {(len(prediction), len(targets))}")
    chosen = None if metrics is None else [get_metric(m) for m in metrics]
    out = []
    for j, target in enumerate(targets):
        own = default_metrics(target.kind) if chosen is None else [m for m in chosen if target.kind in m.kinds]
        p = columns_of(prediction, target)
        labelled = np.isfinite(y[:, j])
        has_value = np.isfinite(p) if p.ndim == 1 else np.isfinite(p).all(axis=1)
        rows = labelled & has_value
        lost = int((labelled & ~has_value).sum())
        for metric in own:
            value, note = evaluate_metric(metric, y[rows, j], p[rows], None if weights is None else weights[rows])
            said = f"{lost} of {int(labelled.sum())} measured rows have no prediction" if lost else ""
            out.append(Score(target.name, metric.name, value, int(rows.sum()), "; ".join(filter(None, (note, said)))))
    if not out and targets and chosen is not None:
        raise UsageError(
            f"{', '.join(m.name for m in chosen)} cannot judge {', '.join(sorted({t.kind for t in targets}))} targets",
            hint="for these: " + ", ".join(m.name for m in default_metrics(targets[0].kind)),
        )
    return out


def scores_frame(scores: Iterable[Score] | Mapping[str, Iterable[Score]]) -> pd.DataFrame:
    """Scores as a frame for display; a mapping (method's name to its scores) adds a ``method`` column.

    Example:
        >>> scores_frame({"mean": [Score("y", "rmse", 1.0, 5)]}).columns.tolist()
        ['method', 'target', 'metric', 'value', 'n', 'note']
    """
    columns = ["target", "metric", "value", "n", "note"]
    if isinstance(scores, Mapping):
        rows = [{"method": name} | asdict(s) for name, part in scores.items() for s in part]
        return pd.DataFrame(rows, columns=["method", *columns])
    return pd.DataFrame([asdict(s) for s in scores], columns=columns)
