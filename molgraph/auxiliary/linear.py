"""Ridge regression for numbers and logistic regression for classes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, ClassVar, Self

import numpy as np

from molgraph.auxiliary.depth_factorised import Problem, fit_deep
from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetPrediction
from molgraph.auxiliary.tabular.table_featuriser import Choice
from molgraph.auxiliary.tabular.target_model import SharesScore, values_of_scores
from molgraph.base.contracts import Target
from molgraph.base.ranges import Bits, Positive, Radius, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Categorical, Float, Space
from molgraph.base.systems import SystemCard
from molgraph.data.table import Table
from molgraph.train.outputs import ClassWeights

logger = logging.getLogger("molgraph")
SHOWN = 12  # columns that a note names
FAR = 5.0  # deviations; a descriptor further out counts as that far, so that no molecule is predicted by one number


@dataclass(frozen=True)
class Plane(SharesScore):
    """A linear function of standardised features."""

    score_name: ClassVar[str] = "log-odds"

    target: Target
    mean: np.ndarray  # float64 [width], of the features
    scale: np.ndarray  # float64 [width], their standard deviation; 0 for a feature that is not used
    slope: np.ndarray  # float64 [width, k]: one column for numbers and binary classes, else one a class
    height: np.ndarray  # float64 [k], the intercept

    def predict(self, x: np.ndarray) -> TargetPrediction:
        return TargetPrediction(values_of_scores(self.target, self.scores(x)))

    def scores(self, x: np.ndarray) -> np.ndarray:
        """The linear function: numbers, or scores of classes."""
        return np.asarray(_standardised(x, self.mean, self.scale) @ self.slope + self.height)

    def shares(self, x: np.ndarray, reference: np.ndarray, column: int) -> np.ndarray:
        """The slope times the difference of each feature, which are its Shapley values."""
        one, other = (_standardised(row[None], self.mean, self.scale)[0] for row in (x, reference))
        return np.asarray((one - other) * self.slope[:, column])

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        width, k = stored.width, len(stored.target.columns)
        shapes = {"mean": (width,), "scale": (width,), "slope": (width, k), "height": (k,)}
        return cls(stored.target, **{name: stored.array(name, *shape) for name, shape in shapes.items()})


@register(
    "method",
    "linear",
    tags=("fingerprints", "baseline"),
    summary="ridge or logistic regression: for numbers, for classes",
    paper="Hoerl and Kennard 1970, Technometrics 12:55; Cox 1958, J. R. Stat. Soc. B 20:215",
    systems=(
        SystemCard(
            "incremental-learning-depth-n-reparameter",
            left_out="matrices, quadratic networks and convolutions",
            off="-s params.depth=1",
            beside=("depth 1", "lasso"),
            command="molgraph train dataset:chembl2321810 -m linear -s params.depth=3",
            modules=("molgraph.auxiliary.depth_factorised",),
        ),
    ),
)
@dataclass(eq=False)
class Linear(TabularMethod):
    """Ridge regression (Hoerl and Kennard 1970) for numbers, logistic regression (Cox 1958) for classes.

    Both are the same linear function under the same penalty ``alpha |slope|^2``, and the target's kind says which one
    is fitted. Columns are standardised on the training rows; values further out than five deviations count as five.

    Use it to see what needs no trees: where it comes near the forest, more of a model is not what is lacking. Known
    limits: bits and descriptors do not act together in it.

    With a ``depth`` of 2 or more the slope is ``u^depth - v^depth`` and has no penalty: columns enter one after the
    other, and few do (Gissin et al. 2020, ``auxiliary.depth_factorised``). The notes name them in order of entry; use
    it for a short list of fragments or descriptors from few molecules.

    Args:
        alpha: the strength of the penalty, with a depth of 1.
        features: ``morgan+descriptors``, ``morgan``, ``morgan-counts``, ``maplight`` or ``vectors``.
        descriptors: an encoder's file (.mgm), whose vectors are features too; ``none`` for none.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        class_weights: None, ``balanced``, or a weight for each class label.
        threads: cores that make features; None for all.
        store: a folder that keeps features for all splits and methods; auto for molgraph's cache; None keeps none.
        depth: factors of each slope; 1: ridge and logistic regression, 3: few columns.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "CCC", "C(C"], targets=(Target("size"),), y=[1, 2, 3, 4])
        >>> Linear(alpha=0.01).fit(table).predict(table).value.round(1).ravel().tolist()
        [1.0, 2.0, 3.0, nan]
    """

    name = "linear"
    small = MappingProxyType({"n_bits": 256})
    target_model = Plane

    alpha: Positive = 300.0
    features: Choice = "morgan+descriptors"
    descriptors: str = "none"
    radius: Radius = 2
    n_bits: Bits = 2048
    class_weights: ClassWeights = None
    threads: int | None = None
    store: str | None = None
    depth: Annotated[int, Range(1, 6)] = 1

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Fit a model for each target; with a depth above 1 the notes name the columns in order of entry."""
        self._entered: dict[str, np.ndarray] = {}
        super().fit(table, valid, workdir=workdir)
        names = self.fitted.features.names()
        for target, columns in self._entered.items():
            first = ", ".join(names[j] for j in columns[:SHOWN])
            more = f", and {len(columns) - SHOWN} more" if len(columns) > SHOWN else ""
            note = f"{target}: {len(columns)} columns, in order of entry {first}{more}"
            logger.info(note)
            self.notes = (*self.notes, note)
        return self

    def fit_target(self, data: TargetData) -> Plane:
        from threadpoolctl import threadpool_limits

        mean = data.x.mean(axis=0, dtype=np.float64)
        scale = data.x.std(axis=0, dtype=np.float64)
        scale[scale < 1e-9 * np.maximum(1.0, np.abs(mean))] = 0.0  # a constant column is not used
        x = _standardised(data.x, mean, scale)
        with threadpool_limits(1):  # the same sums in the same order, whatever the threads
            if self.depth > 1:
                slope, height, self._entered[data.target.name] = _deep(x, data, self.depth)
            else:
                fit = _logistic_regression if data.n_classes else _ridge
                slope, height = fit(x, data, float(self.alpha))
        return Plane(data.target, mean, scale, slope, height)

    def space(self) -> Space:
        """The penalty, and the features."""
        return {"alpha": Float(1.0, 30_000.0, log=True), "features": Categorical(("morgan+descriptors", "morgan"))}


