"""Choose the model or its baseline forest, whichever has the better score on the validation set (``--keep best``)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from molgraph.base.contracts import Target
from molgraph.data.table import Table
from molgraph.evaluate.metrics import columns_of, default_metric, evaluate_metric
from molgraph.evaluate.verdict import too_few
from molgraph.train.model import Model


@dataclass(frozen=True)
class Choice:
    """The model that the validation part prefers."""

    model: Model
    sentence: str


def choose(models: Sequence[Model], valid: Table) -> Choice:
    """The model with the better main metric on the validation rows; of several targets, that for more of them.

    The first model is the one that was asked for; it is kept where nothing tells.
    """
    first = models[0]
    if len(models) == 1:
        return Choice(first, f"{first.kind} is kept: no baseline was trained beside it.")
    predictions = [model.predict_table(valid) for model in models] if len(valid) else []
    wins, lines = np.zeros(len(models), dtype=int), []
    for j, target in enumerate(valid.row_targets if predictions else ()):
        y = np.full(len(valid), np.nan) if valid.y is None else valid.y[:, j]
        columns = [columns_of(p, target) for p in predictions]
        use = np.isfinite(y) & np.all([np.isfinite(p.reshape(len(p), -1)).all(axis=1) for p in columns], axis=0)
        metric = default_metric(target.kind)
        values = np.array([evaluate_metric(metric, y[use], p[use])[0] for p in columns])
        if np.isfinite(values).all():
            best = int(values.argmax() if metric.higher_is_better else values.argmin())
            wins[best] += 1
            lines.append(_line(target, metric.label or metric.name, values, best, y[use]))
    if not lines:
        return Choice(first, f"{first.kind} is kept: the validation part gives no score to choose by.")
    best = int(wins.argmax())
    chosen = models[best]
    if len(lines) == 1:
        sentence = f"{chosen.kind} is kept: {lines[0]}."
    else:
        sentence = (
            f"{chosen.kind} is kept: it is better for {wins[best]} of {len(lines)} targets on the validation part."
        )
    for model in models:
        if model.method.uses_valid:
            sentence += f" These rows also stopped the training of {model.kind}, which flatters it here."
    advice = " model=auto (--model auto --budget 10m) cross-validates more methods and weighs them."
    return Choice(chosen.with_note(sentence), sentence + (advice if best else ""))


def _line(target: Target, label: str, values: np.ndarray, best: int, y: np.ndarray) -> str:
    other = values[1 - best]
    few = ", which are few" if too_few(y, target) else ""
    return f"{label} {values[best]:#.3g} against {other:#.3g} on {len(y):,} validation rows{few}"
