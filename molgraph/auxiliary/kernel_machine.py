"""Fit support vector regression or classification to a precomputed kernel matrix."""

from __future__ import annotations

from typing import Any

import numpy as np

from molgraph.auxiliary.tabular.target_model import clip_to_bounds, n_classes
from molgraph.base.contracts import Target
from molgraph.base.seeds import generator

FOLDS = 3  # of the decisions that probabilities are fitted to
CACHE_MB = 200


def fit_kernel_machine(
    kernel: np.ndarray,
    target: Target,
    y: np.ndarray,
    weights: np.ndarray | None,
    *,
    cost: float,
    epsilon: float,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Fit a machine for numbers, or one for each class against the rest (one for two classes).

    Args:
        kernel: float64 [n, n].
        target: of the labels.
        y: float64 [n], values or class codes.
        weights: float64 [n] or None.
        cost: what a row outside the margin costs.
        epsilon: half-width of the margin of numbers, in standard deviations.
        seed: of the folds whose decisions probabilities are fitted to.

    Returns:
        Weights of the rows float64 [n, k], intercepts [k], and sigmoids [2, k]: a decision f means the probability
        ``1 / (1 + exp(a f + b))``; zeros for numbers.
    """
    from sklearn.svm import SVR

    if not n_classes(target):
        mean, scale = float(np.average(y, weights=weights)), max(float(y.std()), 1e-12)
        model = SVR(kernel="precomputed", C=cost, epsilon=epsilon, cache_size=CACHE_MB)
        one, intercept = _dual(model, kernel, (y - mean) / scale, weights)
        return one[:, None] * scale, np.array([intercept * scale + mean]), np.zeros((2, 1))
    classes = [1] if target.kind == "binary" else range(n_classes(target))
    fits = [_separate(kernel, y == c, weights, cost, seed) for c in classes]
    return np.stack([f[0] for f in fits], axis=1), np.array([f[1] for f in fits]), np.array([f[2] for f in fits]).T


def values_of_decisions(target: Target, f: np.ndarray, sigmoid: np.ndarray) -> np.ndarray:
    """Numbers within bounds, or probabilities, from decisions float64 [n, k]."""
    if not n_classes(target):
        return clip_to_bounds(target, f)
    p = 0.5 * (1.0 - np.tanh(0.5 * (sigmoid[0] * f + sigmoid[1])))
    return p / np.maximum(p.sum(axis=1, keepdims=True), 1e-300) if target.kind == "multiclass" else p


def _separate(
    kernel: np.ndarray, is_one: np.ndarray, weights: np.ndarray | None, cost: float, seed: int
) -> tuple[np.ndarray, float, tuple[float, float]]:
    """Weights, height and sigmoid of one class against the rest; a class that no row has is never likely."""
    if is_one.all() or not is_one.any():
        sure = 50.0 if is_one.any() else -50.0
        return np.zeros(len(kernel)), sure, (-1.0, 0.0)
    weight, height = _machine(kernel, is_one, weights, cost)
    fold = np.empty(len(is_one), dtype=np.int64)
    for value in (False, True):
        rows = generator(seed, "folds").permutation(np.flatnonzero(is_one == value))
        fold[rows] = np.arange(len(rows)) % FOLDS
    unseen = np.full(len(is_one), np.nan)
    for k in range(FOLDS):
        a, b = np.flatnonzero(fold != k), np.flatnonzero(fold == k)
        if len(b) and 0 < is_one[a].sum() < len(a):
            w, h = _machine(kernel[np.ix_(a, a)], is_one[a], None if weights is None else weights[a], cost)
            unseen[b] = kernel[np.ix_(b, a)] @ w + h
    known = ~np.isnan(unseen)
    if not 0 < is_one[known].sum() < known.sum():
        unseen, known = kernel @ weight + height, np.ones(len(is_one), dtype=bool)
    return weight, height, platt(unseen[known], is_one[known], None if weights is None else weights[known])


def _machine(
    kernel: np.ndarray, is_one: np.ndarray, weights: np.ndarray | None, cost: float
) -> tuple[np.ndarray, float]:
    from sklearn.svm import SVC

    return _dual(SVC(kernel="precomputed", C=cost, cache_size=CACHE_MB), kernel, is_one, weights)


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
    result = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=[(None, 0.0), (None, None)])
    return float(result.x[0]), float(result.x[1])
