"""Compare vectors of the same molecules: canonical correlations, CKA, and rank correlations of all pairs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.spatial.distance import pdist
from scipy.stats import rankdata

from molgraph.base.seeds import generator

RANK = 1e-5  # singular values below this share of the largest are rounding


def basis(x: np.ndarray) -> np.ndarray:
    """float64 [n, rank]: orthonormal columns that span those of centred ``x``, float [n, d]."""
    u, s, _ = np.linalg.svd(x - x.mean(axis=0), full_matrices=False)
    return np.asarray(u[:, s > RANK * max(s.max(initial=0.0), 1e-300)])


def canonical(x: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The canonical correlations of two representations, and the weights of their projection-weighted mean.

    Morcos, Raghu and Bengio 2018, "Insights on representational similarity in neural networks with canonical
    correlation", section 3: with orthonormal bases U, V of both centred matrices, ``U' V = P rho Q'``; the canonical
    directions of x are ``h_i = U p_i``, and ``alpha_i = sum_j |<h_i, x_j>|`` over the neurons x_j of x.

    Args:
        x: float [n, d].
        y: float [n, e].

    Returns:
        float64 [k] each, k the smaller rank; none where a matrix is constant.
    """
    u, v = basis(x), basis(y)
    p, rho, _ = np.linalg.svd(u.T @ v, full_matrices=False)
    weights = np.abs((u @ p).T @ (x - x.mean(axis=0))).sum(axis=1)
    return rho.clip(0, 1), weights


def pwcca(x: np.ndarray, y: np.ndarray, *, weighted: bool = True) -> float:
    """``sum_i alpha_i rho_i / sum_i alpha_i``, or the plain mean of rho (Raghu et al. 2017); 0 to 1, 0 of constants.

    It does not change with an invertible linear map of y, and shows those directions of x that hold much of it.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> round(pwcca(x, x @ [[1, 2, 0], [0, 1, 5], [1, 0, 1]] + 7), 6)
        1.0
    """
    rho, weights = canonical(x, y)
    if not len(rho):
        return 0.0
    return float(np.average(rho, weights=weights)) if weighted else float(rho.mean())


def cka(x: np.ndarray, y: np.ndarray) -> float:
    """Linear centred kernel alignment, ``||Y'X||^2 / (||X'X|| ||Y'Y||)``, 0 to 1; 0 of constants.

    Kornblith et al. 2019, "Similarity of neural network representations revisited", equation 4: unchanged by rotations
    and by one factor for all, and not by other linear maps.

    Example:
        >>> x = np.random.default_rng(0).normal(size=(50, 3))
        >>> round(cka(x, -2 * x[:, ::-1]), 6)
        1.0
    """
    x, y = x - x.mean(axis=0), y - y.mean(axis=0)
    size = np.linalg.norm(x.T @ x) * np.linalg.norm(y.T @ y)
    return float(np.linalg.norm(y.T @ x) ** 2 / size) if size > 0 else 0.0


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    """Spearman's correlation of two lists of numbers; 0 where one is constant."""
    return float(np.mean(_ranks(a) * _ranks(b)))


def distances(x: np.ndarray, metric: str) -> np.ndarray:
    """float64 [n (n - 1) / 2]: of all pairs of rows, ``cosine`` (1 where a row is 0), ``euclidean`` or ``jaccard``."""
    d = pdist(np.asarray(x, dtype=bool if metric == "jaccard" else np.float64), metric)
    return np.asarray(np.nan_to_num(d, nan=1.0 if metric == "cosine" else 0.0))


def mantel(a: np.ndarray, b: np.ndarray, n: int, *, permutations: int = 999, seed: int = 0) -> tuple[float, float]:
    """Spearman's correlation of the distances of all pairs, and its p by Mantel's permutations of the rows.

    Mantel 1967, Cancer Res. 27:209: the rows of one matrix are permuted together with its columns, since pairs that
    share a row are not independent. The p is one-sided: ``(1 + permutations at least as high) / (1 + permutations)``.

    Args:
        a, b: float [n (n - 1) / 2], as ``distances`` orders them.
        n: rows.
        permutations: 0 for none, and p is 1.
        seed: of them.
    """
    first, second, upper = _ranks(a), _ranks(b), np.triu_indices(n, 1)
    square = np.zeros((n, n))
    square[upper] = second
    square += square.T
    rho, rng, higher = float(np.mean(first * second)), generator(seed, "mantel"), 0
    for _ in range(permutations):
        order = rng.permutation(n)
        higher += float(np.mean(first * square[np.ix_(order, order)][upper])) >= rho - 1e-12
    return rho, (1 + higher) / (1 + permutations)


def jackknife(measure: Callable[[np.ndarray], float], n: int, *, folds: int = 10, seed: int = 0) -> float:
    """The standard error of a measure of rows, by leaving out each of some folds of the rows in turn.

    Args:
        measure: of int64 rows.
        n: rows.
        folds: at least 2.
        seed: of the folds.
    """
    order, rows = generator(seed, "jackknife").permutation(n), np.arange(n)
    found = [measure(np.setdiff1d(rows, left)) for left in np.array_split(order, folds)]
    return float(np.sqrt((folds - 1) * np.var(found)))


def _ranks(a: np.ndarray) -> np.ndarray:
    """Ranks with mean 0 and deviation 1; 0 where all are equal."""
    r = rankdata(a)
    r -= r.mean()
    spread = r.std()
    return r / spread if spread > 0 else r
