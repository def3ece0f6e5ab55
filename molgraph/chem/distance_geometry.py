"""Compute coordinates of maximal likelihood under distributions of distances, by L-BFGS with restarts."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

STEPS = 300  # of L-BFGS for each start
NOISE_ANGSTROM = (0.0, 0.5, 1.5)  # of the starts, in turn


class DistanceBins(NamedTuple):
    """Distances in equal bins from ``first`` to ``last``, in angstrom; the ends hold what is beyond them."""

    first: float = 1.0
    last: float = 11.0
    n: int = 64

    @property
    def width(self) -> float:
        """Width of a bin, in angstrom."""
        return (self.last - self.first) / self.n

    @property
    def centres(self) -> np.ndarray:
        """float64 [n], the middle of each bin."""
        return self.first + self.width * (np.arange(self.n) + 0.5)

    def of(self, distances: np.ndarray) -> np.ndarray:
        """int64, the bin of each distance.

        Example:
            >>> DistanceBins(1.0, 3.0, 4).of(np.array([0.2, 1.6, 2.99, 9.0])).tolist()
            [0, 1, 3, 3]
        """
        return np.clip((np.asarray(distances) - self.first) // self.width, 0, self.n - 1).astype(np.int64)


class DistancePotential:
    """``V(x) = -sum_ij log p_ij(|x_i - x_j|)`` for a distribution over bins of each pair.

    Senior et al. 2020, Nature 577:706, "Improved protein structure prediction using potentials from deep learning",
    Methods, without the reference. Between the centres ``c_b`` of the bins the distribution is interpolated by
    ``p(d) = sum_b p_b k((d - c_b) / s)`` with the logistic density k and half a bin's width s: smooth everywhere, and
    beyond all bins it falls as ``exp(-d / s)``, so that an atom far away is drawn back at a constant force.

    Args:
        pairs: int64 [2, p], the atoms of each pair.
        probabilities: float [p, n], rows that sum to 1; a row of NaN says nothing.
        bins: the n bins.
    """

    def __init__(self, pairs: np.ndarray, probabilities: np.ndarray, bins: DistanceBins) -> None:
        known = np.isfinite(probabilities).all(axis=1)
        self.pairs, self.bins, self.scale = pairs[:, known], bins, bins.width / 2
        self.probabilities = np.asarray(probabilities, dtype=np.float64)[known]
        with np.errstate(divide="ignore"):
            self.logs = np.log(self.probabilities)

    @property
    def expected(self) -> np.ndarray:
        """float64 [p], the mean distance of each pair, in angstrom."""
        return self.probabilities @ self.bins.centres

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """The potential and its gradient, float64 [n, 3], at positions float [n, 3] in angstrom."""
        i, j = self.pairs
        away = x[i] - x[j]
        distance = np.sqrt((away**2).sum(axis=1) + 1e-12)
        reduced = (distance[:, None] - self.bins.centres) / self.scale
        terms = self.logs - np.abs(reduced) - 2 * np.log1p(np.exp(-np.abs(reduced)))
        highest = terms.max(axis=1, keepdims=True)
        shares = np.exp(terms - highest)
        total = shares.sum(axis=1)
        slope = (shares * np.tanh(reduced / 2)).sum(axis=1) / total / self.scale
        value = -(highest[:, 0] + np.log(total)).sum()
        force = (slope / distance)[:, None] * away
        gradient = np.zeros_like(x)
        np.add.at(gradient, i, force)
        np.add.at(gradient, j, -force)
        return float(value), gradient


class Placed(NamedTuple):
    """Positions, float64 [n, 3] in angstrom, and their potential."""

    positions: np.ndarray
    potential: float


def place_atoms(
    potential: DistancePotential, n: int, rng: np.random.Generator, *, restarts: int = 6, steps: int = STEPS
) -> list[Placed]:
    """Positions of n atoms at minima of a potential, the lowest first; each stands for its mirror image too.

    The first start are the coordinates of classical scaling (Torgerson 1952, Psychometrika 17:401) of the expected
    distances; the next ones begin there with noise, or at random.

    Args:
        potential: of their pairs; atoms of no pair lie where they began.
        n: number of atoms.
        rng: of the starts.
        restarts: how many starts.
        steps: of L-BFGS for each.

    Example:
        >>> bins = DistanceBins(0.0, 4.0, 40)
        >>> pairs = np.array([[0, 0, 1], [1, 2, 2]])
        >>> triangle = np.eye(40)[bins.of(np.array([1.5, 1.5, 2.5]))]
        >>> best, *_ = place_atoms(DistancePotential(pairs, triangle, bins), 3, np.random.default_rng(0))
        >>> bool(abs(np.linalg.norm(best.positions[1] - best.positions[2]) - 2.5) < 0.1)
        True
    """
    scaled = classical_scaling(potential.pairs, potential.expected, n)
    size = max(float(scaled.std()), 1.0)
    placements = []
    for k in range(restarts):
        noise = rng.normal(size=(n, 3))
        random = k % (len(NOISE_ANGSTROM) + 1) == len(NOISE_ANGSTROM)
        start = size * noise if random else scaled + NOISE_ANGSTROM[k % (len(NOISE_ANGSTROM) + 1)] * noise
        start = start + (1e-3 * noise if k == 0 else 0)  # off the plane, in which gradients would keep it
        placements.append(_descend(potential, start, steps))
    return sorted(placements, key=lambda each: each.potential)


def classical_scaling(pairs: np.ndarray, distances: np.ndarray, n: int) -> np.ndarray:
    """float64 [n, 3]: coordinates whose distances are near the given ones; a pair without one has their largest.

    Example:
        >>> x = classical_scaling(np.array([[0, 0, 1], [1, 2, 2]]), np.array([3.0, 4.0, 5.0]), 3)
        >>> bool(abs(np.linalg.norm(x[1] - x[2]) - 5.0) < 1e-6)
        True
    """
    squared = np.full((n, n), float(distances.max(initial=0.0)) ** 2)
    np.fill_diagonal(squared, 0.0)
    i, j = pairs
    squared[i, j] = squared[j, i] = distances**2
    centred = squared - squared.mean(axis=0) - squared.mean(axis=1)[:, None] + squared.mean()
    values, vectors = np.linalg.eigh(-centred / 2)
    out = np.zeros((n, 3))
    out[:, : min(n, 3)] = (vectors * np.sqrt(np.maximum(values, 0.0)))[:, ::-1][:, :3]
    return out


def _descend(potential: DistancePotential, start: np.ndarray, steps: int) -> Placed:
    def flat(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = potential(x.reshape(-1, 3))
        return value, gradient.ravel()

    done = minimize(flat, start.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": steps})
    return Placed(done.x.reshape(-1, 3), float(done.fun))
