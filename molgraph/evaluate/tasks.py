"""Average scores over targets, naming those that are left out."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from molgraph.evaluate.metrics import Score, get_metric

_NAMED = 3


@dataclass(frozen=True)
class TaskMean:
    """A metric's mean over targets: only those that have a value count, and the others are named."""

    metric: str  # the metric's name
    value: float  # mean over the targets that have a value; NaN where none has one
    n_tasks: int  # targets that count
    of: int  # targets that were asked about
    n_rows: int  # measured and predicted rows of the targets that count, together
    left_out: tuple[tuple[str, str], ...] = ()  # name and reason of each target that does not count

    def text(self) -> str:
        """The mean, how many targets it stands on, and why the others don't count, in one line.

        Example:
            >>> TaskMean("roc_auc", 0.8, 1, 2, 50, (("b", "one class only"),)).text()
            'ROC AUC 0.800, mean of 1 of 2 targets; left out: b (one class only)'
        """
        label = get_metric(self.metric).label or self.metric
        value = "has no value" if not self.n_tasks else f"{self.value:.3f}"
        if self.of == 1 and not self.left_out:
            return f"{label} {value}"
        named = [f"{name} ({reason})" for name, reason in self.left_out[:_NAMED]]
        if len(self.left_out) > _NAMED:
            named.append(f"and {len(self.left_out) - _NAMED} more")
        over = f"all {self.of} targets" if self.n_tasks == self.of else f"{self.n_tasks} of {self.of} targets"
        return f"{label} {value}, mean of {over}" + (f"; left out: {', '.join(named)}" if named else "")


def mean_over_tasks(scores: Iterable[Score]) -> list[TaskMean]:
    """The mean of each metric over its targets, never over a value that is not there without saying so.

    Args:
        scores: of one method, as ``score`` makes them.

    Returns:
        One mean a metric, in order of first appearance.

    Example:
        >>> good = [Score("a", "rmse", 1.0, 5), Score("b", "rmse", 3.0, 5)]
        >>> bad = Score("c", "rmse", float("nan"), 0, "none")
        >>> mean_over_tasks([*good, bad])
        [TaskMean(metric='rmse', value=2.0, n_tasks=2, of=3, n_rows=10, left_out=(('c', 'none'),))]
    """
    by_metric: dict[str, list[Score]] = {}
    for score in scores:
        by_metric.setdefault(score.metric, []).append(score)
    out = []
    for name, part in by_metric.items():
        good = [s for s in part if np.isfinite(s.value)]
        lost = tuple((s.target, s.note or "no value") for s in part if not np.isfinite(s.value))
        value = float(np.mean([s.value for s in good])) if good else float("nan")
        out.append(TaskMean(name, value, len(good), len(part), sum(s.n for s in good), lost))
    return out
