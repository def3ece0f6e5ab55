"""Conformal intervals of numbers and sets of classes, from rows that the model did not learn from."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from molgraph.base.contracts import Target

NUMBERS = ("regression", "bounded")
MOST, MOST_OF_MANY, MANY = 2_000, 200, 20  # scores that are kept of each column; fewer of more than 20 columns
ENOUGH = 50  # residuals from which widths follow distance and spread; of fewer all intervals are equally wide


@dataclass(frozen=True)
class Intervals:
    """What the errors of held-out rows say of new ones (split conformal prediction).

    With the unit ``u = a + b distance + c spread``, whose coefficients fit the absolute errors of the held-out rows by
    non-negative least squares, the score of a row is ``|y - f| / u``; an interval is ``f -+ q u`` with q the
    ``ceil((m + 1) coverage)``-th of the m scores (Papadopoulos et al. 2008, Neural Netw. 21:1021; Lei et al. 2018). For
    classes the score is 1 less the probability of the row's class, and the set has every class whose score is at most
    that quantile of its own rows' scores (Vovk 2013, Mach. Learn. 92:349, label-conditional).

    Args:
        units: float64 [columns, 3], the coefficients a, b, c; of classes not used.
        scores: for each column its sorted scores; none where there were no labels.
    """

    units: np.ndarray
    scores: tuple[np.ndarray, ...]

    @classmethod
    def of(
        cls,
        targets: Sequence[Target],
        y: np.ndarray,
        value: np.ndarray,
        distance: np.ndarray | None,
        spread: np.ndarray | None,
    ) -> Self:
        """Learn from held-out rows.

        Args:
            targets: of rows.
            y: float64 [m, targets]; NaN where there is no label.
            value: float64 [m, columns], predictions.
            distance: float64 [m], to the training molecules, or None.
            spread: float64 [m, columns], or None.
        """
        units, scores, column = np.zeros((value.shape[1], 3)), [], 0
        most = MOST if value.shape[1] <= MANY else MOST_OF_MANY
        for j, target in enumerate(targets):
            width = len(target.columns)
            known = np.isfinite(y[:, j]) & np.isfinite(value[:, column : column + width]).all(axis=1)
            outputs = value[known, column : column + width]
            if target.kind in NUMBERS:
                parts = design(distance, None if spread is None else spread[:, column], len(y))[known]
                errors = np.abs(y[known, j] - outputs[:, 0])
                units[column] = fit_unit(errors, parts)
                scores.append(_kept(errors / _positive(parts @ units[column]), most))
            elif target.kind == "binary":  # one column: the scores of class 0 and of class 1, one after the other
                zero, one = outputs[y[known, j] <= 0, 0], 1 - outputs[y[known, j] > 0, 0]
                units[column, 0] = len(_kept(zero, most))
                scores.append(np.concatenate([_kept(zero, most), _kept(one, most)]))
            else:
                scores += [_kept(1 - outputs[y[known, j] == c, c], most) for c in range(width)]
            column += width
        return cls(units, tuple(scores))

    def half_widths(
        self, coverage: float, distance: np.ndarray | None, spread: np.ndarray | None, n: int
    ) -> np.ndarray:
        """float64 [n, columns]: half of each interval; NaN where there were too few labels for the coverage."""
        out = np.full((n, len(self.scores)), np.nan)
        for j, scores in enumerate(self.scores):
            parts = design(distance, None if spread is None else spread[:, j], n)
            out[:, j] = quantile(scores, coverage) * _positive(parts @ self.units[j])
        return out

    def sets(self, target: Target, column: int, value: np.ndarray, coverage: float) -> np.ndarray:
        """object [n]: the classes that each row may have, such as ``0``, ``0|1`` or, for none, an empty text.

        Args:
            target: binary or multiclass.
            column: of ``scores`` at which it begins.
            value: float64 [n, columns of the target], probabilities.
            coverage: share of the rows of each class whose set has it.
        """
        if target.kind == "binary":
            zeros = int(self.units[column, 0])
            limits = [quantile(scores, coverage) for scores in np.split(self.scores[column], [zeros])]
            probabilities, names = np.column_stack([1 - value[:, 0], value[:, 0]]), target.classes or ("0", "1")
        else:
            limits = [quantile(self.scores[column + c], coverage) for c in range(len(target.classes))]
            probabilities, names = value, target.classes
        inside = 1 - probabilities <= np.where(np.isnan(limits), np.inf, limits)  # too few rows rule nothing out
        inside &= np.isfinite(probabilities)
        return np.array(["|".join(str(names[c]) for c in np.flatnonzero(row)) for row in inside], dtype=object)

    def arrays(self) -> dict[str, np.ndarray]:
        """Arrays for a model file."""
        counts = np.array([len(scores) for scores in self.scores], dtype=np.int64)
        return {"units": self.units, "scores": np.concatenate([*self.scores, np.zeros(0)]), "counts": counts}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """Rebuild; raises ``ValueError`` or ``LookupError`` where they do not fit together."""
        units, scores, counts = np.asarray(arrays["units"], np.float64), arrays["scores"], arrays["counts"]
        if units.shape != (len(counts), 3) or (counts < 0).any() or int(counts.sum()) != len(scores):
            raise ValueError("the scores of intervals do not fit together")
        return cls(units, tuple(np.split(scores, np.cumsum(counts)[:-1])))


def quantile(scores: np.ndarray, coverage: float) -> float:
    """The ``ceil((m + 1) coverage)``-th smallest of m sorted scores; NaN where there are fewer.

    Example:
        >>> quantile(np.arange(1.0, 10.0), 0.9), quantile(np.arange(1.0, 9.0), 0.9)
        (9.0, nan)
    """
    rank = math.ceil(round((len(scores) + 1) * coverage, 9))
    return float(scores[rank - 1]) if 1 <= rank <= len(scores) else math.nan


def design(distance: np.ndarray | None, spread: np.ndarray | None, n: int) -> np.ndarray:
    """float64 [n, 3]: one, the distance and the spread of each row; 0 for one that there is not."""
    parts = np.zeros((n, 3))
    parts[:, 0] = 1.0
    for j, values in ((1, distance), (2, spread)):
        if values is not None:
            parts[:, j] = np.nan_to_num(values)
    return parts


def fit_unit(errors: np.ndarray, parts: np.ndarray) -> np.ndarray:
    """float64 [3]: non-negative coefficients of the expected absolute error; a constant for few errors."""
    constant = np.array([errors.mean() if len(errors) else 1.0, 0.0, 0.0])
    if len(errors) < ENOUGH or not errors.any():
        return constant
    from scipy.optimize import nnls  # takes a third of a second

    weights: np.ndarray = nnls(parts, errors)[0]
    floor = 0.1 * float(np.median(errors))  # so that no interval shrinks to nothing
    weights[0] = max(weights[0], floor)
    return weights


def _positive(unit: np.ndarray) -> np.ndarray:
    return np.where(unit > 0, unit, 1.0)


def _kept(scores: np.ndarray, most: int) -> np.ndarray:
    """The sorted scores; evenly chosen ones where there are more."""
    scores = np.sort(scores)
    if len(scores) <= most:
        return scores
    kept: np.ndarray = scores[np.linspace(0, len(scores) - 1, most).round().astype(np.int64)]
    return kept
