"""Compare every pair of ranked methods: difference, interval and verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from molgraph.evaluate.benchmark.ranking_checks import residuals
from molgraph.evaluate.benchmark.ranking_effect import effect_interval
from molgraph.evaluate.benchmark.ranking_ranks import by_ranks, least_p
from molgraph.evaluate.benchmark.ranking_tukey import range_quantile, range_tail

COLUMNS = ["a", "b", "difference", "low", "high", "d", "d_low", "d_high", "p", "different"]
COLUMNS += ["wide_low", "wide_high", "survives"]
TUKEY, CONOVER, WILCOXON = "RM-ANOVA and Tukey HSD", "Friedman and Conover-Holm", "Wilcoxon signed rank"
PAIRED = "Paired t-tests, Bonferroni"
_TINY = 1e-13  # of the scores' size: below it a spread or a difference is rounding


def choose_test(assumptions: bool, n: int, k: int, alpha: float) -> str:
    """Which test suits ``n`` folds of ``k`` methods: ranks need so many that a consistent order could be significant.

    Example:
        >>> [choose_test(False, n, 10, 0.05) for n in (5, 25)]
        ['Paired t-tests, Bonferroni', 'Friedman and Conover-Holm']
    """
    if assumptions:
        return TUKEY
    if least_p(n, k) >= alpha:
        return PAIRED
    return CONOVER if k > 2 else WILCOXON


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
        better: bool [k, k]: different, and row's method is the better one.
        widen: Nadeau and Bengio's factor for ``half``; NaN where the shares are not known.
        survives: bool [pairs]: different, and 0 lies outside the widened interval.
        omnibus: name, statistic and p-value of the test of all methods at once, or None.
        rank_floor: critical difference of mean ranks, or NaN.
        equal_margins: whether one margin holds for all pairs, as with Tukey.
        folds: how many.
        overruled: pairs whose interval excludes 0 while the ranks do not tell the two apart.
    """

    i: np.ndarray
    j: np.ndarray
    difference: np.ndarray
    half: np.ndarray
    sd: np.ndarray
    p: np.ndarray
    different: np.ndarray
    better: np.ndarray
    widen: float
    survives: np.ndarray
    omnibus: tuple[str, float, float] | None
    rank_floor: float
    equal_margins: bool
    folds: int
    overruled: int = 0

    @property
    def floor(self) -> float:
        """From which difference on any two are told apart: Tukey's margin, or the largest difference that was not."""
        return float(self.half[0]) if self.equal_margins else self._beyond(self.different[self.i, self.j])

    @property
    def floor_wide(self) -> float:
        """The same with Nadeau and Bengio's factor."""
        if self.equal_margins or not np.isfinite(self.widen):
            return float(self.half[0]) * self.widen
        return self._beyond(self.survives)

    def _beyond(self, told: np.ndarray) -> float:
        size = np.abs(self.difference)
        return float(size.min() if told.all() else size[~told].max())

    def in_order(self, order: np.ndarray) -> Pairs:
        """The same pairs of the methods in another order."""
        k = len(self.different)
        place = np.zeros((k, k), dtype=np.int64)
        place[self.i, self.j] = place[self.j, self.i] = np.arange(len(self.i))
        a, b = order[self.i], order[self.j]
        at = place[a, b]
        moved = {name: getattr(self, name)[at] for name in ("half", "sd", "p", "survives")}
        turned = {name: getattr(self, name)[np.ix_(order, order)] for name in ("different", "better")}
        return replace(self, difference=np.where(a < b, 1, -1) * self.difference[at], **moved, **turned)

    def frame(self, names: Sequence[str]) -> pd.DataFrame:
        """A row a pair, with the methods' names."""
        d = self.difference / np.where(self.sd > 0, self.sd, np.nan)
        d_low, d_high = effect_interval(d, self.folds)
        columns: dict[str, Any] = {"a": [names[i] for i in self.i], "b": [names[j] for j in self.j]}
        columns |= {"difference": self.difference}
        columns |= {"low": self.difference - self.half, "high": self.difference + self.half}
        columns |= {"d": d, "d_low": d_low, "d_high": d_high, "p": self.p}
        columns |= {"different": self.different[self.i, self.j]}
        columns |= {"wide_low": self.difference - self.half * self.widen}
        columns |= {"wide_high": self.difference + self.half * self.widen, "survives": self.survives}
        return pd.DataFrame(columns, columns=COLUMNS)


