"""Measure how far the covariance of first-layer weights is aligned with that of the data, and draw aligned weights."""

from __future__ import annotations

import numpy as np

from molgraph.base.seeds import generator

SMALL = 1e-9  # of the largest eigenvalue: directions in which the data do not vary


def misalignment(covariance: np.ndarray, data: np.ndarray) -> float:
    """``sum_i sqrt((v_i' A v_i) (v_i' A^-1 v_i)) - d``: 0 where A has the eigenvectors ``v_i`` of the data, else above.

    Maennel et al. 2020, "What Do Neural Networks Learn When Trained With Random Labels?", section 2.3.

    Args:
        covariance: float64 [d, d], A, positive definite, such as that of the weights of hidden units.
        data: float64 [d, d], the covariance of the data, with distinct eigenvalues.

    Example:
        >>> misalignment(np.diag([3.0, 1.0]), np.diag([1.0, 2.0]))
        0.0
    """
    v = np.linalg.eigh(data)[1]
    straight = np.einsum("ij,ik,kj->j", v, covariance, v)
    inverse = np.einsum("ij,ik,kj->j", v, np.linalg.inv(covariance), v)
    return float(np.sqrt(straight * inverse).sum() - len(data))


def weight_covariance(weights: np.ndarray) -> np.ndarray:
    """float64 [d, d]: the second moment of the weight vectors of hidden units, float [units, d]."""
    w = np.asarray(weights, dtype=np.float64)
    return np.asarray(w.T @ w / len(w))


def transfer(weights: np.ndarray, data: np.ndarray) -> np.ndarray:
    """float64 [d]: deviation of trained weights along each eigenvector of the data, by rising eigenvalue: ``f(sigma)``.

    Args:
        weights: float [units, d].
        data: float64 [d, d], the covariance.
    """
    v = np.linalg.eigh(data)[1]
    return np.asarray(np.sqrt(np.maximum(np.einsum("ij,ik,kj->j", v, weight_covariance(weights), v), 0)))


def covariance_weights(n: int, data: np.ndarray, scale: np.ndarray, norm: float, seed: int) -> np.ndarray:
    """float64 [n, d]: weights drawn from ``N(0, V diag(scale^2) V')``, of a given Frobenius norm.

    Args:
        n: hidden units.
        data: float64 [d, d], the covariance, whose eigenvectors are V.
        scale: float64 [d], deviations along them, by rising eigenvalue.
        norm: of all weights.
        seed: of the draw.

    Example:
        >>> covariance_weights(5, np.diag([1.0, 2.0]), np.array([1.0, 0.0]), 3.0, 0)[:, 1].tolist()
        [0.0, 0.0, 0.0, 0.0, 0.0]
    """
    v = np.linalg.eigh(data)[1]
    weights = generator(seed, "covariance weights").normal(size=(n, len(data))) * scale @ v.T
    return np.asarray(weights * norm / np.linalg.norm(weights))
