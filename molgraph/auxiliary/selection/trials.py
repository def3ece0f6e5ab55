"""Weigh the methods that were tried, and list their errors out of fold in a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from molgraph.auxiliary.selection.greedy import greedy_weights, score
from molgraph.auxiliary.selection.out_of_fold import Trial
from molgraph.base.contracts import Target
from molgraph.data.limits import middle_of
from molgraph.data.table import Table


def mean_of(values: Sequence[np.ndarray], weights: np.ndarray) -> np.ndarray:
    """float64 [n, columns]: the weighted mean of those that are finite; NaN where none with a weight is."""
    total, known = np.zeros_like(values[0]), np.zeros_like(values[0])
    for value, weight in zip(values, weights, strict=True):
        finite = np.isfinite(value)
        total += weight * np.where(finite, value, 0.0)
        known += weight * finite
    mean: np.ndarray = np.divide(total, known, out=np.full_like(total, np.nan), where=known > 0)
    return mean


def _columns(targets: Sequence[Target]) -> list[slice]:
    """The columns of each target in a prediction's values."""
    ends = np.cumsum([len(target.columns) for target in targets]).tolist()
    return [slice(end - len(target.columns), end) for target, end in zip(targets, ends, strict=True)]


def meeting_limits(value: np.ndarray, table: Table, targets: Sequence[Target]) -> np.ndarray:
    """float64 [n, columns]: predictions that satisfy a label that is a limit equal it, so that their error is 0.

    Args:
        value: float64 [n, columns of the targets].
        table: the rows, with their limits.
        targets: of rows.
    """
    if table.limits is None:
        return value
    value, ends = value.copy(), middle_of(table.limits)
    for j, (_, at) in enumerate(_each(targets)):
        low, high = table.limits[:, j].T
        met = (low <= value[:, at.start]) & (value[:, at.start] <= high)
        value[met, at.start] = ends[met, j]
    return value


def weights_of(targets: Sequence[Target], tried: Sequence[Trial], y: np.ndarray) -> np.ndarray:
    """float64 [trials, columns]: the share of each trial in each column."""
    values = [trial.value for trial in tried if trial.value is not None]
    shares = [greedy_weights(t, [v[:, at] for v in values], y[:, j]) for j, (t, at) in enumerate(_each(targets))]
    repeated = [np.repeat(share[:, None], len(t.columns), axis=1) for share, t in zip(shares, targets, strict=True)]
    return np.concatenate(repeated, axis=1)


def _each(targets: Sequence[Target]) -> list[tuple[Target, slice]]:
    return list(zip(targets, _columns(targets), strict=True))


def errors_of(targets: Sequence[Target], value: np.ndarray, y: np.ndarray) -> dict[str, float]:
    """The error of each target."""
    return {t.name: score(t, value[:, at], y[:, j]) for j, (t, at) in enumerate(_each(targets))}


def trial_words(trial: Trial, targets: Sequence[Target], y: np.ndarray) -> str:
    """The mean error of a trial out of fold and its seconds, or why it was left out."""
    if trial.value is None:
        return f"{trial.candidate.name} left out: {trial.reason}"
    mean = np.nanmean([*errors_of(targets, trial.value, y).values()])
    kind = "RMSE" if all(t.kind in ("regression", "bounded") for t in targets) else "loss"
    return f"{trial.candidate.name} {kind} {mean:.4g} out of fold, {trial.seconds:,.0f} s"


def trial_table(
    targets: Sequence[Target],
    trials: Sequence[Trial],
    left: Mapping[str, str],
    tried: Sequence[Trial],
    weights: np.ndarray,
    ensemble: np.ndarray,
    y: np.ndarray,
) -> pd.DataFrame:
    """A row a method and one of the ensemble: mean weight, seconds, error of each target out of fold, reason."""
    rows: list[dict[str, Any]] = []
    for trial in trials:
        at = next((i for i, other in enumerate(tried) if other is trial), None)
        errors = {} if trial.value is None else errors_of(targets, trial.value, y)
        weight = 0.0 if at is None else float(weights[at].mean())
        row = {"method": trial.candidate.name, "weight": weight, "seconds": round(trial.seconds, 1)}
        rows.append({**row, **{f"error of {name}": value for name, value in errors.items()}, "reason": trial.reason})
    rows += [{"method": name, "weight": 0.0, "seconds": 0.0, "reason": reason} for name, reason in left.items()]
    errors = {f"error of {name}": value for name, value in errors_of(targets, ensemble, y).items()}
    seconds = sum(trial.seconds for trial in trials)
    rows.append({"method": "ensemble", "weight": np.nan, "seconds": seconds, **errors, "reason": ""})
    return pd.DataFrame(rows).fillna({"reason": ""})