def compare(
    x: np.ndarray, ranks: np.ndarray, test: str, alpha: float, ratio: float | None, higher_is_better: bool
) -> Pairs:
    """Compare every pair of methods.

    Args:
        x: float [folds, methods], at least 2 of each.
        ranks: float [folds, methods], 1 for a fold's best method.
        test: as ``choose_test`` says.
        alpha: family-wise error rate.
        ratio: test rows over training rows of a fold, or None.
        higher_is_better: the metric's direction.
    """
    n, k = x.shape
    i, j = np.triu_indices(k, 1)
    difference = x.mean(axis=0)[i] - x.mean(axis=0)[j]
    small = _TINY * max(float(np.abs(x).max()), 1e-300)
    sd = (x[:, i] - x[:, j]).std(axis=0, ddof=1)
    sd = np.where(sd > small, sd, 0.0)
    difference = np.where((sd == 0) & (np.abs(difference) <= small), 0.0, difference)
    widen = float(np.sqrt(1 + n * ratio)) if ratio is not None else float("nan")
    omnibus, rank_floor, overruled = None, float("nan"), 0
    if test == TUKEY:
        df = (n - 1) * (k - 1)
        error = float((residuals(x) ** 2).sum()) / df
        se = float(np.sqrt(error / n))
        half = np.full(len(i), range_quantile(1 - alpha, k, df) * se)
        p = range_tail(np.abs(difference) / se, k, df)
        verdict = np.abs(difference) > half
        omnibus = _anova(x, error)
    else:
        half, p = _paired_t(difference, sd, n, alpha)
        verdict = np.abs(difference) > half
        if test != PAIRED:
            by_rank, omnibus, rank_floor = by_ranks(x, ranks, alpha)
            mean = ranks.mean(axis=0)
            alike = np.sign(mean[j] - mean[i]) == np.sign(difference if higher_is_better else -difference)
            outside, verdict = verdict, verdict & (by_rank < alpha) & alike
            overruled = int((outside & ~verdict).sum())
            p = np.where(alike, np.maximum(p, by_rank), 1.0)  # both have to say so
            if (~verdict & (np.abs(mean[i] - mean[j]) > rank_floor)).any():
                rank_floor = float("nan")
    different, better = np.zeros((k, k), dtype=bool), np.zeros((k, k), dtype=bool)
    different[i, j] = different[j, i] = verdict
    first = (difference > 0) == higher_is_better
    better[i, j], better[j, i] = verdict & first, verdict & ~first
    survives = verdict & (np.abs(difference) > half * widen) if ratio is not None else np.zeros(len(i), dtype=bool)
    facts = (different, better, widen, survives, omnibus, rank_floor, test == TUKEY, n, overruled)
    return Pairs(i, j, difference, half, sd, p, *facts)


def _paired_t(difference: np.ndarray, sd: np.ndarray, n: int, alpha: float) -> tuple[np.ndarray, np.ndarray]:
    """Half widths of Student's intervals of paired differences, and p-values, both with Bonferroni's correction."""
    from scipy.special import stdtr, stdtrit

    pairs = len(difference)
    half = sd * (float(stdtrit(n - 1, 1 - alpha / (2 * pairs))) / np.sqrt(n))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, np.abs(difference) / (sd / np.sqrt(n)))
    return half, np.minimum(1.0, pairs * 2 * stdtr(n - 1, -t))


def _anova(x: np.ndarray, error: float) -> tuple[str, float, float]:
    """Repeated-measures ANOVA: F of the methods over the residuals, as statsmodels' AnovaRM in a 50th of the time."""
    from scipy.stats import f

    n, k = x.shape
    among = n * float(((x.mean(axis=0) - x.mean()) ** 2).sum()) / (k - 1)
    df = (k - 1, (n - 1) * (k - 1))
    return f"F({df[0]}, {df[1]})", among / error, float(f.sf(among / error, *df))
