"""Summarise the methods over the boards of several datasets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from molgraph.base.printable import count
from molgraph.evaluate.benchmark.board import Board

LEAST_DATASETS = 6  # below it a mean place says next to nothing
LEAST_INTERVAL = 4  # boards below which an interval over them says next to nothing


@dataclass(frozen=True)
class Overall:
    """Methods over the datasets of one split, each by its primary board; of numbers and classes it has two."""

    split: str  # the split's label
    # by method, best first: ``percent`` (of the reference's error, a geometric mean over boards, with its 95% interval
    # over them, ``percent_low`` and ``percent_high``) and ``mean_place`` (by mean score; from six datasets on), both
    # of the methods that all boards rank; then numbers of boards: ``first`` (nothing is better), ``alone`` (better
    # than everything), ``ranked``, ``beats`` and ``loses`` (against the reference)
    table: pd.DataFrame
    boards: Mapping[str, Board]  # the primary boards by title

    @property
    def ranks(self) -> pd.DataFrame:
        """The boards' ranks, methods x boards by title; NaN where a method has none, or the board decides nothing."""
        ranks = {t: b.ranking.table["rank"].mul(1.0 if b.leaders else np.nan) for t, b in self.boards.items()}
        return pd.DataFrame(ranks).reindex(self.table.index)

    @property
    def compared(self) -> tuple[str, ...]:
        """Methods that every board ranks."""
        return tuple(self.table.index[self.table["ranked"] == len(self.boards)])

    @property
    def datasets(self) -> int:
        """How many datasets it is a summary of."""
        return len({board.name for board in self.boards.values()})

    @property
    def over(self) -> str:
        """What it is a summary of, in words."""
        n, k = self.datasets, len(self.boards)
        return count(n, "dataset") if n == k else f"{k} boards of {count(n, 'dataset')}"


def summarise(boards: Iterable[Board]) -> list[Overall]:
    """One summary for each split that has a primary board, in the boards' order."""
    chosen: dict[str, dict[str, Board]] = {}
    for board in boards:
        if board.primary:
            chosen.setdefault(board.split, {})[board.title] = board
    return [Overall(split, _table(part), part) for split, part in chosen.items()]


def _table(boards: Mapping[str, Board]) -> pd.DataFrame:
    from scipy.special import stdtrit

    frames = {title: board.to_frame() for title, board in boards.items()}
    methods = pd.Index(dict.fromkeys(name for frame in frames.values() for name in frame.index), name="method")
    rank, mean, held, ranked, first = (
        pd.DataFrame({title: frame[name] for title, frame in frames.items()}).reindex(methods)
        for name in ("rank", "mean", "reference", "note", "leads")
    )
    first, ranked = first.eq(True), ranked == ""  # NaN where a board lacks the method
    higher = [board.ranking.higher_is_better for board in boards.values()]
    error = mean.mask(np.tile(higher, (len(methods), 1)), 1 - mean)[ranked.all(axis=1)]
    place = error.rank().mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        logs = np.log(error / [error[title].get(board.reference, np.nan) for title, board in boards.items()])
    logs = logs.loc[:, np.isfinite(logs).all()]
    centre, n = logs.mean(axis=1), logs.shape[1]
    half = stdtrit(n - 1, 0.975) * logs.std(axis=1) / np.sqrt(n) if n >= LEAST_INTERVAL else np.nan
    columns = {
        "percent": 100 * np.exp(centre),
        "percent_low": 100 * np.exp(centre - half),
        "percent_high": 100 * np.exp(centre + half),
        "mean_place": place if len({board.name for board in boards.values()}) >= LEAST_DATASETS else np.nan,
        "first": first.sum(axis=1),
        "alone": (first & (first.sum() == 1)).sum(axis=1),
        "ranked": ranked.sum(axis=1),
        "beats": (held == "better").sum(axis=1),
        "loses": (held == "worse").sum(axis=1),
    }
    table = pd.DataFrame(columns, index=methods)
    order = table.assign(_place=place, _rank=rank.mean(axis=1))
    return table.loc[order.sort_values(["percent", "_place", "_rank"], kind="stable").index]
