"""Calibrate the probabilities of classes on rows that the model did not learn from: Platt and temperature scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from molgraph.base.contracts import Target

NUMBERS = ("regression", "bounded")
FEWEST = 20  # held-out labels below which probabilities are left as they are; and of a class
EDGE = 1e-6  # probabilities are this far from 0 and 1
STEEPEST = 20.0


@dataclass(frozen=True)
class Calibration:
    """A slope and an offset for the logits of each class target.

    Of two classes ``p' = sigmoid(a logit(p) + b)``, with a not below 0 (Platt 1999, Advances in Large Margin
    Classifiers, with its targets ``(n_1 + 1) / (n_1 + 2)`` and ``1 / (n_0 + 2)``); of several ``p' ~ p^a``, which is
    temperature scaling with ``T = 1 / a`` (Guo et al. 2017, ICML). Both minimise the log loss of held-out rows.

    Args:
        slopes, offsets: float64 [columns]; NaN where probabilities are left as they are, and of numbers.
    """

    slopes: np.ndarray
    offsets: np.ndarray

    @classmethod
    def of(cls, targets: Sequence[Target], y: np.ndarray, value: np.ndarray) -> Self:
        """Learn from held-out rows.

        Args:
            targets: of rows.
            y: float64 [m, targets]; NaN where there is no label.
            value: float64 [m, columns], predictions.
        """
        slopes, offsets, column = np.full(value.shape[1], np.nan), np.full(value.shape[1], np.nan), 0
        for j, target in enumerate(targets):
            columns = slice(column, column + len(target.columns))
            known = np.isfinite(y[:, j]) & np.isfinite(value[:, columns]).all(axis=1)
            if target.kind not in NUMBERS and known.sum() >= FEWEST:
                fitted = _platt if target.kind == "binary" else _temperature
                slopes[columns], offsets[columns] = fitted(y[known, j], value[known, columns])
            column = columns.stop
        return cls(slopes, offsets)

    def probabilities(self, targets: Sequence[Target], value: np.ndarray) -> dict[str, np.ndarray]:
        """``COLUMN_calibrated``, float64 [n], for each column of the class targets that have a slope."""
        out, column = dict[str, np.ndarray](), 0
        for target in targets:
            columns = slice(column, column + len(target.columns))
            column = columns.stop
            if np.isnan(self.slopes[columns]).any():
                continue
            p = _binary(value[:, columns], self.slopes[columns], self.offsets[columns])
            p = p if target.kind == "binary" else _several(value[:, columns], self.slopes[columns.start])
            out |= {f"{name}_calibrated": p[:, c] for c, name in enumerate(target.columns)}
        return out

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a model file."""
        left = np.isnan(self.slopes)
        return {"slopes": np.where(left, 0.0, self.slopes), "offsets": np.where(left, 0.0, self.offsets), "left": left}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Rebuild; raises ``ValueError`` or ``LookupError`` where they do not fit together."""
        slopes, offsets, left = (np.asarray(arrays[name], np.float64) for name in ("slopes", "offsets", "left"))
        if slopes.ndim != 1 or not slopes.shape == offsets.shape == left.shape:
            raise ValueError("the calibration does not fit together")
        return cls(np.where(left > 0, np.nan, slopes), np.where(left > 0, np.nan, offsets))


def _platt(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    positive, n = y > 0, len(y)
    ones = int(positive.sum())
    if not 0 < ones < n:
        return np.nan, np.nan
    goal = np.where(positive, (ones + 1) / (ones + 2), 1 / (n - ones + 2))

    def loss(x: np.ndarray) -> float:
        q = np.clip(_binary(p, x[:1], x[1:])[:, 0], EDGE, 1 - EDGE)
        return float(-(goal * np.log(q) + (1 - goal) * np.log(1 - q)).mean())

    slope, offset = _lowest(loss, [1.0, 0.0], [(0.0, STEEPEST), (-STEEPEST, STEEPEST)])
    return slope, offset


def _temperature(y: np.ndarray, p: np.ndarray) -> tuple[float, float]:
    rows, classes = np.arange(len(y)), y.astype(int)

    def loss(x: np.ndarray) -> float:
        return float(-np.log(np.clip(_several(p, x[0])[rows, classes], EDGE, 1.0)).mean())

    (slope,) = _lowest(loss, [1.0], [(0.0, STEEPEST)])
    return slope, 0.0


def _lowest(loss: Callable[[np.ndarray], float], start: list[float], bounds: list[tuple[float, float]]) -> list[float]:
    from scipy.optimize import minimize  # takes a third of a second

    solution: list[float] = minimize(loss, start, bounds=bounds, method="L-BFGS-B").x.tolist()
    return solution


def _binary(p: np.ndarray, slope: np.ndarray, offset: np.ndarray) -> np.ndarray:
    """float64 [n, columns]; NaN stays NaN."""
    p = np.clip(p, EDGE, 1 - EDGE)
    return np.asarray(1 / (1 + np.exp(-(slope * np.log(p / (1 - p)) + offset))))


def _several(p: np.ndarray, slope: float) -> np.ndarray:
    """float64 [n, classes]; NaN stays NaN."""
    power = np.clip(p, EDGE, 1.0) ** slope
    return np.asarray(power / power.sum(axis=1, keepdims=True))
