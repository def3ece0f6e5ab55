"""Choose which molecules of a pool to measure next: Bayesian optimisation on frozen latent vectors, or at random."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import norm

from molgraph.base.errors import BadValueError
from molgraph.base.seeds import generator

AXES = 16  # of the latent vectors' principal axes, that the process stands on
REFITTED = 8  # queries between two fits of the process's scales


class Searched(NamedTuple):
    """What a search asked for.

    Args:
        order: int64 [budget], rows of the pool in the order in which they were asked for, each once.
        value: float [budget], what was answered; NaN where a molecule could not be measured.
        best: float [budget], the highest value so far.
    """

    order: np.ndarray
    value: np.ndarray
    best: np.ndarray


def search_pool(
    latents: np.ndarray,
    oracle: Callable[[int], float],
    budget: int,
    *,
    how: Literal["bayesian", "random"] = "bayesian",
    n_first: int = 10,
    seed: int = 0,
) -> Searched:
    """Look for the row of a pool with the highest value, asking for at most ``budget`` of them.

    A Gaussian process (Matern 5/2) is fitted to what is known, and the row with the highest expected improvement is
    asked for next (Jones et al. 1998, J. Global Optim. 13:455), as arch2vec does with its frozen vectors.

    Args:
        latents: float [n, d], a vector for each row, such as ``molgraph embed`` writes.
        oracle: a row's value, to be maximised; NaN where it has none.
        budget: how many rows are asked for, at most; n where the pool is smaller.
        how: ``bayesian``, or ``random`` as a control.
        n_first: rows that are drawn at random first.
        seed: the same seed gives the same order where the oracle gives the same values.

    Raises:
        BadValueError: no vectors, or vectors that are not finite, or no budget.

    Example:
        >>> line = np.linspace(-1, 1, 50)[:, None]
        >>> found = search_pool(line, lambda row: -float((line[row, 0] - 0.3) ** 2), 20, n_first=5)
        >>> len(found.order), round(float(line[found.order[found.value.argmax()], 0]), 1)
        (20, 0.3)
    """
    latents = np.asarray(latents, dtype=np.float64)
    if latents.ndim != 2 or not len(latents) or not np.isfinite(latents).all() or budget < 1:
        words = f"a search of {budget} queries among vectors of the shape {[*latents.shape]}"
        raise BadValueError(words, hint="give finite vectors [n, d], and 1 query or more")
    budget = min(budget, len(latents))
    x, rng = _axes(latents), generator(seed, "pool")
    order = rng.permutation(len(x))[: budget if how == "random" else min(n_first, budget)].tolist()
    value = [float(oracle(row)) for row in order]
    scales = None
    while len(order) < budget:
        known = np.flatnonzero(np.isfinite(value))
        left = np.setdiff1d(np.arange(len(x)), order)
        if len(known) < 2 or np.ptp(np.array(value)[known]) == 0:
            row = int(rng.choice(left))
        else:
            fresh = scales is None or len(order) % REFITTED == 0
            gain, scales = _improvement(x[np.array(order)[known]], np.array(value)[known], x[left], scales, fresh)
            row = int(left[gain.argmax()])
        order.append(row)
        value.append(float(oracle(row)))
    found = np.array(value)
    return Searched(np.array(order), found, np.fmax.accumulate(found))


def _axes(latents: np.ndarray) -> np.ndarray:
    """The vectors along their principal axes, scaled by the largest."""
    centred = latents - latents.mean(axis=0)
    u, s, _ = np.linalg.svd(centred, full_matrices=False)
    k = max(int((s[:AXES] > 1e-9 * max(s[0], 1e-300)).sum()), 1)
    return np.asarray(u[:, :k] * s[:k] / max(s[0], 1e-300) * len(latents) ** 0.5)


def _improvement(
    x: np.ndarray, y: np.ndarray, others: np.ndarray, scales: object, fresh: bool
) -> tuple[np.ndarray, object]:
    """Expected improvement of other rows over the best known, and the process's kernel."""
    from sklearn.exceptions import ConvergenceWarning  # with scikit-learn, which takes a second
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import ConstantKernel, Matern, WhiteKernel

    start = ConstantKernel(1.0) * Matern(1.0, (1e-2, 1e2), nu=2.5) + WhiteKernel(0.1, (1e-4, 1.0))
    process = GaussianProcessRegressor(
        start if scales is None else scales, normalize_y=True, optimizer="fmin_l_bfgs_b" if fresh else None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound
        process.fit(x, y)
    mean, deviation = process.predict(others, return_std=True)
    deviation = np.maximum(deviation, 1e-12)
    z = (mean - y.max()) / deviation
    return (mean - y.max()) * norm.cdf(z) + deviation * norm.pdf(z), process.kernel_
