"""Compute confidence limits of paired effect sizes from the noncentral t distribution."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

_NODES = 48  # of the Gauss-Legendre rule: the limits' tails agree with scipy's to 1e-9
_REACH = 8.5  # standard deviations after which a normal is over


@lru_cache(maxsize=64)
def _spread(df: int) -> tuple[float, float, float]:
    """Between which values sqrt(chi² / df) lies, all but 1e-13 on either side, and its density's constant."""
    from scipy.special import gammainccinv, gammaincinv, gammaln

    ends = 2 * np.array([gammaincinv(df / 2, 1e-13), gammainccinv(df / 2, 1e-13)]) / df
    return (*np.sqrt(ends).tolist(), float(np.log(2) + df / 2 * np.log(df / 2) - gammaln(df / 2)))


def effect_interval(d: np.ndarray, n: int, level: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Confidence limits of Cohen's d of paired differences, each pair by itself (no correction for their number).

    The limits of the noncentrality are those under which a t as large, or as small, has a tail of (1 - level) / 2
    (Cumming and Finch 2001, Educ. Psychol. Meas. 61:532): the standard deviation is estimated too, and over few folds
    that is most of the uncertainty. They are quantiles of t S + Z, with Z normal and S the root of a mean square of
    ``n`` - 1 normals; solved by Newton's steps, as scipy's own inverse takes minutes where an effect is huge.

    Args:
        d: float [pairs], mean difference over the differences' standard deviation; NaN gives NaN.
        n: folds, at least 2.
        level: of each interval by itself.

    Returns:
        low, high: float [pairs].

    Example:
        >>> low, high = effect_interval(np.array([8.21]), 5)
        >>> low.round(2).tolist(), high.round(1).tolist()
        ([2.77], [13.8])
    """
    t = np.abs(np.asarray(d, dtype=np.float64)) * np.sqrt(n)
    known = np.isfinite(t)
    low, high = np.full(t.shape, np.nan), np.full(t.shape, np.nan)
    if known.any():
        at = np.maximum(t[known], 1e-9)
        both = _quantile(np.tile(at, 2), np.repeat([(1 - level) / 2, (1 + level) / 2], len(at)), n - 1)
        low[known], high[known] = both[: len(at)] / np.sqrt(n), both[len(at) :] / np.sqrt(n)
    return np.where(d < 0, -high, low), np.where(d < 0, -low, high)


def _quantile(t: np.ndarray, p: np.ndarray, df: int) -> np.ndarray:
    """The ``p`` quantiles of t S + Z."""
    from scipy.special import gammaincinv, ndtri

    first, last, _ = _spread(df)
    goal, below, above = ndtri(p), t * first - _REACH, t * last + _REACH
    middle, s = (np.sqrt(2 * gammaincinv(df / 2, q) / df) for q in (0.5, p))
    w = t * middle + np.sign(goal) * np.hypot(goal, t * (s - middle))  # right where t is 0, and where it is huge
    for _ in range(60):
        share, density = _tail(w, t, df)
        below, above = np.where(share < p, w, below), np.where(share < p, above, w)
        z = ndtri(np.clip(share, 1e-300, 1 - 1e-16))  # in these terms the curve is almost straight
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            step = w - (z - goal) * np.exp(-(z**2) / 2) / (np.sqrt(2 * np.pi) * density)
        step = np.where((step >= below) & (step <= above), step, (below + above) / 2)
        done = np.abs(step - w) <= 1e-5 * (1 + np.abs(w))  # the step after it would be some 1e-9
        w = step
        if done.all():
            break
    return w


def _tail(w: np.ndarray, t: np.ndarray, df: int) -> tuple[np.ndarray, np.ndarray]:
    """P(t S + Z < w) and its density: over S where neither its own nor the normal's tail is over."""
    from scipy.special import gammainc, ndtr

    first, last, constant = _spread(df)
    nodes, weights = _rule()
    low = np.clip((w - _REACH) / t, first, last)
    high = np.clip((w + _REACH) / t, first, last)
    half = (high - low)[:, None] / 2
    s = (high + low)[:, None] / 2 + half * nodes
    mass = half * weights * np.exp(constant + (df - 1) * np.log(s) - df * s * s / 2)
    z = w[:, None] - t[:, None] * s
    share = gammainc(df / 2, df * low**2 / 2) + (mass * ndtr(z)).sum(axis=1)
    return share, (mass * np.exp(-z * z / 2)).sum(axis=1) / np.sqrt(2 * np.pi)


@lru_cache(maxsize=1)
def _rule() -> tuple[np.ndarray, np.ndarray]:
    return np.polynomial.legendre.leggauss(_NODES)
