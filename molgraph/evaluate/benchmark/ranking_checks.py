"""Check the assumptions of the parametric test."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np

NORMAL = "normal residuals"
NORMAL_P = 0.05  # Shapiro-Wilk below it: residuals are not normal
VARIANCE_RATIO = 9.0  # a rule of thumb: above it variances are not equal
EPSILON = 0.75  # Huynh and Feldt's below it: differences do not spread alike (Girden 1992)


@dataclass(frozen=True)
class Check:
    """One assumption, tried.

    Args:
        name: ``normal residuals``, ``equal variances`` or ``sphericity``.
        statistic: what was measured; NaN where it cannot be.
        threshold: the line.
        holds: on which side it lies.
        words: a sentence with both numbers.
    """

    name: str
    statistic: float
    threshold: float
    holds: bool
    words: str


def residuals(x: np.ndarray) -> np.ndarray:
    """What neither the fold nor the method explains: x less its fold's mean, less its method's, plus the grand mean.

    Example:
        >>> residuals(np.array([[1.0, 2.0], [3.0, 4.0]])).tolist()
        [[0.0, 0.0], [0.0, 0.0]]
    """
    return x - x.mean(axis=1, keepdims=True) - x.mean(axis=0, keepdims=True) + x.mean()


def check_assumptions(x: np.ndarray) -> tuple[Check, ...]:
    """Try what repeated-measures ANOVA and Tukey's test stand on.

    Normality: Shapiro-Wilk of the residuals. Equal variances: ratio of the largest to the smallest variance of a
    method's residuals. Sphericity (the differences of any two methods spread alike): Huynh and Feldt's epsilon
    with Lecoutre's correction, because Greenhouse and Geisser's is far too low where folds are few; Mauchly's
    test is quoted beside it.

    Args:
        x: float [folds, methods], finite, at least 2 of each.
    """
    return _normal(x), _equal(x), _spherical(x)


def _normal(x: np.ndarray) -> Check:
    from scipy.stats import shapiro

    rest = residuals(x).ravel()
    p = float("nan")
    if np.ptp(rest) > 1e-12 * max(np.abs(x).max(), 1e-300) and len(rest) >= 3:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # above 5,000 residuals the p-value is approximate
            p = float(shapiro(rest).pvalue)
    words = f"Shapiro-Wilk of the residuals p = {p:.2g}, line {NORMAL_P}"
    return Check(NORMAL, p, NORMAL_P, p >= NORMAL_P, words)


def _equal(x: np.ndarray) -> Check:
    # with two methods the residuals mirror each other, and the scores themselves have to be looked at
    spread = (residuals(x) if x.shape[1] > 2 else x).var(axis=0, ddof=1)
    least = spread.min()
    ratio = float(spread.max() / least) if least > 1e-24 else float("inf") if spread.max() > 1e-24 else 1.0
    words = f"largest over smallest variance {ratio:.3g}, line {VARIANCE_RATIO:g}"
    return Check("equal variances", ratio, VARIANCE_RATIO, ratio <= VARIANCE_RATIO, words)


def _spherical(x: np.ndarray) -> Check:
    if x.shape[1] < 3:
        return Check("sphericity", 1.0, EPSILON, True, "two methods have one difference: nothing to compare")
    low, high = epsilons(x)
    said = f"Huynh-Feldt epsilon {high:.2f} (Greenhouse-Geisser {low:.2f}), line {EPSILON}"
    p = mauchly(x)
    said += f"; Mauchly p = {p:.2g}" if np.isfinite(p) else "; Mauchly needs more folds than methods"
    return Check("sphericity", high, EPSILON, bool(high >= EPSILON), said)


def epsilons(x: np.ndarray) -> tuple[float, float]:
    """Greenhouse and Geisser's (1959) epsilon, and Huynh and Feldt's with Lecoutre's correction (1991); at most 1.

    Args:
        x: float [folds, methods].

    Returns:
        Both; NaN where the scores leave no residual.
    """
    n, k = x.shape
    s = _contrast_covariance(x)
    square = float((s * s).sum())
    if square <= 0 or n < 3:
        return float("nan"), float("nan")
    low = float(np.trace(s) ** 2 / ((k - 1) * square))
    below = (k - 1) * (n - 1 - (k - 1) * low)
    high = min((n * (k - 1) * low - 2) / below, 1.0) if below > 0 else 1.0
    return low, max(high, low)


def mauchly(x: np.ndarray) -> float:
    """Probability of so uneven a covariance of contrasts if it were spherical (Mauchly 1940); NaN with too few folds.

    Args:
        x: float [folds, methods].
    """
    from scipy.stats import chi2

    n, k = x.shape
    p = k - 1
    if p < 2 or n - 1 < p + 1:
        return float("nan")
    s = _contrast_covariance(x)
    sign, log_det = np.linalg.slogdet(s)
    if sign <= 0:
        return float("nan")
    log_w = log_det - p * np.log(np.trace(s) / p)
    statistic = -(n - 1 - (2 * p * p + p + 2) / (6 * p)) * log_w
    return float(chi2.sf(statistic, p * (p + 1) / 2 - 1))


def _contrast_covariance(x: np.ndarray) -> np.ndarray:
    """Covariance [k-1, k-1] of orthonormal contrasts of the methods."""
    k = x.shape[1]
    contrasts = np.linalg.qr(np.column_stack([np.ones(k), np.eye(k)[:, : k - 1]]))[0][:, 1:]
    return np.atleast_2d(np.cov(x @ contrasts, rowvar=False))
