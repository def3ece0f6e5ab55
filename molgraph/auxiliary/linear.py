"""The straight line: ridge regression for numbers and logistic regression for classes, on the forest's features."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.auxiliary import parts
from molgraph.auxiliary.features import Choice, Features
from molgraph.auxiliary.parts import Fitted, Lesson, Said
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import UsageError
from molgraph.base.registry import register
from molgraph.base.size import Shapes, Size
from molgraph.base.space import Categorical, Float, Space
from molgraph.data.table import Table
from molgraph.train.outputs import ClassWeights

FAR = 5.0  # deviations; a descriptor further out counts as that far, so that no molecule is predicted by one number


@dataclass(frozen=True)
class _Plane:
    """A plane in standardised features, and what its height means."""

    target: Target
    mean: np.ndarray
    scale: np.ndarray
    slope: np.ndarray  # [width, k]: one column for numbers and binary classes, else one a class
    height: np.ndarray  # [k]

    def predict(self, x: np.ndarray) -> Said:
        z = _standard(x, self.mean, self.scale) @ self.slope + self.height
        if not parts.classes_of(self.target):
            return parts.inside(self.target, z), None
        if self.target.kind == "binary":
            return 0.5 * (1.0 + np.tanh(0.5 * z)), None
        z = np.exp(z - z.max(axis=1, keepdims=True))
        return z / z.sum(axis=1, keepdims=True), None

    def arrays(self) -> dict[str, np.ndarray]:
        return {"mean": self.mean, "scale": self.scale, "slope": self.slope, "height": self.height}


@register(
    "method",
    "linear",
    summary="ridge regression for numbers, logistic regression for classes",
    paper="Hoerl and Kennard 1970, Technometrics 12:55; Cox 1958, J. R. Stat. Soc. B 20:215",
)
class Linear(Method):
    """Ridge regression (Hoerl and Kennard 1970) for numbers, logistic regression (Cox 1958) for classes.

    One name, because both are the same straight line under the same pull ``alpha |slope|^2``; the target's kind says
    which. Columns are standardised on the training rows; descriptors further out than five deviations count as five.

    Args:
        alpha: how strongly slopes are pulled towards zero.
        features: ``morgan+descriptors``, ``morgan`` or ``maplight``.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        class_weights: None, ``balanced``, or a weight for each class label.
        threads: cores that make features; None for all.
        store: a folder that keeps features, so that they are made once for all splits and methods; auto for one in
            molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "CCC", "C(C"], targets=(Target("size"),), y=[1, 2, 3, 4])
        >>> Linear(alpha=0.01).fit(table).predict(table).value.round(1).ravel().tolist()
        [1.0, 2.0, 3.0, nan]
    """

    name = "linear"

    def __init__(
        self,
        alpha: float = 300.0,
        features: Choice = "morgan+descriptors",
        radius: int = 2,
        n_bits: int = 2048,
        class_weights: ClassWeights = None,
        threads: int | None = None,
        store: str | None = None,
    ) -> None:
        self.alpha, self.features, self.radius, self.n_bits = alpha, features, radius, n_bits
        self.class_weights, self.threads, self.store = class_weights, threads, store

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Solve for the slopes on ``table``; ``valid`` and ``workdir`` are not used."""
        if not self.alpha > 0:
            raise UsageError(f"alpha is {self.alpha!r}, expected a number above 0")
        features = Features(self.features, self.radius, self.n_bits)
        self._fitted = parts.learn(self, table, features, self._grow, class_weights=self.class_weights)
        return self

    def predict(self, table: Table) -> Prediction:
        """Values, P(class 1), or one probability a class."""
        return parts.predict(self, table)

    def state(self) -> State:
        """The slopes."""
        return parts.state(self)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the state is not whole."""
        return parts.restore(cls, state, _load)

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict."""
        return parts.size_of(meta, shapes, _size)

    def space(self) -> Space:
        """The pull, and the features."""
        return {"alpha": Float(1.0, 30_000.0, log=True), "features": Categorical(("morgan+descriptors", "morgan"))}

    def _grow(self, lesson: Lesson) -> _Plane:
        from threadpoolctl import threadpool_limits

        mean = lesson.x.mean(axis=0, dtype=np.float64)
        scale = lesson.x.std(axis=0, dtype=np.float64)
        scale[scale < 1e-9 * np.maximum(1.0, np.abs(mean))] = np.inf  # a column that never varies says nothing
        x = _standard(lesson.x, mean, scale)
        with threadpool_limits(1):  # the same sums in the same order, whatever the threads
            solve = _classify if parts.classes_of(lesson.target) else _regress
            slope, height = solve(x, lesson, float(self.alpha))
        return _Plane(lesson.target, mean, np.where(np.isinf(scale), 0.0, scale), slope, height)


def _standard(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float64 [n, width]; columns of scale 0 or infinity are 0."""
    by = np.divide(1.0, scale, out=np.zeros_like(scale), where=(scale > 0) & np.isfinite(scale))
    return np.clip((x - mean) * by, -FAR, FAR)


def _regress(x: np.ndarray, lesson: Lesson, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=alpha, solver="cholesky").fit(x, lesson.y, sample_weight=lesson.weights)
    return model.coef_.reshape(-1, 1), np.array([float(model.intercept_)])


def _classify(x: np.ndarray, lesson: Lesson, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    y = lesson.y.astype(np.int64)
    model = LogisticRegression(C=1 / alpha, max_iter=500, tol=1e-4).fit(x, y, sample_weight=lesson.weights)
    if lesson.target.kind == "binary":
        return model.coef_.T, model.intercept_
    n = len(lesson.target.classes)
    slope, height = np.zeros((x.shape[1], n)), np.full(n, -np.inf)
    coef, intercept = model.coef_, model.intercept_
    if len(model.classes_) == 2:  # two classes of more were seen: scikit-learn then keeps the second's plane alone
        coef, intercept = np.concatenate([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
    slope[:, model.classes_], height[model.classes_] = coef.T, intercept
    return slope, np.where(np.isfinite(height), height, height[model.classes_].min() - 50.0)


def _size(shapes: Shapes, width: int) -> Size:
    return Size(row_operations=math.prod(shapes["slope"]))


def _load(arrays: Mapping[str, np.ndarray], target: Target, base: Fitted) -> _Plane:
    width, k = base.features.width, len(target.columns)
    mean, scale = parts.array(arrays, "mean", width), parts.array(arrays, "scale", width)
    return _Plane(target, mean, scale, parts.array(arrays, "slope", width, k), parts.array(arrays, "height", k))
