"""Support vector machine on the Tanimoto kernel."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Annotated, Any, Self

import numpy as np

from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetModel, TargetPrediction
from molgraph.auxiliary.tabular.target_model import clip_to_bounds, n_classes
from molgraph.base.contracts import Target
from molgraph.base.ranges import LARGEST, Bits, NotNegative, Radius, Range
from molgraph.base.registry import register
from molgraph.base.search_space import Float, Int, Space
from molgraph.base.seeds import generator

FOLDS = 3  # of the decisions that probabilities are fitted to
CACHE_MB = 200


@dataclass(frozen=True)
class SupportVectorSum(TargetModel):
    """A weighted sum of similarities to support vectors."""

    target: Target
    rows: np.ndarray  # int64 [m], the support vectors' rows of the index
    weight: np.ndarray  # float64 [m, k]
    height: np.ndarray  # float64 [k], the intercept
    sigmoid: np.ndarray  # float64 [2, k]: a decision f means the probability ``1 / (1 + exp(a f + b))``

    def predict(self, x: np.ndarray) -> TargetPrediction:
        f = x[:, self.rows].astype(np.float64) @ self.weight + self.height
        if not n_classes(self.target):
            return TargetPrediction(clip_to_bounds(self.target, f))
        p = 0.5 * (1.0 - np.tanh(0.5 * (self.sigmoid[0] * f + self.sigmoid[1])))
        several = self.target.kind == "multiclass"
        return TargetPrediction(p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300) if several else p)

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        rows, k = stored.rows(), len(stored.target.columns)
        weight, height = stored.array("weight", len(rows), k), stored.array("height", k)
        return cls(stored.target, rows, weight, height, stored.array("sigmoid", 2, k))


@register(
    "method",
    "svm",
    tags=("fingerprints",),
    summary="support vectors on the Tanimoto kernel",
    paper="Cortes and Vapnik 1995, Mach. Learn. 20:273; Ralaivola et al. 2005, Neural Netw. 18:1093",
)
@dataclass(eq=False)
class SupportVectors(TabularMethod):
    """Support vector machine (Cortes and Vapnik 1995) with the Tanimoto kernel of Ralaivola et al. 2005.

    Numbers are standardised and fitted within ``epsilon``; several classes are each told from the rest. Probabilities
    are a sigmoid of the decision (Platt 1999), fitted to decisions on rows that the machine had not seen.

    Args:
        cost: what a row outside the margin costs (the paper's C).
        epsilon: half-width of the margin of numbers, in standard deviations.
        radius: of the fingerprint.
        n_bits: of the fingerprint.
        max_rows: the most training rows; of more, so many are drawn by the seed. Memory grows with their square.
        seed: of that draw and of the folds.
        threads: cores that make fingerprints; None for all.
        store: a folder that keeps fingerprints for all splits and methods; auto for molgraph's cache; None keeps none.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "CCCO", "CCN", "CCCN"], targets=(Target("y"),), y=[1, 1, 2, 2])
        >>> SupportVectors().fit(table).predict(table).value.round(1).ravel().tolist()
        [1.0, 1.0, 2.0, 2.0]
    """

    name = "svm"
    small = MappingProxyType({"n_bits": 256})
    target_model = SupportVectorSum
    compares = True

    cost: Annotated[float, Range(0, 1e6, above=True)] = 3.0
    epsilon: NotNegative = 0.1
    radius: Radius = 2
    n_bits: Bits = 2048
    max_rows: Annotated[int, Range(2, LARGEST)] = 8_000
    seed: int = 0
    threads: int | None = None
    store: str | None = None

    def fit_target(self, data: TargetData) -> SupportVectorSum:
        from sklearn.svm import SVR

        kernel = data.kernel()
        if not data.n_classes:
            mean, scale = data.mean_and_sd()
            model = SVR(kernel="precomputed", C=self.cost, epsilon=self.epsilon, cache_size=CACHE_MB)
            one, intercept = _dual(model, kernel, (data.y - mean) / scale, data.weights)
            weight, height, sigmoid = one[:, None] * scale, np.array([intercept * scale + mean]), np.zeros((2, 1))
        else:
            each = [1] if data.target.kind == "binary" else range(data.n_classes)
            found = [self._separate(kernel, data.y == c, data.weights) for c in each]
            weight = np.stack([f[0] for f in found], axis=1)
            height, sigmoid = np.array([f[1] for f in found]), np.array([f[2] for f in found]).T
        used = (weight != 0).any(axis=1)
        used[:1] |= not used.any()
        return SupportVectorSum(data.target, data.rows[used], weight[used], height, sigmoid)

    def space(self) -> Space:
        """Cost, margin and radius."""
        return {"cost": Float(0.1, 100.0, log=True), "epsilon": Float(0.01, 0.5, log=True), "radius": Int(1, 3)}

    def _separate(
        self, kernel: np.ndarray, is_one: np.ndarray, weights: np.ndarray | None
    ) -> tuple[np.ndarray, float, tuple[float, float]]:
        """Weights, height and sigmoid of one class against the rest; a class that no row has is never likely."""
        if is_one.all() or not is_one.any():
            sure = 50.0 if is_one.any() else -50.0
            return np.zeros(len(kernel)), sure, (-1.0, 0.0)
        weight, height = self._machine(kernel, is_one, weights)
        fold = np.empty(len(is_one), dtype=np.int64)
        for value in (False, True):
            rows = generator(self.seed, "folds").permutation(np.flatnonzero(is_one == value))
            fold[rows] = np.arange(len(rows)) % FOLDS
        unseen = np.full(len(is_one), np.nan)
        for k in range(FOLDS):
            a, b = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
            if len(b) and 0 < is_one[a].sum() < len(a):
                w, h = self._machine(kernel[np.ix_(a, a)], is_one[a], None if weights is None else weights[a])
                unseen[b] = kernel[np.ix_(b, a)] @ w + h
        known = ~np.isnan(unseen)
        if not 0 < is_one[known].sum() < known.sum():
            unseen, known = kernel @ weight + height, np.ones(len(is_one), dtype=bool)
        return weight, height, platt(unseen[known], is_one[known], None if weights is None else weights[known])

    def _machine(self, kernel: np.ndarray, is_one: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
        from sklearn.svm import SVC

        return _dual(SVC(kernel="precomputed", C=self.cost, cache_size=CACHE_MB), kernel, is_one, weights)


def _dual(model: Any, kernel: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> tuple[np.ndarray, float]:
    """Fit a machine; each row's coefficient, and the intercept."""
    model.fit(kernel, y, sample_weight=None if weights is None else weights / weights.mean())
    coefficients = np.zeros(len(kernel))
    coefficients[model.support_] = model.dual_coef_[0]
    return coefficients, float(model.intercept_[0])


def platt(decision: np.ndarray, is_one: np.ndarray, weights: np.ndarray | None = None) -> tuple[float, float]:
    """The sigmoid ``1 / (1 + exp(a f + b))`` of decisions f that fits the classes best (Platt 1999; Lin et al. 2007).

    Args:
        decision: float64 [n].
        is_one: bool [n].
        weights: float64 [n] or None.

    Returns:
        a (at most 0: a higher decision never means a lower probability) and b.

    Example:
        >>> a, b = platt(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
        >>> a < 0, abs(b) < 1e-6
        (True, True)
    """
    from scipy.optimize import minimize

    w = np.ones(len(decision)) if weights is None else weights / weights.mean()
    ones, zeros = w[is_one].sum(), w[~is_one].sum()
    goal = np.where(is_one, (ones + 1) / (ones + 2), 1 / (zeros + 2))

    def loss(ab: np.ndarray) -> tuple[float, np.ndarray]:
        z = ab[0] * decision + ab[1]
        p = 0.5 * (1.0 - np.tanh(0.5 * z))
        value = (w * (goal * np.logaddexp(0, z) + (1 - goal) * np.logaddexp(0, -z))).sum()
        slope = w * (goal - p)
        return float(value), np.array([(slope * decision).sum(), slope.sum()])

    start = np.array([-1.0, np.log((zeros + 1) / (ones + 1))])
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, 0.0), (None, None)])
    return float(found.x[0]), float(found.x[1])
