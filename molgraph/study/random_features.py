"""Fit least squares to random ReLU features: a model whose variance and error peak where it begins to interpolate."""

from __future__ import annotations

import numpy as np


def random_features(
    rng: np.random.Generator,
    x: np.ndarray,
    y: np.ndarray,
    x_test: np.ndarray,
    *,
    width: int,
    ridge: float = 0.0,
) -> np.ndarray:
    """float64 [m]: predictions of ``min_w ||ReLU(x W) w - y||^2 + ridge ||w||^2``, of smallest norm where ridge is 0.

    Args:
        rng: of W, float [d, width], standard normal.
        x, y: float [n, d] and [n].
        x_test: float [m, d].
        width: features.
        ridge: strength of the penalty.
    """
    w = rng.normal(size=(x.shape[1], width)) / np.sqrt(x.shape[1])
    a, b = (np.maximum(each @ w, 0) / np.sqrt(width) for each in (x, x_test))
    if ridge and width > len(a):
        return np.asarray(b @ a.T @ np.linalg.solve(a @ a.T + ridge * np.eye(len(a)), y))
    if ridge:
        return np.asarray(b @ np.linalg.solve(a.T @ a + ridge * np.eye(width), a.T @ y))
    return np.asarray(b @ np.linalg.lstsq(a, y, rcond=1e-10)[0])


def noisy_plane(rng: np.random.Generator, n: int, d: int, noise: float) -> tuple[np.ndarray, np.ndarray]:
    """n rows x, float64 [n, d], and ``y = sum(x) / sqrt(d)`` with noise of this deviation, float64 [n]."""
    x = rng.normal(size=(n, d))
    return x, x.sum(axis=1) / np.sqrt(d) + noise * rng.normal(size=n)
