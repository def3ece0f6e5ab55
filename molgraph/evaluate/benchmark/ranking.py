"""Rank methods by their scores on the same folds: a corrected t-test of each pair, with Holm's correction."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError
from molgraph.base.printable import count
from molgraph.evaluate.statistics import holm

ALPHA = 0.05
LEAST_WILCOXON = 20  # folds from which Wilcoxon's test is asked too
PAIR = ["a", "b", "difference", "low", "high", "d", "p", "different", "verdict", "wilcoxon_p", "disagrees", "tukey"]
_TINY = 1e-13  # of the scores' size: below it a spread or a difference is rounding


@dataclass(frozen=True)
class Ranking:
    """What the folds say about the methods."""

    # indexed by method, by mean, those that lack folds last: ``rank``, ``mean``, ``low``, ``high`` (interval of
    # the mean with Nadeau and Bengio's variance, each by itself), ``sd``, ``folds``, ``groups`` (letters: two
    # methods share one exactly where neither is better). ``rank`` is NaN where nothing was tested
    table: pd.DataFrame
    # a row a pair of ranked methods, in the table's order: ``difference`` (mean of a less mean of b), ``low``,
    # ``high`` (simultaneous, Bonferroni's; no further than 0 where Holm's rule says ``different``), ``d``
    # (Cohen's, of the paired folds), ``p`` (adjusted), ``different``, ``verdict`` (the first is ``better``, or
    # ``equivalent``: the interval lies within the margin, or ``undecided``), ``wilcoxon_p`` (adjusted; NaN below 20
    # folds), ``disagrees`` (whether that test decides otherwise) and ``tukey`` (whether Tukey's test after a
    # repeated-measures ANOVA, which takes folds for independent, tells them apart)
    pairs: pd.DataFrame
    n_folds: int  # folds that were compared
    higher_is_better: bool
    test_over_train: float  # test rows over training rows of a fold
    margin: float | None = None  # the smallest difference that matters, in the metric's unit
    bootstrap: bool = False  # whether one split was tested by draws of its test molecules, in the place of folds
    left_out: Mapping[str, str] = field(default_factory=dict)  # why a method has no rank, by name

    @property
    def tested(self) -> bool:
        """Whether there were two methods and two folds at least."""
        return not self.pairs.empty

    @property
    def ranked(self) -> list[str]:
        """Methods that have all folds, best first."""
        return [str(name) for name in self.table.index if name not in self.left_out]

    @property
    def half_width(self) -> float:
        """Half the width of the middle pair's interval: how near two methods may be and still be told apart."""
        return float((self.pairs["high"] - self.pairs["low"]).median() / 2) if self.tested else float("nan")

    def verdict(self, a: str, b: str) -> str:
        """``better``, ``worse``, ``equivalent`` or ``undecided``, of ``a`` against ``b``; empty where not tested."""
        return self._verdicts.get((a, b), "")

    @cached_property
    def _verdicts(self) -> dict[tuple[str, str], str]:
        verdicts = {(str(a), str(b)): str(v) for a, b, v in self.pairs[["a", "b", "verdict"]].itertuples(index=False)}
        return {(b, a): "worse" if v == "better" else v for (a, b), v in verdicts.items()} | verdicts


