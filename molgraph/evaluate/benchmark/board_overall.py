"""Summarise the methods over the boards of several datasets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import Board

LEAST_DATASETS = 6  # below it a mean place says next to nothing


@dataclass(frozen=True)
class Overall:
    """Methods over the datasets of one split, each by its primary board; of numbers and classes it has two."""

    split: str  # the split's label
    # indexed by method, best first: ``mean_place`` (from six datasets on: mean over boards of its place by mean
    # score among the methods ranked on all of them; ties share), ``first`` (tested boards where nothing is
    # significantly better), ``alone`` (where it is better than everything), ``ranked`` (boards), ``beats``,
    # ``loses`` (boards where it is significantly better or worse than the reference)
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
    table = pd.DataFrame(
        {
            "mean_place": places if len({b.name for b in boards.values()}) >= LEAST_DATASETS else float("nan"),
            "first": first.sum(axis=1),
            "alone": (first & (first.sum() == 1)).sum(axis=1),
            "ranked": ranked.sum(axis=1),
            "beats": (held == "better").sum(axis=1),
            "loses": (held == "worse").sum(axis=1),
        }
    ).rename_axis("method")
    table["_place"], table["_rank"] = places, ranks.mean(axis=1)
    order = table.sort_values(["_place", "_rank"], kind="stable").index
    compared = tuple(m for m in order if ranked.loc[m].all())
    return Overall(split, table.loc[order].drop(columns=["_place", "_rank"]), ranks.loc[order], compared, boards)
