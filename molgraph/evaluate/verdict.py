"""Say which of several methods is best on the same test rows, and whether these rows can tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import DataError
from molgraph.data.levels import pooled, pooled_prediction
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.evaluate.statistics import Interval, paired_difference

Tone = Literal["clear", "tie", "warning"]
_NAN = float("nan")
FEWEST = 10  # rows, or rows of the rarer class, below which the bootstrap's interval is not to be believed


@dataclass(frozen=True)
class Verdict:
    """What the test rows say about a target."""

    target: str  # its name
    metric: str  # the metric's name
    values: Mapping[str, float]  # score of each method on the rows that all of them have, best first
    n: int  # those rows
    sentence: str  # who won, in words
    detail: str  # the numbers behind it
    difference: Interval  # best less second best, with a paired 95% interval; NaN where there is no second
    # ``clear``, ``tie``, or ``warning`` where nothing clearly beats the floor, all are worse than it, or the
    # rows give no verdict
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
    use = np.isfinite(y) & np.all([has_value(p) for p in columns.values()], axis=0)
    y, columns = y[use], {name: p[use] for name, p in columns.items()}
    metric, none = default_metric(target.kind), Interval(_NAN, _NAN, _NAN)
    scored = {name: evaluate_metric(metric, y, p) for name, p in columns.items()}
    values = {name: value for name, (value, _) in scored.items()}
    unlearned = [p.unlearned[target.name] for p in predictions.values() if target.name in p.unlearned]
    note = f"not learned: {unlearned[0]}" if unlearned else next((n for v, n in scored.values() if v != v), "")
    if not note:
        sign = -1 if metric.higher_is_better else 1
        values = dict(sorted(values.items(), key=lambda item: (sign * item[1], item[0])))
        note = too_few(y, target)
    if note:
        sentence = f"{target.name}: these rows give no verdict"
        return Verdict(target.name, metric.name, values, len(y), sentence, f"{note}.", none, "warning")
    best, *others = contest = [name for name in values if name != floor] or list(values)
    difference, detail = none, ""
    tone: Tone = "clear"
    if others:
        second = others[0]
        difference = paired_difference(y, columns[best], columns[second], metric, seed=seed)
        tone = "clear" if _apart(difference) else "tie"
        sentence = f"{best} beats {second}" if tone == "clear" else f"{best} and {second} cannot be told apart"
        detail = f"{metric.label} {values[best]:#.3g} against {values[second]:#.3g}; difference {worded(difference)}. "
    else:
        sentence = f"{best} reaches {metric.label} {values[best]:#.3g}"
    if floor in values and best != floor:
        over = paired_difference(y, columns[best], columns[floor], metric, seed=seed)
        detail += f"Predicting the {floor} alone gives {values[floor]:#.3g}; {best} differs from it by {worded(over)}. "
        if not _apart(over) or sign * over.value > 0:
            tone = "warning"
            worse = (", which is", ", and both are", ", and all are")
            poor = (", which is not", ", and neither is", ", and none is")
            lead, tail = (worse, "worse") if _apart(over) else (poor, "clearly better")
            sentence += f"{lead[min(len(contest), 3) - 1]} {tail} than the {floor}"
    noun = "test row" if target.level == "row" else target.level
    detail += f"Measured on {len(y)} {noun}{'' if len(y) == 1 else 's'} that every method predicts."
    if target.level != "row":  # the bootstrap draws them one by one
        detail += f" The {noun}s of a molecule are alike, which makes the intervals too narrow."
    return Verdict(target.name, metric.name, values, len(y), f"{target.name}: {sentence}", detail, difference, tone)


def too_few(y: np.ndarray, target: Target) -> str:
    """Why the rows are too few for a verdict, and how to get more; empty where they are enough."""
    n, noun = len(y), "test row" if len(y) == 1 else "test rows"
    text, ways = f"{n} {noun} that every method predicts", "a larger last share of fractions or a test file"
    if target.kind in ("binary", "multiclass") and n >= FEWEST:
        rare = n - int(np.unique(y, return_counts=True)[1].max())
        which = "of the rarer class" if target.kind == "binary" else "not of the commonest class"
        n, text = rare, f"{rare} of {n} test rows {'is' if rare == 1 else 'are'} {which}"
        ways = f"the split random/stratified (of molecules scaffold/stratified), {ways}"
    if n >= FEWEST:
        return ""
    return f"{text}: a verdict needs {FEWEST}. Test more of them, by {ways}"


def _apart(difference: Interval) -> bool:
    return bool(difference.low > 0 or difference.high < 0)


def worded(i: Interval) -> str:
    """A difference with its interval."""
    return f"{i.value:+#.3g} (95% interval {i.low:+#.3g} to {i.high:+#.3g})".replace("-", "\N{MINUS SIGN}")
