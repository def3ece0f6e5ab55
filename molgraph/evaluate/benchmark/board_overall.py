"""Summarise the methods over the boards of several datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pandas as pd

from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import Board

LEAST_DATASETS = 6  # below it a mean place says next to nothing


@dataclass(frozen=True)
class Overall:
    """Methods over the datasets of one split, each by its primary board; of numbers and classes it has two."""

    split: str  # the split's label
    # indexed by method, best first: ``percent`` (of the forest's error, a geometric mean over boards, with its 95%
    # interval over them, ``percent_low`` and ``percent_high``), ``mean_place`` (from six datasets on: mean over boards
    # of its place by mean score; ties share), both over all boards and of the methods that all of them rank; ``first``
    # (tested boards where nothing is better), ``alone`` (where it is better than everything), ``ranked`` (boards),
    # ``beats``, ``loses`` (boards where it is better or worse than the reference)
    table: pd.DataFrame
    ranks: pd.DataFrame  # methods x boards by title, the boards' ranks; NaN where it has none
    compared: tuple[str, ...]  # methods that ``mean_place`` compares: those ranked on every board
    boards: Mapping[str, Board] = field(default_factory=dict)  # the primary boards by title

    @property
    def datasets(self) -> int:
        """How many datasets it is a summary of."""
        return len({board.name for board in self.boards.values()})

    @property
    def over(self) -> str:
        """What it is a summary of, in words."""
        n, k = self.datasets, len(self.boards)
        datasets = count(n, "dataset")
        return datasets if n == k else f"{k} boards of {datasets}"

    def to_frame(self) -> pd.DataFrame:
        """The table."""
        return self.table.copy()

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def summarise(boards: Sequence[Board]) -> list[Overall]:
    """One summary for each split that has a primary board, in the boards' order."""
    chosen: dict[str, dict[str, Board]] = {}
    for board in boards:
        if board.primary:
            chosen.setdefault(board.split, {})[board.title] = board
    return [_overall(split, part) for split, part in chosen.items()]


def _overall(split: str, boards: dict[str, Board]) -> Overall:
    methods = list(dict.fromkeys(name for board in boards.values() for name in board.methods))
    ranks = pd.DataFrame({title: b.ranking.table["rank"] for title, b in boards.items()}).reindex(methods)
    ranked = pd.DataFrame({t: [m in b.ranking.ranked for m in methods] for t, b in boards.items()}, index=methods)
    means = pd.DataFrame(
        {t: b.ranking.table["mean"] * (-1) ** b.ranking.higher_is_better for t, b in boards.items()}
    ).reindex(methods)
    places = means[ranked.all(axis=1)].rank().mean(axis=1).reindex(methods)
    held = pd.DataFrame({t: [b.against_reference(m) for m in methods] for t, b in boards.items()}, index=methods)
    first = ranks == 1
    percent = _percent({t: b for t, b in boards.items() if b.reference in places.dropna()}, places.dropna().index)
    table = pd.DataFrame(
        {
            **percent.reindex(methods),
            "mean_place": places if len({b.name for b in boards.values()}) >= LEAST_DATASETS else float("nan"),
            "first": first.sum(axis=1),
            "alone": (first & (first.sum() == 1)).sum(axis=1),
            "ranked": ranked.sum(axis=1),
            "beats": (held == "better").sum(axis=1),
            "loses": (held == "worse").sum(axis=1),
        }
    ).rename_axis("method")
    table["_place"], table["_rank"] = places, ranks.mean(axis=1)
    order = table.sort_values(["percent", "_place", "_rank"], kind="stable").index
    compared = tuple(m for m in order if ranked.loc[m].all())
    return Overall(split, table.loc[order].drop(columns=["_place", "_rank"]), ranks.loc[order], compared, boards)


def _percent(boards: Mapping[str, Board], methods: pd.Index) -> pd.DataFrame:
    """Each method's error as percent of the forest's: the geometric mean over the boards, and its t interval.

    The error is the mean score, or 1 less the mean where higher is better.
    """
    from scipy.special import stdtrit

    ratios = {}
    for title, board in boards.items():
        mean = board.ranking.table["mean"][methods]
        error = 1 - mean if board.ranking.higher_is_better else mean
        with np.errstate(invalid="ignore", divide="ignore"):
            ratios[title] = np.log(error / error[board.reference])
    logs = pd.DataFrame(ratios, index=methods)
    logs = logs.loc[:, np.isfinite(logs).all()]
    n = logs.shape[1]
    centre, half = logs.mean(axis=1), np.nan
    if n > 1:
        half = stdtrit(n - 1, 0.975) * logs.std(axis=1) / np.sqrt(n)
    columns = {"percent": centre, "percent_low": centre - half, "percent_high": centre + half}
    return pd.DataFrame({name: 100 * np.exp(value) for name, value in columns.items()}, index=methods)
