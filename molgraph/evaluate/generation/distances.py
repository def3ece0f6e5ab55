"""Compute distances between two samples: Fréchet's, Wasserstein's, Kullback and Leibler's, and a cosine of counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

POINTS = 1_000  # of the grid on which densities are compared
TINY = 1e-10  # added to each density, as GuacaMol does


def gaussian_fit(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean [d] and covariance [d, d] of the rows of x [n, d]."""
    return x.mean(axis=0), np.cov(x, rowvar=False).reshape(x.shape[1], x.shape[1])


def root(covariance: np.ndarray) -> np.ndarray:
    """The symmetric square root of a covariance [d, d]."""
    values, vectors = np.linalg.eigh(covariance)
    return (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T


def frechet(
    a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray], root_a: np.ndarray | None = None
) -> float:
    """Squared Fréchet distance of two normal distributions (Dowson and Landau 1982; Heusel et al. 2017).

    ``|m_a - m_b|^2 + tr(C_a + C_b - 2 (C_a^1/2 C_b C_a^1/2)^1/2)``

    Args:
        a, b: mean [d] and covariance [d, d] of each.
        root_a: ``root`` of the first covariance, where it is known.

    Example:
        >>> one, two = (np.zeros(1), np.eye(1)), (np.array([3.0]), 4 * np.eye(1))
        >>> frechet(one, two)
        10.0
    """
    (mean_a, cov_a), (mean_b, cov_b) = a, b
    half = root(cov_a) if root_a is None else root_a
    cross = np.sqrt(np.maximum(np.linalg.eigvalsh(half @ cov_b @ half), 0)).sum()
    return float(max(((mean_a - mean_b) ** 2).sum() + np.trace(cov_a) + np.trace(cov_b) - 2 * cross, 0.0))


def wasserstein(a: np.ndarray, b: np.ndarray) -> float:
    """1-Wasserstein distance of two samples of numbers, the area between their distribution functions.

    Example:
        >>> wasserstein(np.array([0.0, 1.0]), np.array([2.0, 3.0]))
        2.0
    """
    a, b = np.sort(a), np.sort(b)
    both = np.sort(np.concatenate([a, b]))
    ends = both[:-1]
    gap = np.searchsorted(a, ends, side="right") / len(a) - np.searchsorted(b, ends, side="right") / len(b)
    return float((np.abs(gap) * np.diff(both)).sum())


def kl_continuous(reference: np.ndarray, x: np.ndarray) -> float:
    """Kullback-Leibler divergence of kernel densities, reference to sample, on a grid over both (GuacaMol's way).

    Gaussian kernels with Scott's width; 0 where both samples are one and the same value, and infinite where one is a
    single value alone.
    """
    low, high = min(reference.min(), x.min()), max(reference.max(), x.max())
    if reference.min() == reference.max() or x.min() == x.max():
        return 0.0 if low == high else float("inf")
    grid = np.linspace(low, high, POINTS)
    return _relative_entropy(_density(reference, grid), _density(x, grid))


def kl_counts(reference: np.ndarray, x: np.ndarray) -> float:
    """Kullback-Leibler divergence of histograms over ten bins of the reference (GuacaMol's way)."""
    p, edges = np.histogram(reference, bins=10, density=True)
    inside = (x >= edges[0]) & (x <= edges[-1])
    if not inside.any():
        return float("inf")
    q = np.histogram(x, bins=edges, density=True)[0]
    return _relative_entropy(p, q)


def cosine(a: np.ndarray, b: np.ndarray) -> float:
    """Cosine of two vectors of counts; NaN where one of them is empty.

    Example:
        >>> round(cosine(np.array([1, 1, 0]), np.array([1, 0, 0])), 3)
        0.707
    """
    lengths = np.linalg.norm(a) * np.linalg.norm(b)
    return float(a @ b / lengths) if lengths else float("nan")


def codes(*lists: Sequence[str]) -> tuple[list[np.ndarray], int]:
    """Numbers for the texts of several lists, the same for the same text, and how many there are."""
    place: dict[str, int] = {}
    arrays = [np.array([place.setdefault(text, len(place)) for text in texts], dtype=np.int64) for texts in lists]
    return arrays, len(place)


def _density(x: np.ndarray, grid: np.ndarray) -> np.ndarray:
    """A Gaussian kernel density with Scott's width at the points of an even grid."""
    width = x.std(ddof=1) * len(x) ** -0.2
    if width < 4 * (grid[1] - grid[0]):  # kernels narrower than the grid are summed one by one
        from scipy.stats import gaussian_kde  # takes half a second

        return np.asarray(gaussian_kde(x)(grid))
    step = (grid[1] - grid[0]) / 4
    place = (x - grid[0]) / step
    left = np.minimum(place.astype(np.int64), 4 * (len(grid) - 1) - 1)
    share = place - left
    n = 4 * (len(grid) - 1) + 1
    mass = np.bincount(left, 1 - share, n) + np.bincount(
        left + 1, share, n
    )  # linear binning on a four times finer grid
    reach = np.arange(-(n - 1), n) * step
    kernel = np.exp(-0.5 * (reach / width) ** 2) / (width * np.sqrt(2 * np.pi) * len(x))
    size = 1 << (3 * n - 3).bit_length()
    spread = np.fft.irfft(np.fft.rfft(mass, size) * np.fft.rfft(kernel, size), size)
    return np.maximum(spread[n - 1 : 2 * n - 1][::4], 0)


def _relative_entropy(p: np.ndarray, q: np.ndarray) -> float:
    p, q = p + TINY, q + TINY
    p, q = p / p.sum(), q / q.sum()
    return float((p * np.log(p / q)).sum())
