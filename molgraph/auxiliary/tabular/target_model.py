"""Define the model of one target: the data that it is fitted to, its predictions and its stored arrays."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, NamedTuple, Self

import numpy as np

from molgraph.auxiliary.tabular.tanimoto_index import TanimotoIndex
from molgraph.base.contracts import Target


class TargetPrediction(NamedTuple):
    """Predictions of one target.

    Args:
        value: float64 [n, columns], in the target's units, or probabilities.
        spread: standard deviations of the same shape, or None.
    """

    value: np.ndarray
    spread: np.ndarray | None = None


@dataclass(frozen=True)
class TargetData:
    """The training rows that have a label of one target.

    Args:
        target: the target.
        x: float32 [n, width], the features.
        y: float64 [n], values or class codes, without NaN; for a label that is a limit its finite end.
        weights: float64 [n], weights of the rows times those of their classes; None where all are equal.
        rows: int64 [n], the row numbers in ``index``; without one, among all the readable rows.
        index: the training rows, for a method that compares molecules with them.
        limits: float64 [n, 2], the open range of a label that is a limit, NaN elsewhere; None where there is none.
        advance: moves the progress bar by a number of steps.
    """

    target: Target
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    rows: np.ndarray
    index: TanimotoIndex | None = None
    limits: np.ndarray | None = None
    advance: Callable[[int], None] = lambda n: None

    @property
    def n_classes(self) -> int:
        """Number of classes; 0 for numbers."""
        return n_classes(self.target)

    @property
    def scaled_weights(self) -> np.ndarray | None:
        """The weights, divided by their mean."""
        return None if self.weights is None else self.weights / self.weights.mean()

    @property
    def exact(self) -> np.ndarray:
        """bool [n]: labels that are measured values."""
        return np.ones(len(self.y), dtype=bool) if self.limits is None else np.isnan(self.limits[:, 0])

    def mean_and_sd(self) -> tuple[float, float]:
        """The weighted mean of the labels and their standard deviation, which is never 0; of limits their ends."""
        return float(np.average(self.y, weights=self.weights)), max(float(self.y.std()), 1e-12)

    def ends(self, mean: float, sd: float) -> tuple[np.ndarray, np.ndarray]:
        """float64 [n]: the lowest and the highest value of each label, standardised; the same for a measured one."""
        low = high = self.y
        if self.limits is not None:
            low, high = (np.where(self.exact, self.y, end) for end in self.limits.T)
        return (low - mean) / sd, (high - mean) / sd

    def kernel(self) -> np.ndarray:
        """Tanimoto similarity of the rows to each other, float64 [n, n]."""
        assert self.index is not None
        return self.index.among(self.rows)


@dataclass(frozen=True)
class StoredTarget:
    """The arrays of one target in a model file, and what they have to fit.

    Args:
        target: the target.
        arrays: its arrays by name.
        width: number of features.
        index: the training rows, for a method that compares molecules with them.
    """

    target: Target
    arrays: Mapping[str, np.ndarray]
    width: int
    index: TanimotoIndex | None = None

    def array(self, name: str, *shape: int | None) -> np.ndarray:
        """An array of finite numbers.

        Args:
            name: its name.
            shape: the shape that it must have; None stands for any length.

        Raises:
            ValueError: it is missing, or of another shape or type; ``from_state`` makes a ``ModelFileError`` of it.
        """
        if name not in self.arrays:
            raise ValueError(f"the array {name!r} is missing")
        values = self.arrays[name]
        fits = values.ndim == len(shape) and all(a in (None, b) for a, b in zip(shape, values.shape, strict=True))
        if not fits or values.dtype.kind not in "iuf" or not np.isfinite(values).all():
            raise ValueError(f"the array {name!r} is {values.dtype} of shape {values.shape}")
        return values

    def rows(self) -> np.ndarray:
        """The array of row numbers in the index, ascending; raises ``ValueError`` where one is not in it."""
        rows = self.array("rows", None)
        if self.index is None or rows.dtype.kind not in "iu" or not len(rows) or (rows[1:] <= rows[:-1]).any():
            raise ValueError("the rows are not ascending")
        if rows.min() < 0 or rows.max() >= len(self.index):
            raise ValueError(f"a row is beyond the {len(self.index)} of the index")
        return rows.astype(np.int64)


class TargetModel(ABC):
    """A fitted model of one target; a frozen dataclass whose fields that are arrays are what a file keeps."""

    @abstractmethod
    def predict(self, x: np.ndarray) -> TargetPrediction:
        """Predict from features [n, width], or from similarities [n, m] to the training rows."""

    @classmethod
    @abstractmethod
    def load(cls, stored: StoredTarget) -> Self:
        """Rebuild from stored arrays; a ``ValueError`` means that they are not whole."""

    def arrays(self) -> dict[str, np.ndarray]:
        """The arrays that ``load`` reads."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]
        return {name: value for name, value in values.items() if isinstance(value, np.ndarray)}


class SharesScore(TargetModel):
    """A model whose score can be taken apart into shares of its features; ``score_name``: that of a class, in words."""

    score_name: ClassVar[str]

    @abstractmethod
    def scores(self, x: np.ndarray) -> np.ndarray:
        """float64 [n, columns]: the scores of features [n, width]: values, or what a class is told by."""

    @abstractmethod
    def shares(self, x: np.ndarray, reference: np.ndarray, column: int) -> np.ndarray:
        """float64 [width]: what each feature of one row adds to ``scores(x) - scores(reference)`` in a column."""


def n_classes(target: Target) -> int:
    """Number of classes of a target; 0 for numbers."""
    return {"binary": 2, "multiclass": len(target.classes)}.get(target.kind, 0)


def clip_to_bounds(target: Target, value: np.ndarray) -> np.ndarray:
    """Values of a bounded target within its bounds; those of others as they are."""
    return value if target.bounds is None or target.kind != "bounded" else np.clip(value, *target.bounds)


def values_of_scores(target: Target, score: np.ndarray) -> np.ndarray:
    """Numbers within bounds, a sigmoid of a binary target's scores, a softmax of a multiclass target's.

    Args:
        target: the target.
        score: float64 [n, columns].
    """
    if not n_classes(target):
        return clip_to_bounds(target, score)
    if target.kind == "binary":
        return 0.5 * (1.0 + np.tanh(0.5 * score))
    p = np.exp(score - score.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)
