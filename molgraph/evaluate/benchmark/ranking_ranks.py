"""Test every pair of methods by ranks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from molgraph.base.optional import need


@lru_cache(maxsize=512)
def least_p(n: int, k: int) -> float:
    """The p-value of neighbours where all ``n`` folds rank ``k`` methods alike: ranks can give them no smaller one.

    Example:
        >>> round(least_p(5, 2), 4), round(least_p(5, 4), 4), round(least_p(25, 4), 4)
        (0.0625, 0.0501, 0.0)
    """
    x = np.outer(np.arange(1.0, n + 1), np.arange(k))  # the same order, and no two differences of one size
    ranks = np.tile(np.arange(1.0, k + 1), (n, 1))
    i, j = np.triu_indices(k, 1)
    return float(by_ranks(x, ranks, 0.05)[0][j == i + 1].max())


def by_ranks(x: np.ndarray, ranks: np.ndarray, alpha: float) -> tuple[np.ndarray, tuple[str, float, float], float]:
    """Conover's test, or Wilcoxon's of two methods.

    Args:
        x: float [folds, methods], best first by mean rank.
        ranks: float [folds, methods], 1 for a fold's best method.
        alpha: family-wise error rate, for the critical difference.

    Returns:
        Adjusted p-values of all pairs, the omnibus test, and the critical difference of mean ranks.
    """
    from scipy.stats import friedmanchisquare, t, wilcoxon

    n, k = x.shape
    i, j = np.triu_indices(k, 1)
    nan = float("nan")
    if (ranks == ranks[:, :1]).all():  # the methods are one and the same
        return np.ones(len(i)), ("all scores are equal", nan, 1.0), nan
    if k == 2:
        found = wilcoxon(x[:, 0], x[:, 1])
        p = float(found.pvalue)
        return np.array([p]), ("Wilcoxon signed rank W", float(found.statistic), p), nan
    found = friedmanchisquare(*ranks.T)
    omnibus = ("Friedman chi²", float(found.statistic), float(found.pvalue))
    spread = (n * float((ranks**2).sum()) - float((ranks.sum(axis=0) ** 2).sum())) * 2 / ((n - 1) * (k - 1))
    if spread <= 1e-9 * n * n:  # every fold ranks them alike, and Conover's error term is 0
        raw = np.where(ranks[0, i] == ranks[0, j], 1.0, 0.0)
    else:
        conover = need("scikit_posthocs", "Conover's test").posthoc_conover_friedman
        raw = np.asarray(conover(ranks), dtype=np.float64)[i, j]
    step = float(t.ppf(1 - alpha / (2 * len(i)), (n - 1) * (k - 1)))  # Holm's first
    least = step * float(np.sqrt(spread)) / n if spread > 1e-9 * n * n else nan
    return _alike(x, np.maximum(holm(raw), _runs(x)[i, j])), omnibus, least


def _alike(x: np.ndarray, p: np.ndarray) -> np.ndarray:
    """Methods of the same scores get the same p-values: the largest, for their order within a run is by chance."""
    i, j = np.triu_indices(x.shape[1], 1)
    kinds, code = np.unique(x, axis=1, return_inverse=True)
    code, n = code.ravel(), kinds.shape[1]
    if n == x.shape[1]:
        return p
    largest = np.zeros((n, n))
    np.maximum.at(largest, (np.minimum(code[i], code[j]), np.maximum(code[i], code[j])), p)
    return np.asarray(largest[np.minimum(code[i], code[j]), np.maximum(code[i], code[j])])


def _runs(x: np.ndarray) -> np.ndarray:
    """[k, k]: the largest p-value of Friedman's test over any run of methods, in their order, that holds both.

    Conover pools the error of all methods. Beside a floor that is always last, and so has no error in ranks, it would
    find a difference in one of four boards of two equal methods; asked about the run without the floor, Friedman
    doesn't. Short runs are asked for more, as there are several of them on a board (Ryan, Einot, Gabriel and Welsch:
    Welsch 1977, J. Am. Stat. Assoc. 72:566).
    """
    k = x.shape[1]
    out = np.ones((k, k))
    for width in range(k, 1, -1):
        for i in range(k - width + 1):
            j = i + width - 1
            wider = max(out[i - 1, j] if i else 0.0, out[i, j + 1] if j + 1 < k else 0.0)
            p = friedman(x[:, i : j + 1])
            out[i, j] = max(wider, p if width > k - 2 else 1 - (1 - p) ** (k / width))
    return out


def friedman(x: np.ndarray) -> float:
    """P-value of Friedman's test, ties and all; scipy's wants three methods, and this takes two (the sign test).

    Args:
        x: float [folds, methods].

    Example:
        >>> round(friedman(np.array([[1.0, 2.0]] * 4)), 4)
        0.0455
    """
    from scipy.stats import chi2, rankdata

    n, k = x.shape
    ranks = rankdata(x, axis=1)
    spread = float((ranks**2).sum()) - n * k * (k + 1) ** 2 / 4
    if spread < 1e-9:
        return 1.0
    among = float(((ranks.sum(axis=0) - n * (k + 1) / 2) ** 2).sum())
    return float(chi2.sf((k - 1) * among / spread, k - 1))


def holm(p: np.ndarray) -> np.ndarray:
    """P-values adjusted by Holm's step-down rule (1979, Scand. J. Stat. 6:65).

    statsmodels' own collects all garbage at every call, which takes longer than the rest of a board.

    Example:
        >>> holm(np.array([0.01, 0.04, 0.03])).tolist()
        [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    stepped = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    out = np.empty(len(p))
    out[order] = np.minimum(stepped, 1.0)
    return out
