"""Score predictions, with the number of rows that each score stands on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
import pandas as pd

from molgraph.base import registry
from molgraph.base.contracts import Kind, Metric, Prediction, Target
from molgraph.base.errors import (
    LabelError,
    MissingColumnError,
    ShapeError,
    UnsupportedError,
    nearest,
)
from molgraph.data.levels import level_of, pooled, pooled_prediction
from molgraph.data.table import Table
from molgraph.evaluate import screening  # noqa: F401 - registers its metrics
from molgraph.evaluate.measures import NUMBERS, Undefined

_DEFAULTS: dict[str, tuple[str, ...]] = {
    "regression": ("rmse", "mae", "r2", "spearman"),
    "bounded": ("rmse", "mae", "r2", "spearman"),
    "binary": ("roc_auc", "prc_auc", "mcc", "brier"),
    "multiclass": ("accuracy", "mcc", "log_loss"),
}


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


def _share_met(limits: np.ndarray, p: np.ndarray) -> float:
    """The share of predictions [n] within limits [n, 2]."""
    return float(((p >= limits[:, 0]) & (p <= limits[:, 1])).mean())


#: of labels that are limits, such as >8; other metrics judge measured values. No kind: nobody asks for it by name
LIMITS_MET = Metric("limits_met", _share_met, True, (), "limits met", "labels that are limits")


def get_metric(name: str | Metric) -> Metric:
    """The metric of that name; an unknown one raises ``UsageError`` with the nearest known ones."""
    if name == LIMITS_MET.name:
        return LIMITS_MET
    return name if isinstance(name, Metric) else registry.get("metric", name)


def default_metric(kind: Kind) -> Metric:
    """The metric that a headline uses for a kind of target.

    Example:
        >>> default_metric("regression").name, default_metric("binary").name
        ('rmse', 'roc_auc')
    """
    return get_metric(_DEFAULTS[kind][0])


def default_metrics(kind: Kind, pairs: bool = False) -> tuple[Metric, ...]:
    """The metrics that a table of scores shows for a kind of target; numbers of pairs have a concordance index too.

    Example:
        >>> [m.name for m in default_metrics("regression", pairs=True)]
        ['rmse', 'mae', 'r2', 'spearman', 'ci']
    """
    return tuple(get_metric(name) for name in _DEFAULTS[kind] + ("ci",) * (pairs and kind in NUMBERS))


def evaluate_metric(metric: Metric, y: np.ndarray, p: np.ndarray) -> tuple[float, str]:
    """A metric's value on finite rows and a note; the value is NaN where the note says why it has none."""
    if len(y) < 2:
        return float("nan"), f"{len(y)} row{'' if len(y) == 1 else 's'} with a measured value and a prediction"
    try:
        value = metric.function(y, p)
    except Undefined as why:
        return float("nan"), str(why)
    return value, "" if np.isfinite(value) else f"{metric.name} is not finite on these rows"


def has_value(p: np.ndarray) -> np.ndarray:
    """bool [n]: which rows of predictions, [n] or [n, classes], are whole."""
    return np.isfinite(p) if p.ndim == 1 else np.isfinite(p).all(axis=1)


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
    raise MissingColumnError(f"the prediction has no target {target.name!r}", hint=nearest(target.name, names))


def score(
    measured: Table | np.ndarray,
    prediction: Prediction,
    targets: Sequence[Target] | None = None,
    metrics: Sequence[str | Metric] | None = None,
) -> list[Score]:
    """Score a prediction against measured values, target by target.

    Args:
        measured: a table with targets, or their values, float [n, number of targets]. Targets of atoms or bonds are
            scored over all atoms or bonds of all rows, each alike. Labels that are limits, such as >8, count in no
            metric but ``limits_met``, the share of them that predictions satisfy.
        prediction: one row for each row of ``measured``.
        targets: which targets; the table's, or the prediction's where ``measured`` is an array.
        metrics: names or metrics; by default those of each target's kind.

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
    pairs = isinstance(measured, Table) and len(measured.entities) > 1
    noun = "row"
    if isinstance(measured, Table):
        table = measured if targets is None else measured.with_targets([t.name for t in targets])
        if (noun := level_of(table.targets)) != "row":
            prediction, table = pooled_prediction(prediction, table), pooled(table)
        targets, y = table.row_targets, table.y
        if y is None:
            raise LabelError("the table has no measured values", hint="name its target columns when you read it")
    else:
        targets = tuple(prediction.targets if targets is None else targets)
        y = np.asarray(measured, dtype=np.float64)
        y = y[:, None] if y.ndim == 1 else y
    if y.shape != (len(prediction), len(targets)):
        raise ShapeError(f"measured values are {y.shape}, expected {(len(prediction), len(targets))}")
    chosen = None if metrics is None else [get_metric(m) for m in metrics]
    out: list[Score] = []
    for j, target in enumerate(targets):
        own = default_metrics(target.kind, pairs) if chosen is None else [m for m in chosen if target.kind in m.kinds]
        unlearned = prediction.unlearned.get(target.name, "")
        out += score_target(target, y[:, j], columns_of(prediction, target), own, unlearned, noun)
        if isinstance(measured, Table) and table.limited[:, j].any():
            out.append(_limits_score(target, table.limits[:, j], columns_of(prediction, target)))  # type: ignore[index]
    if not out and targets and chosen is not None:
        raise UnsupportedError(
            f"{', '.join(m.name for m in chosen)} cannot judge {', '.join(sorted({t.kind for t in targets}))} targets",
            hint="for these: " + ", ".join(m.name for m in default_metrics(targets[0].kind)),
        )
    return out


def score_target(
    target: Target,
    y: np.ndarray,
    p: np.ndarray,
    metrics: Iterable[Metric],
    unlearned: str = "",
    noun: str = "row",
) -> list[Score]:
    """The scores of one target; a note where measured rows have no prediction, or why it was not learned."""
    labelled = np.isfinite(y)
    rows = labelled & has_value(p)
    lost = int(labelled.sum() - rows.sum())
    remark = f"{lost} of {int(labelled.sum())} measured {noun}s have no prediction" if lost else ""
    out = []
    for metric in metrics:
        value, note = evaluate_metric(metric, y[rows], p[rows])
        note = f"{target.name} is not learned: {unlearned}" if unlearned else "; ".join(filter(None, (note, remark)))
        out.append(Score(target.name, metric.name, value, int(rows.sum()), note))
    return out


def _limits_score(target: Target, limits: np.ndarray, p: np.ndarray) -> Score:
    """The share of a target's limits, float64 [n, 2] with NaN where there is none, that predictions [n] satisfy."""
    known = ~np.isnan(limits[:, 0])
    rows = known & np.isfinite(p)
    n, lost = int(rows.sum()), int(known.sum() - rows.sum())
    note = f"{lost} of {int(known.sum())} limits have no prediction" if lost else ""
    return Score(target.name, LIMITS_MET.name, _share_met(limits[rows], p[rows]) if n else float("nan"), n, note)


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
