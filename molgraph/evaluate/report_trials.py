"""Draw a search of hyper-parameters: its trials, its best score so far, and which parameters matter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from molgraph.base.search_space import Space
from molgraph.evaluate.report_style import COLOURS, DASHED, SOFT, drawn, number
from molgraph.evaluate.trials import Trial, importances


def trials_section(
    space: Space, trials: Sequence[Trial], *, metric: str, sign: float, sentences: Sequence[str], command: str
) -> dict[str, Any]:
    """The content of a report's section on a search.

    Args:
        space: the parameters that were searched.
        trials: in the order in which they were made.
        metric: what the trials are scored by, in words.
        sign: -1 where trials hold the negative of a metric of which more is better, else 1.
        sentences: the outcome in words.
        command: what trains with the best parameters, to be typed.
    """
    order = sorted(range(len(trials)), key=lambda i: (trials[i].value is None, trials[i].value or 0.0))
    rows = [
        {
            "trial": i + 1,
            "value": "" if trials[i].value is None else number(sign * float(trials[i].value or 0.0)),
            "params": [_cell(trials[i].params[name]) for name in space],
            "seconds": number(trials[i].seconds),
            "reason": trials[i].reason,
        }
        for i in order
    ]
    return {
        "names": list(space),
        "metric": metric,
        "rows": rows,
        "sentences": sentences,
        "command": command,
        "history": history(trials, metric, sign, key="history"),
        "importance": importance(importances(space, trials), key="importance"),
    }


@drawn
def history(trials: Sequence[Trial], metric: str, sign: float) -> Figure | None:
    """The score of each trial, and the best so far; the first trial, of the defaults, as a dashed line."""
    values = np.array([np.nan if t.value is None else sign * t.value for t in trials])
    if not np.isfinite(values).any():
        return None
    figure = Figure(figsize=(7.2, 3.2), layout="constrained")
    axis = figure.subplots()
    axis.grid()
    n = np.arange(1, len(values) + 1)
    best = np.fmin.accumulate(values) if sign > 0 else np.fmax.accumulate(values)
    if np.isfinite(values[0]):
        axis.axhline(values[0], **DASHED)
    axis.scatter(n, values, s=18, color=SOFT, label="trial", linewidths=0)
    axis.step(n, best, where="post", color=COLOURS[0], linewidth=1.6, label="best so far")
    axis.set(xlabel="trial", ylabel=metric, xlim=(0.5, len(values) + 0.5))
    axis.legend()
    return figure


@drawn
def importance(shares: Mapping[str, float]) -> Figure | None:
    """The share of the scores' variance that each parameter explains, a bar each."""
    if not shares:
        return None
    figure = Figure(figsize=(7.2, 0.6 + 0.34 * len(shares)), layout="constrained")
    axis = figure.subplots()
    names = list(shares)[::-1]
    bars = axis.barh(names, [shares[name] for name in names], color=COLOURS[0], height=0.6)
    axis.bar_label(bars, fmt="{:.0%}", padding=4)
    axis.set(xlabel="share of the variance of the scores", xlim=(0, 1.05))
    return figure


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float | int) and not isinstance(value, bool) else str(value)
