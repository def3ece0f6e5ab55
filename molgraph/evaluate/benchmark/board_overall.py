"""Summarise the methods over the boards of several datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from molgraph.evaluate.benchmark.board import Board
from molgraph.evaluate.benchmark.ranking import ALPHA, Omnibus


@dataclass(frozen=True)
class Overall:
    """Methods over the datasets of one split, each by its primary board; of numbers and classes it has two.

    Args:
        split: the split's label.
        table: indexed by method, best first: ``mean_place`` (mean over datasets of its place by mean score among the
            methods ranked on all of them; ties share), ``first`` (tested datasets where nothing is clearly better),
            ``alone`` (where it is better than everything), ``ranked`` (datasets), ``beats``, ``loses`` (datasets
            where it is significantly better or worse than the reference).
        ranks: methods x boards by title, the boards' ranks; NaN where it has none.
        omnibus: Friedman's test over datasets, or None.
        critical: Nemenyi's critical difference of two mean places (Demsar 2006, J. Mach. Learn. Res. 7:1); NaN with
            fewer than two datasets or methods.
        compared: methods that ``mean_place`` compares: those ranked on every board.
        boards: the primary boards by title.
    """

    split: str
    table: pd.DataFrame
    ranks: pd.DataFrame
    omnibus: Omnibus | None
    critical: float
    compared: tuple[str, ...]
    alpha: float = ALPHA
    boards: Mapping[str, Board] = field(default_factory=dict)

    @property
    def datasets(self) -> int:
        """How many datasets it is a summary of."""
        return len({board.name for board in self.boards.values()})

    @property
    def over(self) -> str:
        """What it is a summary of, in words."""
        n, k = self.datasets, len(self.boards)
        datasets = f"{n} dataset{'s' * (n != 1)}"
        return datasets if n == k else f"{k} boards of {datasets}"

    def to_frame(self) -> pd.DataFrame:
        """The table."""
        return self.table.copy()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def summarise(boards: Sequence[Board], *, alpha: float = ALPHA) -> list[Overall]:
    """One summary for each split that has a primary board, in the boards' order."""
    chosen: dict[str, list[Board]] = {}
    for board in boards:
        if board.primary:
            chosen.setdefault(board.split, []).append(board)
    return [_overall(split, part, alpha) for split, part in chosen.items()]


def _overall(split: str, boards: list[Board], alpha: float) -> Overall:
    from scipy.stats import friedmanchisquare, rankdata, studentized_range

    methods = list(dict.fromkeys(name for board in boards for name in board.methods))
    ranks = pd.DataFrame({b.title: b.ranking.table["rank"].reindex(methods) for b in boards}, index=methods)
    sure = ranks[[b.title for b in boards if b.tested]]
    compared = [name for name in methods if ranks.loc[name].notna().all()]
    means = np.array([b.ranking.table["mean"].reindex(compared) * (-1) ** b.ranking.higher_is_better for b in boards])
    places = rankdata(means, axis=1) if compared else np.empty((len(boards), 0))
    n, k = places.shape
    omnibus, critical = None, float("nan")
    if n > 1 and k > 1:
        critical = float(studentized_range.ppf(1 - alpha, k, np.inf) / np.sqrt(2) * np.sqrt(k * (k + 1) / (6 * n)))
        if k > 2 and (places != places[:, :1]).any():
            found = friedmanchisquare(*places.T)
            omnibus = Omnibus("Friedman chi²", float(found.statistic), float(found.pvalue))
    mean_place = pd.Series(places.mean(axis=0) if n else [], index=compared, dtype=np.float64).reindex(methods)
    held = {name: [b.against_reference(name) for b in boards if name in b.methods] for name in methods}
    table = pd.DataFrame(
        {
            "mean_place": mean_place,
            "first": (sure == 1).sum(axis=1).astype(int),
            "alone": [sum(sure.loc[m, d] == 1 and (sure[d] == 1).sum() == 1 for d in sure) for m in methods],
            "ranked": ranks.notna().sum(axis=1),
            "beats": [held[name].count("better") for name in methods],
            "loses": [held[name].count("worse") for name in methods],
        },
        index=pd.Index(methods, name="method"),
    )
    order = table.assign(_rank=ranks.mean(axis=1)).sort_values(["mean_place", "_rank"], kind="stable").index
    return Overall(
        split,
        table.loc[order],
        ranks.loc[order],
        omnibus,
        critical,
        tuple(compared),
        alpha,
        {b.title: b for b in boards},
    )
