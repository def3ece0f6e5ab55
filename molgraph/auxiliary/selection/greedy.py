"""Weigh models by greedy selection on their out-of-fold predictions (Caruana et al. 2004)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base.contracts import Target

ROUNDS = 25  # models that are added; a weight is a multiple of 1/25
FEWEST = 10  # labelled rows below which the best model alone is taken
LEAST = 1e-6  # probability, so that one sure error is not infinitely bad


def row_losses(target: Target, value: np.ndarray, y: np.ndarray) -> np.ndarray:
    """float64 [n]: squared errors of numbers, log losses of classes.

    Args:
        target: of these values.
        value: float64 [n, columns of the target]: values, or probabilities of class 1 or of every class.
        y: float64 [n], measured values or classes.
    """
    if target.kind == "binary":
        p = np.clip(value[:, 0], LEAST, 1 - LEAST)
        return -np.where(y > 0, np.log(p), np.log1p(-p))
    if target.kind == "multiclass":
        p = value[np.arange(len(y)), y.astype(np.int64)] / np.maximum(value.sum(axis=1), LEAST)
        return -np.log(np.clip(p, LEAST, 1.0))
    return (value[:, 0] - y) ** 2


def score(target: Target, value: np.ndarray, y: np.ndarray) -> float:
    """The root mean squared error of numbers, or the mean log loss of classes; NaN where no row has both."""
    known = np.isfinite(y) & np.isfinite(value).all(axis=1)
    if not known.any():
        return float("nan")
    mean = float(row_losses(target, value[known], y[known]).mean())
    return mean if target.classes or target.kind == "binary" else mean**0.5


def greedy_weights(target: Target, values: Sequence[np.ndarray], y: np.ndarray, rounds: int = ROUNDS) -> np.ndarray:
    """float64 [models]: shares of the models in the mean that predicts best, which sum to 1.

    Starting from none, the model that lowers the loss of the mean most is added, with replacement, ``rounds`` times;
    the shares are those after the round with the lowest loss (Caruana et al. 2004, ICML, section 2).

    Args:
        target: what is predicted.
        values: for each model float64 [n, columns of the target], out of fold.
        y: float64 [n]; NaN where there is no label.
        rounds: additions.

    Example:
        >>> y = np.arange(20.0)
        >>> greedy_weights(Target("y"), [(y + 1)[:, None], (y - 1)[:, None], (y + 9)[:, None]], y)
        array([0.5, 0.5, 0. ])
    """
    known = np.isfinite(y) & np.all([np.isfinite(value).all(axis=1) for value in values], axis=0)
    counts = np.zeros(len(values))
    stacked, y = np.stack([value[known] for value in values]), y[known]
    losses = [float(row_losses(target, value, y).mean()) if len(y) else 0.0 for value in stacked]
    if len(y) < FEWEST:
        counts[int(np.argmin(losses))] = 1.0
        return counts
    total, best, lowest = np.zeros_like(stacked[0]), counts, np.inf
    for n in range(1, rounds + 1):
        means = (total + stacked) / n
        losses = [float(row_losses(target, mean, y).mean()) for mean in means]
        chosen = int(np.argmin(losses))
        total = total + stacked[chosen]
        counts = counts + np.eye(len(counts))[chosen]
        if losses[chosen] < lowest - 1e-12:
            best, lowest = counts, losses[chosen]
    weights: np.ndarray = best / best.sum()
    return weights