def rank_methods(
    folds: pd.DataFrame,
    higher_is_better: bool,
    *,
    test_over_train: float = 0.25,
    margin: float | None = None,
    errors: pd.DataFrame | None = None,
    why: Mapping[str, str] | None = None,
) -> Ranking:
    """Rank methods by their scores on the same folds.

    Each pair is compared by t on the folds' differences with the variance of Nadeau and Bengio (2003, Mach. Learn.
    52:239), ``sd² (1/n + n_test/n_train)``, because folds share training rows; p-values are adjusted by Holm's rule.
    Intervals are simultaneous: Bonferroni's, ended at 0 where Holm's rule, which tells more apart, tells those two. A
    method is better than another where they differ significantly and by the margin at least. A rank is one more than
    the number of methods that are better than this one, or than one with a better mean: ranks never contradict means.

    Args:
        folds: a row a fold, a column a method; NaN where a method has no score. A method that lacks a fold is shown
            and not ranked; a fold that no method has counts for nobody.
        higher_is_better: the metric's direction.
        test_over_train: test rows over training rows of a fold; 1/4 with five folds, 0 for folds that share nothing.
        margin: the smallest difference that matters; without one no two methods are equivalent.
        errors: of one fold, the standard errors of the methods' differences (of ``bootstrap_errors``), by which they
            are tested by t with ``errors.attrs["df"]`` degrees of freedom, as normal without; one fold without errors
            is not tested.
        why: why a method lacks folds, by name.

    Raises:
        DataError: no methods, or two of one name.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(25, 1)) + rng.normal(size=(25, 3)) * 0.1 + np.array([0.0, 0.0, 1.0])
        >>> found = rank_methods(pd.DataFrame(x, columns=["a", "b", "c"]), higher_is_better=True)
        >>> found.table["rank"].astype(int).to_dict()
        {'c': 1, 'b': 2, 'a': 2}
    """
    if not folds.shape[1] or folds.columns.duplicated().any():
        raise DataError("a ranking needs methods, each under a name of its own")
    kept = folds.astype(np.float64).dropna(how="all").rename(columns=str)
    has, n = kept.notna().sum(), len(kept)
    left_out = {}
    for name in kept.columns[(has < n) | (n == 0)]:
        reason = (why or {}).get(name, "")
        left_out[name] = f"{has[name]} of {count(len(folds), 'fold')}" + (reason and f": {reason}")
    mean = kept.mean().sort_index()  # names decide between equal means
    order = mean.sort_values(ascending=not higher_is_better, kind="stable").index
    order = order[np.argsort(order.isin(list(left_out)), kind="stable")]
    whole = [name for name in order if name not in left_out]
    known = n == 1 and errors is not None and {*whole} <= {*errors.index}
    spread = errors.loc[whole, whole].to_numpy() if known and errors is not None else None
    df = np.inf if errors is None else float(errors.attrs.get("df", np.inf))
    pairs = _pairs(kept[whole], test_over_train, margin, spread, df)
    above = np.zeros((len(whole), len(whole)), dtype=bool)
    if len(pairs):
        above[np.triu_indices(len(whole), 1)] = pairs["verdict"] == "better"
    half = _half_width(kept.std()[order].to_numpy(), has[order].to_numpy(), ALPHA, test_over_train)
    if spread is not None:
        half[: len(whole)] = _half_width(np.diag(spread), df + 1, ALPHA, 1.0 - 1 / (df + 1))
    table = pd.DataFrame(index=order.rename("method"), columns=["rank"], dtype=np.float64)
    table = table.assign(mean=mean, low=mean[order] - half, high=mean[order] + half, sd=kept.std(), folds=has)
    table["groups"] = [*letter_groups(above | above.T), *[""] * len(left_out)]
    if len(pairs):
        table.loc[whole, "rank"] = 1.0 + np.maximum.accumulate(above.sum(axis=0))
    return Ranking(table, pairs, n, higher_is_better, test_over_train, margin, spread is not None, left_out)


def _half_width(sd: np.ndarray, n: np.ndarray | float, alpha: float | np.ndarray, ratio: float) -> np.ndarray:
    """Half the width of the t interval of a mean over folds that share training rows; n infinite: of the normal's."""
    from scipy.special import stdtrit

    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(stdtrit(np.maximum(n - 1, 1), 1 - np.asarray(alpha) / 2) * sd * np.sqrt(1 / n + ratio))


