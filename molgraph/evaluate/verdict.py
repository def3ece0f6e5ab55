"""Say which of several methods is best on the same test rows, and whether these rows can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from molgraph.base.contracts import Metric, Prediction, Target
from molgraph.base.errors import DataError
from molgraph.data.levels import pooled, pooled_prediction
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric
from molgraph.evaluate.statistics import Interval, paired_difference

Tone = Literal["clear", "tie", "warning"]
FEWEST = 10  # rows, or rows of the rarer class, below which the bootstrap's interval is not to be believed


@dataclass(frozen=True)
class Verdict:
    """What the test rows say about a target.

    Args:
        target: its name.
        metric: the metric's name.
        values: score of each method on the rows that all of them have, best first.
        n: those rows.
        sentence: who won, in words.
        detail: the numbers behind it.
        difference: best less second best, with a paired 95% interval; NaN where there is no second.
        tone: ``clear``, ``tie``, or ``warning`` where nothing clearly beats the floor, all are worse than it, or the
            rows give no verdict.
    """

    target: str
    metric: str
    values: Mapping[str, float]
    n: int
    sentence: str
    detail: str
    difference: Interval
    tone: Tone


def verdict(
    table: Table, predictions: Mapping[str, Prediction], target: Target, *, floor: str = "mean", seed: int = 0
) -> Verdict:
    """Say which method is best for a target, and whether these rows can tell.

    There is no verdict on fewer than ten rows, nor on classes where fewer than ten rows lie outside the commonest one.

    Args:
        table: test rows with measured values.
        predictions: method's name to its prediction of ``table``.
        target: which target.
        floor: name of the method that learns nothing about molecules; it cannot win, only not be beaten.
        seed: of the bootstrap.

    Raises:
        DataError: there are no measured values or no predictions.
    """
    if target.level != "row":
        table = table.with_targets([target.name])
        predictions = {name: pooled_prediction(p, table) for name, p in predictions.items()}
        table = pooled(table)
    if table.y is None or not predictions:
        raise DataError("a verdict needs measured values and predictions", hint="give a table with targets")
    y = table.with_targets([target.name]).y[:, 0]  # type: ignore[index]
    columns = {name: columns_of(p, target) for name, p in predictions.items()}
    use = np.isfinite(y)
    for p in columns.values():
        use &= np.isfinite(p) if p.ndim == 1 else np.isfinite(p).all(axis=1)
    y, columns = y[use], {name: p[use] for name, p in columns.items()}
    metric = default_metric(target.kind)
    scored = {name: evaluate_metric(metric, y, p) for name, p in columns.items()}
    note = next((said for value, said in scored.values() if not np.isfinite(value)), "")
    note = next(
        (f"not learned: {p.unlearned[target.name]}" for p in predictions.values() if target.name in p.unlearned), note
    )
    values = {name: value for name, (value, _) in scored.items()}
    none = Interval(float("nan"), float("nan"), float("nan"))
    if not note:
        rank = sorted(values, key=lambda name: (-values[name] if metric.higher_is_better else values[name], name))
        values = {name: values[name] for name in rank}
        note = too_few(y, target)
    if note:
        sentence = f"{target.name}: these rows give no verdict"
        return Verdict(target.name, metric.name, values, len(y), sentence, f"{note}.", none, "warning")
    contest = [name for name in rank if name != floor] or rank
    best = contest[0]
    difference, detail = none, ""
    tone: Tone = "clear"
    if len(contest) > 1:
        second = contest[1]
        difference = paired_difference(y, columns[best], columns[second], metric, seed=seed)
        apart = _apart(difference)
        tone = "clear" if apart else "tie"
        sentence = f"{best} beats {second}" if apart else f"{best} and {second} cannot be told apart"
        detail = f"{metric.label} {values[best]:#.3g} against {values[second]:#.3g}; difference {_words(difference)}. "
    else:
        sentence = f"{best} reaches {metric.label} {values[best]:#.3g}"
    if floor in values and best != floor:
        over = paired_difference(y, columns[best], columns[floor], metric, seed=seed)
        detail += f"Predicting the {floor} alone gives {values[floor]:#.3g}; {best} differs from it by {_words(over)}. "
        if not (_apart(over) and _better(metric, over.value)):
            tone = "warning"
            sentence += _against(floor, worse=_apart(over), n=len(contest))
    noun = "test row" if target.level == "row" else target.level
    detail += f"Measured on {len(y)} {noun}{'' if len(y) == 1 else 's'} that every method predicts."
    if target.level != "row":  # the bootstrap draws them one by one
        detail += f" The {noun}s of a molecule are alike, which makes the intervals too narrow."
    return Verdict(target.name, metric.name, values, len(y), f"{target.name}: {sentence}", detail, difference, tone)


def too_few(y: np.ndarray, target: Target) -> str:
    """Why the rows are too few for a verdict, and how to get more; empty where they are enough."""
    n, noun = len(y), "test row" if len(y) == 1 else "test rows"
    said, ways = f"{n} {noun} that every method predicts", "a larger last share of fractions or a test file"
    if target.kind in ("binary", "multiclass") and n >= FEWEST:
        rare = n - int(np.unique(y, return_counts=True)[1].max())
        which = "of the rarer class" if target.kind == "binary" else "not of the commonest class"
        n, said = rare, f"{rare} of {n} test rows {'is' if rare == 1 else 'are'} {which}"
        ways = f"the split scaffold/stratified, {ways}"
    if n >= FEWEST:
        return ""
    return f"{said}: a verdict needs {FEWEST}. Test more of them, by {ways}"


def _apart(difference: Interval) -> bool:
    return bool(difference.low > 0 or difference.high < 0)


def _better(metric: Metric, difference: float) -> bool:
    return difference > 0 if metric.higher_is_better else difference < 0


def _against(floor: str, *, worse: bool, n: int) -> str:
    """The best of n methods beside a floor that it does not clearly beat; the others score below the best."""
    if worse:
        which = {1: "which is", 2: "and both are"}.get(n, "and all are")
        return f", {which} worse than the {floor}"
    which = {1: "which is not", 2: "and neither is"}.get(n, "and none is")
    return f", {which} clearly better than the {floor}"


def _words(i: Interval) -> str:
    return f"{i.value:+#.3g} (95% interval {i.low:+#.3g} to {i.high:+#.3g})".replace("-", "\N{MINUS SIGN}")
