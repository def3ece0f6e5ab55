"""Scores of ranked methods, best first, come in; every pair's difference, interval and verdict go out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import MolgraphError
from molgraph.evaluate.benchmark.ranking_checks import residuals
from molgraph.evaluate.benchmark.ranking_tukey import range_quantile, range_tail

COLUMNS = ["a", "b", "difference", "low", "high", "d", "d_low", "d_high", "p", "different"]
COLUMNS += ["wide_low", "wide_high", "survives"]
_TINY = 1e-13  # of the scores' size: below it a spread is rounding


@dataclass(frozen=True)
class Pairs:
    """Every pair of k methods, i before j.

    Args:
        i, j: int64 [pairs], columns.
        difference: float [pairs], mean of i less mean of j.
        half: float [pairs], half the simultaneous interval's width.
        sd: float [pairs], standard deviation of the folds' differences.
        p: float [pairs], adjusted.
        different: bool [k, k].
        widen: Nadeau and Bengio's factor for ``half``; NaN where the shares are not known.
        survives: bool [pairs]: different, and 0 lies outside the widened interval.
        omnibus: name, statistic and p-value of the test of all methods at once.
        rank_floor: critical difference of mean ranks, or NaN.
    """

    i: np.ndarray
    j: np.ndarray
    difference: np.ndarray
    half: np.ndarray
    sd: np.ndarray
    p: np.ndarray
    different: np.ndarray
    widen: float
    survives: np.ndarray
    omnibus: tuple[str, float, float]
    rank_floor: float

    @property
    def floor(self) -> float:
        """The smallest difference told apart; with unequal margins, that of the median pair."""
        return float(np.median(self.half))

    @property
    def floor_wide(self) -> float:
        """The same with Nadeau and Bengio's factor."""
        return self.floor * self.widen

    def frame(self, names: Sequence[str]) -> pd.DataFrame:
        """A row a pair, with the methods' names."""
        scale = np.where(self.sd > 0, self.sd, np.nan)
        low, high = self.difference - self.half, self.difference + self.half
        columns: dict[str, Any] = {"a": [names[i] for i in self.i], "b": [names[j] for j in self.j]}
        columns |= {"difference": self.difference, "low": low, "high": high}
        columns |= {"d": self.difference / scale, "d_low": low / scale, "d_high": high / scale, "p": self.p}
        columns |= {"different": self.different[self.i, self.j]}
        columns |= {"wide_low": self.difference - self.half * self.widen}
        columns |= {"wide_high": self.difference + self.half * self.widen, "survives": self.survives}
        return pd.DataFrame(columns, columns=COLUMNS)


def compare(x: np.ndarray, ranks: np.ndarray, parametric: bool, alpha: float, ratio: float | None) -> Pairs:
    """Compare every pair of methods.

    Args:
        x: float [folds, methods], at least 2 of each.
        ranks: float [folds, methods], 1 for a fold's best method.
        parametric: Tukey's test on the means; else Conover's on the ranks.
        alpha: family-wise error rate.
        ratio: test rows over training rows of a fold, or None.
    """
    from scipy.stats import t

    n, k = x.shape
    i, j = np.triu_indices(k, 1)
    difference = x.mean(axis=0)[i] - x.mean(axis=0)[j]
    each = x[:, i] - x[:, j]
    size = max(float(np.abs(x).max()), 1e-300)
    sd = each.std(axis=0, ddof=1)
    sd = np.where(sd > _TINY * size, sd, 0.0)
    widen = float(np.sqrt(1 + n * ratio)) if ratio is not None else float("nan")
    if parametric:
        df = (n - 1) * (k - 1)
        error = float((residuals(x) ** 2).sum()) / df
        se = float(np.sqrt(error / n))
        half = np.full(len(i), range_quantile(1 - alpha, k, df) * se)
        p = range_tail(np.abs(difference) / se, k, df)
        verdict, rank_floor = np.abs(difference) > half, float("nan")
        omnibus = _anova(x, error)
    else:
        half = sd * (float(t.ppf(1 - alpha / (2 * len(i)), n - 1)) / np.sqrt(n))
        p, omnibus, rank_floor = _by_ranks(x, ranks, alpha)
        verdict = p < alpha
    different = np.zeros((k, k), dtype=bool)
    different[i, j] = different[j, i] = verdict
    survives = verdict & (np.abs(difference) > half * widen) if ratio is not None else np.zeros(len(i), dtype=bool)
    return Pairs(i, j, difference, half, sd, p, different, widen, survives, omnibus, rank_floor)


def _anova(x: np.ndarray, error: float) -> tuple[str, float, float]:
    """Repeated-measures ANOVA: F of the methods over the residuals, as statsmodels' AnovaRM in a 50th of the time."""
    from scipy.stats import f

    n, k = x.shape
    among = n * float(((x.mean(axis=0) - x.mean()) ** 2).sum()) / (k - 1)
    df = (k - 1, (n - 1) * (k - 1))
    return f"F({df[0]}, {df[1]})", among / error, float(f.sf(among / error, *df))


def _by_ranks(x: np.ndarray, ranks: np.ndarray, alpha: float) -> tuple[np.ndarray, tuple[str, float, float], float]:
    """Adjusted p-values of all pairs, the omnibus test, and the critical difference of mean ranks."""
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
        raw = np.asarray(_posthocs().posthoc_conover_friedman(ranks), dtype=np.float64)[i, j]
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


def _posthocs() -> Any:
    try:
        import scikit_posthocs
    except ImportError as error:
        raise MolgraphError(
            "Conover's test needs scikit-posthocs, which is not there", hint="pip install 'molgraph-platform[bench]'"
        ) from error
    return scikit_posthocs
