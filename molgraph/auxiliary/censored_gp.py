"""Find the posterior of a Gaussian process whose labels are values or limits, by Laplace's approximation."""

from __future__ import annotations

import numpy as np
from scipy.special import log_ndtr

STEPS, CLOSE = 50, 1e-8
LEAST = 1e-6  # of the curvature, in units of 1 / noise: a limit that is met by far says nothing


def laplace(
    kernel: np.ndarray, mean: float, signal: float, noise: np.ndarray, low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Newton's steps to the mode of ``p(f | labels)`` (Rasmussen and Williams 2006, algorithm 3.1).

    With ``W`` the curvature of the log likelihood at the mode and ``g`` its slope, the process is the one of labels
    ``f + g / W`` with noise ``1 / W``; of measured values these are the labels and the noise, exactly.

    Args:
        kernel: float64 [n, n], ``f ~ N(mean, signal * kernel)``.
        mean, signal: of the process.
        noise: float64 [n], the variance of each label about ``f``.
        low, high: float64 [n], the ends of each label; the same for a measured value.

    Returns:
        ``alpha`` with ``f = mean + signal * kernel @ alpha``, and the noise ``1 / W``, float64 [n] each.
    """
    sigma, n = np.sqrt(noise), len(noise)
    covariance, exact = signal * kernel, low == high
    f = np.where(exact, low, np.where(np.isinf(high), np.maximum(low, mean), np.minimum(high, mean)))
    alpha = np.zeros(n)
    for _ in range(STEPS):
        slope, curve = derivatives(f, sigma, low, high)
        labels = f + slope / curve
        root = np.sqrt(curve)  # B = I + W^(1/2) K W^(1/2), whose eigenvalues are 1 or more
        inner = np.eye(n) + root[:, None] * covariance * root
        fresh = root * np.linalg.solve(inner, root * (labels - mean))
        step = mean + covariance @ fresh - f
        alpha, f = fresh, f + step
        if np.abs(step).max() < CLOSE:
            break
    return alpha, 1.0 / derivatives(f, sigma, low, high)[1]


def derivatives(f: np.ndarray, sigma: np.ndarray, low: np.ndarray, high: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Slope and negative curvature, float64 [n] each, of ``log p(label | f)``; the likelihood is concave in ``f``."""
    exact, above = low == high, np.isinf(high)
    end = np.where(above, low, high)
    sign = np.where(above, 1.0, -1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        t = np.where(exact, 0.0, sign * (f - end) / sigma)  # log Phi(t), 0 for a limit that is met by far
        ratio = np.exp(-0.5 * t * t - 0.5 * np.log(2 * np.pi) - log_ndtr(t))  # phi / Phi
        slope = np.where(exact, (low - f) / sigma**2, sign * ratio / sigma)
        curve = np.where(exact, 1.0, ratio * (t + ratio)) / sigma**2
    return slope, np.maximum(curve, LEAST / sigma**2)