def _standardised(x: np.ndarray, mean: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """float64 [n, width]; columns of scale 0 are 0."""
    by = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > 0)
    return np.clip((x - mean) * by, -FAR, FAR)


def _ridge(x: np.ndarray, data: TargetData, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import Ridge

    model = Ridge(alpha=alpha, solver="cholesky").fit(x, data.y, sample_weight=data.weights)
    return model.coef_.reshape(-1, 1), np.array([float(model.intercept_)])


def _deep(x: np.ndarray, data: TargetData, depth: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Slope, intercept and the columns in order of entry."""
    weights = np.ones(len(x)) if data.weights is None else np.asarray(data.weights, dtype=np.float64)
    weights = weights / weights.sum()
    if not data.n_classes:
        mean = float(weights @ data.y)
        scale = float(np.sqrt(weights @ np.square(data.y - mean))) or 1.0
        fit = fit_deep(Problem(x, ((data.y - mean) / scale)[:, None], weights, "identity"), depth)
        return fit.slope * scale, fit.height * scale + mean, fit.order
    y, binary = data.y.astype(np.int64), data.target.kind == "binary"
    labels = y[:, None].astype(np.float64) if binary else np.eye(data.n_classes)[y]
    return (*fit_deep(Problem(x, labels, weights, "sigmoid" if binary else "softmax"), depth),)


def _logistic_regression(x: np.ndarray, data: TargetData, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    from sklearn.linear_model import LogisticRegression

    y = data.y.astype(np.int64)
    model = LogisticRegression(C=1 / alpha, max_iter=500, tol=1e-4).fit(x, y, sample_weight=data.weights)
    if data.target.kind == "binary":
        return model.coef_.T, model.intercept_
    coef, intercept = model.coef_, model.intercept_
    if len(coef) == 1:  # of two classes that were seen among more, scikit-learn keeps the second's plane alone
        coef, intercept = np.concatenate([-coef / 2, coef / 2]), np.concatenate([-intercept / 2, intercept / 2])
    slope, height = np.zeros((x.shape[1], data.n_classes)), np.full(data.n_classes, intercept.min() - 50.0)
    slope[:, model.classes_], height[model.classes_] = coef.T, intercept
    return slope, height
