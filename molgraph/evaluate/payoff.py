"""Say whether a pretrained start paid: scores of a fine-tuned model less those from scratch and of a forest."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.data.levels import level_of
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric, has_value
from molgraph.evaluate.statistics import paired_difference
from molgraph.evaluate.verdict import too_few, worded


class Payoff(NamedTuple):
    """Whether fine-tuning paid for a target.

    Args:
        sentence: in words, without a full stop.
        used: whether the fine-tuned model is better than each of the others by more than chance.
    """

    sentence: str
    used: bool


def payoffs(
    table: Table, tuned: Prediction, others: Mapping[str, Prediction], *, seed: int = 0, most: int = 20
) -> tuple[Payoff, ...]:
    """One for each of the first targets of rows, on the rows that all methods predict; none where there are no others.

    Args:
        table: test rows with measured values.
        tuned: the fine-tuned model's prediction.
        others: predictions of a model from scratch, of a forest, by name.
        seed: of the bootstrap.
        most: targets at most.
    """
    if not others or level_of(table.targets) != "row":
        return ()
    return tuple(_payoff(table, target, tuned, others, seed) for target in table.targets[:most])


def _payoff(table: Table, target: Target, tuned: Prediction, others: Mapping[str, Prediction], seed: int) -> Payoff:
    metric, of = default_metric(target.kind), f" for {target.name}" if len(table.targets) > 1 else ""
    y = table.with_targets([target.name]).y
    assert y is not None
    columns = [columns_of(item, target) for item in (tuned, *others.values())]
    use = np.isfinite(y[:, 0]) & np.all([has_value(item) for item in columns], axis=0)
    y, columns = y[use, 0], [item[use] for item in columns]
    if reason := too_few(y, target):
        return Payoff(f"Whether fine-tuning paid{of} cannot be told: {reason}", False)
    sign, better, shown = 1 if metric.higher_is_better else -1, [], []
    for name, column in zip(others, columns[1:], strict=True):
        difference = paired_difference(y, columns[0], column, metric, seed=seed)
        low, high = sorted((sign * difference.low, sign * difference.high))
        better.append(1 if low > 0 else -1 if high < 0 else 0)
        shown.append(f"{evaluate_metric(metric, y, column)[0]:#.3g} {name} (difference {worded(difference)})")
    if all(item > 0 for item in better):
        words = "Fine-tuning paid"
    else:
        over = [name for name, item in zip(others, better, strict=True) if item > 0]
        names = [name for name, item in zip(others, better, strict=True) if item <= 0]
        first = (
            f"Fine-tuning paid{of} over {' and '.join(over)}, and" if over else f"Whether fine-tuning paid{of} is open:"
        )
        if not over and any(item < 0 for item in better):
            first = f"Fine-tuning did not pay{of}:"
        words, of = f"{first} nothing shows that it is better than {' or '.join(names)}", ""
    score = f"{metric.label or metric.name} {evaluate_metric(metric, y, columns[0])[0]:#.3g} fine-tuned"
    return Payoff(f"{words}{of}; {score}, {', '.join(shown)}", all(item > 0 for item in better))
