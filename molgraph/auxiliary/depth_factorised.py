"""Fit a linear model whose slopes are products of N weights (a deep diagonal linear network), stopped early."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

INIT, STEPS, PATIENCE, HELD = 1e-3, 4000, 300, 5  # first slope; most steps; steps without gain; every fifth is held
ENTERED = 0.1  # a column is in once its slope is this share of the largest one at the end


class DeepFit(NamedTuple):
    """A fitted function.

    Args:
        slope: float64 [p, k].
        height: float64 [k].
        order: int64 [columns that are in], the first one first.
    """

    slope: np.ndarray
    height: np.ndarray
    order: np.ndarray


@dataclass(frozen=True)
class Problem:
    """Rows, and what is learned of them.

    Args:
        x: float64 [n, p], standardised.
        y: float64 [n, k]: numbers of mean 0 and deviation 1, or 0 and 1 for each class.
        weights: float64 [n], of sum 1.
        link: ``identity``, ``sigmoid`` or ``softmax``, from the linear function to what is compared with y.
    """

    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray
    link: str

    def take(self, rows: np.ndarray) -> Problem:
        """Some of the rows."""
        return Problem(self.x[rows], self.y[rows], self.weights[rows] / self.weights[rows].sum(), self.link)

    def residual(self, slope: np.ndarray, height: np.ndarray) -> np.ndarray:
        """float64 [n, k]: y less what is predicted, the gradient of squared errors and cross-entropies alike."""
        z = self.x @ slope + height
        if self.link == "sigmoid":
            z = 1 / (1 + np.exp(-np.clip(z, -500, 500)))
        elif self.link == "softmax":
            z = np.exp(z - z.max(axis=1, keepdims=True))
            z = z / z.sum(axis=1, keepdims=True)
        return self.y - z

    def error(self, residual: np.ndarray) -> float:
        """The mean squared residual; for classes the Brier score."""
        return float(self.weights @ np.square(residual).sum(axis=1))

    def stiffness(self) -> float:
        """The largest eigenvalue of the mean of ``x x^T``, by power iterations."""
        v = np.ones(self.x.shape[1]) + 0.01 * np.arange(self.x.shape[1]) / self.x.shape[1]
        value = 1.0
        for _ in range(30):
            v = self.x.T @ (self.weights * (self.x @ v))
            value = max(float(np.linalg.norm(v)), 1e-12)
            v = v / value
        return value


def fit_deep(problem: Problem, depth: int, *, seed: int = 0, steps: int = STEPS) -> DeepFit:
    """``slope_j = u_j^N - v_j^N``, both from 1e-3, down the mean loss until held-out rows are worst no more.

    Gissin et al. 2020, "The Implicit Bias of Depth", section 3: gradient flow in u and v is ``d slope / dt ~ N^2
    |slope|^(2 - 2/N) (-gradient)``. With N = 1 all columns learn together, up to the least squares of the smallest
    norm; with N of 2 and more large ones come first, one after the other, so that few are in when it stops. A fifth of
    the rows says how far to go, and then all rows are learned for as long.

    Args:
        problem: rows and labels.
        depth: N.
        seed: of the rows that are held out.
        steps: the most of them.
    """
    n = len(problem.x)
    order = np.random.default_rng(seed).permutation(n)
    held, rest = order[: n // HELD], order[n // HELD :]
    time = None
    if len(held) > 1:
        time = _descend(problem.take(rest), depth, steps, problem.take(held))[3]
    slope, height, entered, _ = _descend(problem, depth, steps, until=time)
    return DeepFit(slope, height, entered)


def _descend(
    problem: Problem, depth: int, steps: int, held: Problem | None = None, until: float | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Slope, intercept, the columns in order of entry, and the time of the best step of the held-out rows."""
    x, w, (p, k) = problem.x, problem.weights[:, None], (problem.x.shape[1], problem.y.shape[1])
    power, curve = depth - 1, 1.0 if problem.link == "identity" else 0.25
    u = v = np.full((p, k), (INIT if depth > 1 else 0.0) ** (1 / depth))
    stiff, height, clock = problem.stiffness() * curve, np.zeros(k), 0.0
    best = (np.inf, 0.0, u**depth - v**depth, height, 0)
    path = []
    for step in range(steps + 1):
        slope = u**depth - v**depth
        path.append(np.abs(slope).max(axis=1))
        residual = problem.residual(slope, height)
        if held is not None and (error := held.error(held.residual(slope, height))) < best[0]:
            best = (error, clock, slope, height, step)
        if step == steps or (held is not None and step - best[4] > PATIENCE) or (until is not None and clock >= until):
            break
        pull = x.T @ (w * residual)
        largest = max(float(u.max()), float(v.max()), 1e-12)
        rate = 0.5 / (stiff * depth**2 * largest ** (2 * power))
        if depth > 1:  # no weight moves by more than a tenth of itself
            rate = min(rate, 0.1 / max(depth * largest ** (depth - 2) * float(np.abs(pull).max()), 1e-12))
        rate = rate if until is None else min(rate, until - clock)
        u, v = (
            factor + sign * rate * depth * (factor**power if power else 1.0) * pull / (1 if power else 2)
            for factor, sign in ((u, 1.0), (v, -1.0))
        )
        height = height + (w * problem.residual(slope, height)).sum(axis=0) / curve * 0.5
        clock += rate
    kept = (best[2], best[3]) if held is not None else (slope, height)
    size = np.array(path)
    bar = ENTERED * max(float(np.abs(kept[0]).max()), 1e-12)
    entry = np.where((size >= bar).any(axis=0), (size >= bar).argmax(axis=0), len(size))
    inside = np.flatnonzero(np.abs(kept[0]).max(axis=1) >= bar)
    return *kept, inside[np.argsort(entry[inside], kind="stable")], best[1]
