"""Measure how rigid a deformation of atoms is in each neighbourhood: the elastic prior of Nerfies."""

from __future__ import annotations

import numpy as np

LEAST = 0.3  # below this singular value its squared logarithm goes on as a parabola, also for mirrored maps


def rigidity_loss(
    jacobians: np.ndarray, c: float | None = None, rank: np.ndarray | int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """``||log Sigma||^2`` of each Jacobian ``J = U Sigma V'``, and its gradient by J.

    Park et al. 2020, "Nerfies: Deformable Neural Radiance Fields", equation 6; with ``c`` in the robust form of
    Geman and McClure, ``rho = 2 (x / c)^2 / ((x / c)^2 + 4)`` (equation 7). A rotation has singular values of 1 and so
    a loss of 0, stretching and shearing have more. A map that mirrors has its smallest value below 0, where the
    logarithm goes on as a parabola, so that structures are drawn out of it.

    Args:
        jacobians: float [n, 3, 3].
        c: scale beyond which a deformation costs hardly more.
        rank: int [n], in how many directions each is known.

    Returns:
        float64 [n] and [n, 3, 3].

    Example:
        >>> turn = np.array([[[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]])
        >>> rigidity_loss(turn)[0].round(9).tolist(), bool(rigidity_loss(1.1 * turn)[0] > 0.02)
        ([0.0], True)
    """
    u, sigma, vt = np.linalg.svd(jacobians)
    known = np.arange(3) < np.broadcast_to(rank, len(sigma))[:, None]
    mirrored = known[:, 2] & (np.linalg.det(jacobians) < 0)
    sigma[mirrored, 2] *= -1
    vt[mirrored, 2] *= -1
    logs = np.log(np.maximum(sigma, LEAST))
    below = np.minimum(sigma - LEAST, 0.0)
    first, second = 2 * np.log(LEAST) / LEAST, 2 * (1 - np.log(LEAST)) / LEAST**2
    values = logs**2 + first * below + second / 2 * below**2
    slopes = np.where(below < 0, first + second * below, 2 * logs / np.maximum(sigma, LEAST))
    loss, gradient = (values * known).sum(axis=1), (u * (slopes * known)[:, None, :]) @ vt
    if c is None:
        return loss, gradient
    scaled = loss / c**2
    return 2 * scaled / (scaled + 4), gradient * (8 / (scaled + 4) ** 2 / c**2)[:, None, None]


class Neighbourhoods:
    """The linear map that takes each atom's neighbourhood in one structure nearest to that in another.

    Args:
        x: float [n, 3], the structure that is deformed.
        pairs: int64 [2, p], for each pair an atom and a neighbour of it.

    ``rank``: int64 [n], in how many directions an atom has neighbours; ``projectors``: float64 [n, 3, 3], onto those.
    """

    def __init__(self, x: np.ndarray, pairs: np.ndarray) -> None:
        self.pairs, n = pairs, len(x)
        away = x[pairs[1]] - x[pairs[0]]
        spread = np.zeros((n, 3, 3))
        np.add.at(spread, pairs[0], away[:, :, None] * away[:, None, :])
        values, vectors = np.linalg.eigh(spread)
        kept = values > 1e-3 * np.maximum(values[:, -1:], 1e-12)  # directions in which there are neighbours
        inverse = (vectors * np.where(kept, 1 / np.where(kept, values, 1.0), 0.0)[:, None, :]) @ vectors.transpose(
            0, 2, 1
        )
        self.rank = kept.sum(axis=1)
        self.projectors = (vectors * kept[:, None, :]) @ vectors.transpose(0, 2, 1)
        self.solve = (inverse[pairs[0]] @ away[:, :, None])[:, :, 0]  # J_i = sum_j (y_j - y_i) solve_ij'

    def jacobians(self, y: np.ndarray) -> np.ndarray:
        """float64 [n, 3, 3]: the least-squares map of each neighbourhood to that at positions ``y``, float [n, 3]."""
        i, j = self.pairs
        out = np.zeros((len(y), 3, 3))
        np.add.at(out, i, (y[j] - y[i])[:, :, None] * self.solve[:, None, :])
        return out

    def loss(self, y: np.ndarray) -> tuple[float, np.ndarray]:
        """The rigidity loss of all neighbourhoods at positions ``y``, and its gradient, float64 [n, 3]."""
        value, by_map = rigidity_loss(self.jacobians(y), rank=self.rank)
        i, j = self.pairs
        force = (by_map[i] @ self.solve[:, :, None])[:, :, 0]
        gradient = np.zeros_like(y)
        np.add.at(gradient, j, force)
        np.add.at(gradient, i, -force)
        return float(value.sum()), gradient