def _pairs(x: pd.DataFrame, ratio: float, margin: float | None, spread: np.ndarray | None, df: float) -> pd.DataFrame:
    """Test every pair of columns; no row where there are fewer than two methods, or two folds without errors."""
    from scipy.special import stdtr
    from scipy.stats import wilcoxon

    n, k = x.shape
    if k < 2 or (n < 2 and spread is None):
        return pd.DataFrame(columns=PAIR)
    i, j = np.triu_indices(k, 1)
    values = x.to_numpy()
    apart = values[:, i] - values[:, j]
    small = _TINY * max(float(np.abs(values).max()), 1e-300)
    apart[np.abs(apart) <= small] = 0.0
    difference, m = apart.mean(axis=0), float(n)
    if spread is None:
        sd = apart.std(axis=0, ddof=1)
    else:
        sd, m, ratio = spread[i, j].copy(), df + 1, 1.0 - 1 / (df + 1)  # errors as they are
    sd[sd <= small] = 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        t = np.where(difference == 0, 0.0, np.abs(difference) / (sd * np.sqrt(1 / m + ratio)))
        d = np.where((sd > 0) & (n > 1), difference / sd, np.nan)
    p = holm(2 * stdtr(m - 1, -t))
    half, different = _half_width(sd, m, ALPHA / len(p), ratio), p < ALPHA
    names, rank_p = x.columns.to_numpy(), np.full(len(i), np.nan)
    if n >= LEAST_WILCOXON:
        rank_p = holm(wilcoxon(apart, zero_method="zsplit", method="asymptotic").pvalue)
    within = np.abs(difference) + half < (margin or 0.0)
    better = different & (np.abs(difference) >= (margin or 0.0))
    reach = np.where(different, np.minimum(half, np.abs(difference)), half)  # towards 0
    low, high = difference - np.where(difference > 0, reach, half), difference + np.where(difference < 0, reach, half)
    verdict = np.where(within, "equivalent", np.where(better, "better", "undecided"))
    odd, tukey = np.isfinite(rank_p) & (different != (rank_p < ALPHA)), _tukey(values, np.abs(difference))
    columns = (names[i], names[j], difference, low, high, d, p, different, verdict, rank_p, odd, tukey)
    return pd.DataFrame(dict(zip(PAIR, columns, strict=True)))


def _tukey(x: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Whether Tukey's test tells pairs apart whose means differ by ``apart``, after an ANOVA over folds and methods.

    The protocol of Ash et al. (2025, J. Chem. Inf. Model. 65:9398), beside which results of the literature stand.
    """
    n, k = x.shape
    if n < 2:
        return np.zeros(len(apart), dtype=bool)
    rest = x - x.mean(axis=0) - x.mean(axis=1, keepdims=True) + x.mean()
    df = (n - 1) * (k - 1)
    return np.asarray(apart > _studentized_range(1 - ALPHA, k, df) * np.sqrt((rest**2).sum() / df / n))


@lru_cache
def _studentized_range(q: float, k: int, df: int) -> float:
    """The quantile, kept: scipy takes 0.1 s for each."""
    from scipy.stats import studentized_range

    return float(studentized_range.ppf(q, k, df))


def letter_groups(different: np.ndarray) -> list[str]:
    """Compact letter display (Piepho 2004, J. Comput. Graph. Stat. 13:456): insert and absorb.

    Args:
        different: bool [k, k], symmetric, methods from best to worst; two that differ share no letter, others do.

    Example:
        >>> letter_groups(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
        ['a', 'ab', 'b']
    """
    k = len(different)
    groups = [frozenset(range(k))] if k else []
    for i, j in zip(*np.nonzero(np.triu(different, 1)), strict=True):
        split = [part for g in groups for part in ([g - {i}, g - {j}] if {i, j} <= g else [g])]
        groups = [g for g in dict.fromkeys(split) if not any(g < other for other in split)]
    groups.sort(key=sorted)
    letters = [chr(97 + n % 26) + (str(n // 26) if n >= 26 else "") for n in range(len(groups))]
    return ["".join(a for a, group in zip(letters, groups, strict=True) if i in group) for i in range(k)]
