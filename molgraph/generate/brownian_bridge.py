"""Draw Brownian bridges between two latent vectors: several random paths that begin at one and end at the other."""

from __future__ import annotations

import numpy as np

from molgraph.base.seeds import generator


def brownian_bridges(
    a: np.ndarray, b: np.ndarray, share: np.ndarray, n: int, spread: float = 1.0, seed: int = 0
) -> np.ndarray:
    """float64 [n, steps, d]: paths with ``z_t ~ N((1 - t) a + t b, spread^2 t (1 - t))`` in each dimension.

    R. E. Wang et al. 2022, "Language modeling via stochastic processes" (Time Control), ICLR, equation 1 with T = 1. A
    path is ``(1 - t) a + t b + spread (W_t - t W_1)`` of a Brownian motion W, so that its points depend on each other:
    ``Cov(z_s, z_t) = spread^2 s (1 - t)`` for s < t.

    Args:
        a, b: float [d], the ends.
        share: float [steps], the t of the points, rising, from 0 to 1.
        n: paths.
        spread: standard deviation of the motion at t = 1; 0 for the straight line.
        seed: of the motions.

    Example:
        >>> way = brownian_bridges(np.zeros(2), np.ones(2), np.array([0.0, 0.5, 1.0]), 3)
        >>> way.shape, way[:, -1].tolist()
        ((3, 3, 2), [[1.0, 1.0], [1.0, 1.0], [1.0, 1.0]])
    """
    steps = np.sqrt(np.diff(share, prepend=0.0))[:, None]
    motion = (steps * generator(seed, "bridge").standard_normal((n, len(share), len(a)))).cumsum(axis=1)
    t = share[:, None]
    return np.asarray(a + t * (b - a) + spread * (motion - t * motion[:, -1:]))
