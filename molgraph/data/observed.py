"""Correlate the share of a row's feature columns that have a value with labels or predictions."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

FEWEST = 10  # rows with a value, of which a correlation is told


def share_observed(features: np.ndarray) -> np.ndarray:
    """float64 [n]: the share of each row's columns, of float [n, f], that have a value.

    Example:
        >>> share_observed(np.array([[1.0, np.nan], [0.0, 2.0]])).tolist()
        [0.5, 1.0]
    """
    return 1.0 - np.isnan(features).mean(axis=1)


def observed_correlation(features: np.ndarray, value: np.ndarray) -> float:
    """Pearson's correlation of ``share_observed`` with float [n], NaN without a value; NaN where either is constant."""
    share, known = share_observed(features), np.isfinite(value)
    if known.sum() < FEWEST or np.ptp(share[known]) == 0 or np.ptp(value[known]) == 0:
        return float("nan")
    return float(np.corrcoef(share[known], value[known])[0, 1])


def observed_notes(features: np.ndarray | None, values: Mapping[str, np.ndarray], of: str) -> tuple[str, ...]:
    """A sentence for each target, where feature columns have gaps.

    Args:
        features: float [n, f], or None.
        values: by the target's name, float [n].
        of: ``labels`` or ``predictions``, for the sentence.

    Example:
        >>> gaps = np.where(np.arange(20)[:, None] < [20, 10], 1.0, np.nan)
        >>> observed_notes(gaps, {"y": (np.arange(20) < 10) * 1.0}, "labels")[0][-5:]
        '+1.00'
    """
    if features is None or not np.isnan(features).any():
        return ()
    words = f"the share of feature columns with a value ({share_observed(features).mean():.0%} on average)"
    corr = {name: observed_correlation(features, value) for name, value in values.items()}
    return tuple(f"{of} of {name} and {words} have a correlation of {r:+.2f}" for name, r in corr.items() if r == r)
