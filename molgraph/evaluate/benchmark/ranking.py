"""Rank methods by their scores on the same folds.

The protocol is that of Ash et al. 2025 (J. Chem. Inf. Model., "Practically significant method comparison protocols
for machine learning in small molecule drug discovery"). Its known weakness is kept in sight: the folds of a repeated
cross-validation share training rows and are not independent, so that its intervals are too narrow. Ranks follow the
published protocol, for they are to be compared with others'; beside them stand intervals widened by Nadeau and
Bengio's (2003) factor, and which differences outlive it. Where folds are too few for the protocol's tests by ranks,
paired t-tests with Bonferroni's correction stand in for them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError
from molgraph.evaluate.benchmark.ranking_checks import Check, check_assumptions
from molgraph.evaluate.benchmark.ranking_groups import letter_groups, shared_ranks
from molgraph.evaluate.benchmark.ranking_pairs import COLUMNS as PAIR_COLUMNS
from molgraph.evaluate.benchmark.ranking_pairs import CONOVER, PAIRED, TUKEY, WILCOXON, choose_test, compare

__all__ = ["ALPHA", "CONOVER", "PAIRED", "TUKEY", "UNTESTED", "WILCOXON", "Omnibus", "Ranking", "rank_methods"]
ALPHA = 0.05
UNTESTED = "not tested"


class Omnibus(NamedTuple):
    """The test of all methods at once."""

    name: str
    statistic: float
    p: float


@dataclass(frozen=True)
class Ranking:
    """What the folds say about the methods.

    Args:
        table: indexed by method, best first (by rank, then by mean, with a test by ranks by mean rank), the unranked
            last: ``rank``, ``mean``, ``low``, ``high`` (Student's interval of the mean over folds, 1 - alpha each by
            itself), ``sd``, ``folds``, ``groups`` (letters), ``mean_rank``, ``better_than``, ``worse_than`` (numbers
            of methods), ``survives`` (of ``better_than``, those left after the correction).
        pairs: a row a pair of ranked methods, in the table's order: ``difference`` (mean of a less mean of b),
            ``low``, ``high`` (1 - alpha for all pairs together: Tukey's, else Student's with Bonferroni's
            correction), ``d`` (Cohen's, paired: over the standard deviation of the folds' differences), ``d_low``,
            ``d_high`` (95% for each pair by itself, from the noncentral t), ``p`` (adjusted; by ranks the
            larger of the ranks' and the interval's), ``different``, ``wide_low``, ``wide_high``, ``survives`` (the
            same with Nadeau and Bengio's factor; NaN and False where the shares are not known). Who is ``different``
            has 0 outside of ``low`` to ``high``; the reverse holds too, but for tests by ranks, where both decide.
        test: ``TUKEY``, ``CONOVER``, ``WILCOXON``, ``PAIRED`` or ``UNTESTED``.
        checks: the assumptions that chose it.
        omnibus: the test of all methods at once, or None.
        floor: resolution floor: two methods further apart than it are told apart. Tukey's margin; else the largest
            difference of means on this board that was not told apart, or, if all were, the smallest.
        floor_wide: the same with Nadeau and Bengio's factor; NaN where the shares are not known.
        rank_floor: critical difference of mean ranks; NaN where no ranks are tested, or where two methods further
            apart than it are not told apart.
        n_folds: folds that were compared.
        left_out: why a method has no rank, by name.
        notes: what else a reader should know.
    """

    table: pd.DataFrame
    pairs: pd.DataFrame
    test: str
    checks: tuple[Check, ...]
    omnibus: Omnibus | None
    floor: float
    floor_wide: float
    rank_floor: float
    n_folds: int
    higher_is_better: bool
    alpha: float = ALPHA
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def ranked(self) -> list[str]:
        """Methods with a rank, best first."""
        return [str(name) for name in self.table.index[self.table["rank"].notna()]]

    @cached_property
    def _places(self) -> dict[tuple[str, str], int]:
        return {pair: i for i, pair in enumerate(zip(self.pairs["a"], self.pairs["b"], strict=True))}

    def told_apart(self, a: str, b: str) -> bool:
        """Whether the test tells two ranked methods apart."""
        place = self._places.get((a, b), self._places.get((b, a)))
        return place is not None and bool(self.pairs["different"].iat[place])

    def pair(self, a: str, b: str) -> pd.Series:
        """The row of two methods, turned so that ``a`` comes first."""
        if (a, b) in self._places:
            return self.pairs.iloc[self._places[a, b]]
        if (b, a) not in self._places:
            raise DataError(f"{a} and {b} are no pair of ranked methods")
        row = self.pairs.iloc[self._places[b, a]].copy()
        for low, high in (("low", "high"), ("d_low", "d_high"), ("wide_low", "wide_high")):
            row[low], row[high] = -row[high], -row[low]
        row["a"], row["b"], row["difference"], row["d"] = a, b, -row["difference"], -row["d"]
        return row


def rank_methods(
    folds: pd.DataFrame,
    higher_is_better: bool,
    *,
    alpha: float = ALPHA,
    test_over_train: float | None = None,
    why: Mapping[str, str] | None = None,
) -> Ranking:
    """Rank methods by their scores on the same folds.

    Where residuals are normal, variances equal and differences spherical (``check_assumptions``): repeated-measures
    ANOVA, and Tukey's HSD with its error term. Else Friedman's test, and Conover's with Holm's correction, whose
    p-values are never below Friedman's own over any run of methods, in the order of mean rank, that holds the two, at
    Welsch's levels: a floor that is always last would else make Conover's too sure of the others. Of two methods,
    Wilcoxon's signed-rank test. With both, 0 has to lie outside the interval too. Where folds are so few that even
    the same order in every fold would not be significant (``least_p``): paired t-tests with Bonferroni's correction.
    A rank is one more than the number of methods that are significantly better, or better than one that is.

    Args:
        folds: a row a fold, a column a method; NaN where a method has no score. A method that lacks a fold is
            printed and not ranked; a fold that no method has is left out, and said so.
        higher_is_better: the metric's direction.
        alpha: family-wise error rate.
        test_over_train: test rows over training rows of a fold, for Nadeau and Bengio's factor: 1/4 with 5 folds.
        why: what befell a method that lacks folds, by name.

    Raises:
        DataError: no methods, or two of one name.
        MolgraphError: a library of the extra ``bench`` is not there.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> hard = rng.normal(size=(25, 1))
        >>> x = hard + rng.normal(size=(25, 3)) * 0.1 + np.array([0.0, 0.0, 1.0])
        >>> found = rank_methods(pd.DataFrame(x, columns=["a", "b", "c"]), higher_is_better=True)
        >>> found.table["rank"].astype(int).to_dict()
        {'c': 1, 'b': 2, 'a': 2}
    """
    if not folds.shape[1] or folds.columns.duplicated().any():
        raise DataError("a ranking needs methods, each under a name of its own")
    folds = folds.astype(np.float64)
    kept = folds[np.isfinite(folds.to_numpy()).any(axis=1)]
    notes = [f"{len(folds) - len(kept)} of {len(folds)} folds have no score of any method"] * (len(folds) > len(kept))
    whole = np.isfinite(kept.to_numpy()).all(axis=0) & (len(kept) > 0)
    left_out = {}
    for name in kept.columns[~whole]:
        has, reason = int(np.isfinite(kept[name]).sum()), (why or {}).get(str(name), "")
        left_out[str(name)] = f"{has} of {len(kept)} folds" + (f": {reason}" if reason else "")
    x = kept.loc[:, whole]
    order, parts = _compare(x, higher_is_better, alpha, test_over_train)
    table = _table(kept, order, parts, alpha, higher_is_better)
    return Ranking(
        table=table,
        pairs=parts.pairs,
        test=parts.test,
        checks=parts.checks,
        omnibus=parts.omnibus,
        floor=parts.floor,
        floor_wide=parts.floor_wide,
        rank_floor=parts.rank_floor,
        n_folds=len(kept),
        higher_is_better=higher_is_better,
        alpha=alpha,
        left_out=left_out,
        notes=(*notes, *parts.notes),
    )


@dataclass(frozen=True)
class _Parts:
    pairs: pd.DataFrame
    test: str
    checks: tuple[Check, ...]
    omnibus: Omnibus | None
    floor: float
    floor_wide: float
    rank_floor: float
    ranks: np.ndarray
    letters: list[str]
    mean_ranks: np.ndarray
    notes: tuple[str, ...] = ()


def _compare(x: pd.DataFrame, higher: bool, alpha: float, ratio: float | None) -> tuple[list[str], _Parts]:
    """The ranked methods in order, and everything that the tests said about them, in that order."""
    from scipy.stats import rankdata

    n, k = x.shape
    values = x.to_numpy()
    inner = rankdata(-values if higher else values, axis=1) if k else values  # 1 is the fold's best
    nan = float("nan")
    if n < 2 or k < 2:
        means = values.mean(axis=0) if n else np.zeros(k)
        first = np.argsort(-means if higher else means, kind="stable")
        names = [str(x.columns[i]) for i in first]
        notes = () if k < 2 or n >= 2 else ("one fold cannot tell methods apart, so none has a rank",)
        empty = pd.DataFrame(columns=PAIR_COLUMNS)
        mean_ranks = inner.mean(axis=0)[first] if names else np.empty(0)
        ones = np.ones(len(names), dtype=np.int64)
        return names, _Parts(empty, UNTESTED, (), None, nan, nan, nan, ones, ["a"] * len(names), mean_ranks, notes)
    checks = check_assumptions(values)
    test = choose_test(all(check.holds for check in checks), n, k, alpha)
    by_mean = -values.mean(axis=0) if higher else values.mean(axis=0)
    by_name = np.array([str(name) for name in x.columns])  # so that the order of equals is not that of the columns
    best = np.lexsort((by_name, by_mean, by_mean if test in (TUKEY, PAIRED) else inner.mean(axis=0)))
    values, inner = values[:, best], inner[:, best]
    found = compare(values, inner, test, alpha, ratio, higher)
    ranks = shared_ranks(found.better)
    order = np.argsort(ranks, kind="stable")  # with margins that differ, a noisy method is beaten by fewer
    found, best, inner = found.in_order(order), best[order], inner[:, order]
    names = [str(x.columns[i]) for i in best]
    notes = ()
    if found.overruled:
        notes = (
            f"in {found.overruled} of {len(found.i)} pairs the interval excludes 0 and ranks do not tell the two "
            "apart: the ranks decide",
        )
    parts = _Parts(
        pairs=found.frame(names),
        test=test,
        checks=checks,
        omnibus=None if found.omnibus is None else Omnibus(*found.omnibus),
        floor=found.floor,
        floor_wide=found.floor_wide,
        rank_floor=found.rank_floor,
        ranks=ranks[order],
        letters=letter_groups(found.different),
        mean_ranks=inner.mean(axis=0),
        notes=notes,
    )
    return names, parts


def _table(kept: pd.DataFrame, order: list[str], parts: _Parts, alpha: float, higher: bool) -> pd.DataFrame:
    """A row a method: the ranked ones in order, then the others by their mean."""
    from scipy.stats import t

    names = [str(name) for name in kept.columns]
    x = kept.to_numpy()
    n = np.isfinite(x).sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.nansum(x, axis=0) / n
        sd = np.sqrt(np.nansum((x - mean) ** 2, axis=0) / np.where(n > 1, n - 1, 0))
        half = t.ppf(1 - alpha / 2, np.maximum(n - 1, 1)) * sd / np.sqrt(n)
    place = {name: i for i, name in enumerate(names)}
    first = [place[name] for name in order]
    rest = [i for i in np.argsort(-mean if higher else mean, kind="stable") if i not in set(first)]
    rows, unranked = np.array([*first, *rest], dtype=np.int64), [float("nan")] * len(rest)
    k, different = len(order), parts.pairs["different"].to_numpy(dtype=bool)
    a, b = np.triu_indices(k, 1) if len(different) else (np.empty(0, np.int64), np.empty(0, np.int64))
    survives = parts.pairs["survives"].to_numpy(dtype=bool)
    columns = {
        "rank": [*parts.ranks.astype(np.float64), *unranked],
        "mean": mean[rows],
        "low": (mean - half)[rows],
        "high": (mean + half)[rows],
        "sd": sd[rows],
        "folds": n[rows],
        "groups": [*parts.letters, *[""] * len(rest)],
        "mean_rank": [*parts.mean_ranks, *unranked],
        "better_than": np.bincount(a[different], minlength=len(names)),
        "worse_than": np.bincount(b[different], minlength=len(names)),
        "survives": np.bincount(a[survives], minlength=len(names)),
    }
    return pd.DataFrame(columns, index=pd.Index([names[i] for i in rows], name="method"))
