"""Make the boards of a benchmark: one for each dataset, split and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from html import escape
from typing import Any

import pandas as pd

from molgraph.base.errors import DataError
from molgraph.base.printable import count
from molgraph.data.card_parts import Margin
from molgraph.evaluate.benchmark.board_folds import FoldScores, check_hashes, fold_scores
from molgraph.evaluate.benchmark.ranking import ALPHA, Ranking, rank_methods
from molgraph.evaluate.benchmark.recipe import Quoted
from molgraph.evaluate.benchmark.unused_rows import RowCount

PLACE, CELL = ["dataset", "edition", "split"], ["repeat", "fold", "seed", "method"]
ERRORS = ("rmse", "mae")  # in the unit of the measured values
LOGARITHMS = ("log10(", "-log10(", "pIC50", "logD")  # units of which a difference is a fold
FOREST = ("random_forest", "forest", "rf")  # names that the reference goes by, where nobody says another


@dataclass(frozen=True)
class Ceiling:
    """The best score that the labels' own noise allows, and where the noise is known from."""

    value: float
    sd: float
    source: str


@dataclass(frozen=True)
class Board:
    """One table: methods on the same folds of one dataset under one metric."""

    dataset: str  # what it is about
    edition: str  # what it is about
    split: str  # what it is about
    metric: str  # what it is about
    data_hash: str  # of the dataset's content
    split_hashes: Mapping[str, str]  # of each fold
    ranking: Ranking  # the statistics over ``scores.folds``
    scores: FoldScores  # macro means over tasks, a row a fold, with the tasks that they stand on
    # by method: ``cpu_minutes`` and ``seconds`` of a cell (means over those that ended well), ``peak_mb``
    # (largest), ``cells``, ``total_cpu_minutes`` (failed cells too)
    cost: pd.DataFrame
    failures: pd.DataFrame  # a row a failed cell: method, fold, seed, status, reason
    reference: str = ""  # the forest that every other method is held against, or empty
    quoted: tuple[Quoted, ...] = ()  # numbers from papers: shown in grey, never ranked
    margin: Margin | None = None  # the smallest difference of this metric that matters, where the card says one
    ceilings: tuple[Ceiling, ...] = ()  # what the labels' noise allows, as far as it is known
    primary: bool = False  # whether it leads: the summary over datasets counts this metric of these targets
    # whether no other board leads on this dataset and split; one with numbers and classes has two that do
    alone: bool = True
    notes: tuple[str, ...] = ()  # what else a reader should know
    rows: RowCount = field(default_factory=RowCount)  # the dataset's rows, and those that no method could use
    unit: str = ""  # of the measured values, from the card
    censored: float = 0.0  # share of them that stand at a limit of the assay, from the card
    # other metric -> method -> its mean over folds, beside errors of numbers
    beside: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Dataset with its edition, where that is not the raw one."""
        plain = self.edition in ("", "raw", "own") or "@" in self.dataset
        return self.dataset if plain else f"{self.dataset}@{self.edition}"

    @property
    def title(self) -> str:
        """The name, with the metric where two boards lead on the dataset."""
        return self.name if self.alone else f"{self.name}, {self.metric}"

    @property
    def tested(self) -> bool:
        """Whether there was anything to test: a single fold gives scores, and no ranks."""
        return self.ranking.tested

    @property
    def methods(self) -> list[str]:
        """All methods, ranked ones first."""
        return [str(name) for name in self.ranking.table.index]

    def against_reference(self, method: str) -> str:
        """``better``, ``worse``, ``equivalent`` or ``undecided``; empty where the two were not tested."""
        return self.ranking.verdict(method, self.reference)

    def tested_by(self, errors: pd.DataFrame) -> Board:
        """The board of one split, its methods tested by the standard errors of their differences."""
        old = self.ranking
        how: dict[str, Any] = {"alpha": old.alpha, "test_over_train": old.test_over_train, "margin": old.margin}
        how |= {"why": self.scores.why, "errors": errors}
        return replace(self, ranking=rank_methods(self.scores.folds, old.higher_is_better, **how))

    def to_frame(self) -> pd.DataFrame:
        """A row a method: the ranking's table, the difference from the first with its interval, cost, failures.

        Columns beside those of ``Ranking.table``: ``to_best``, ``to_best_low``, ``to_best_high``, ``d`` (Cohen's, of
        that difference), ``reference`` (against the forest), ``cpu_minutes``, ``seconds``, ``peak_mb``,
        ``failures`` (cells) and ``note`` (why it has no rank); of a leading error of numbers ``r2`` and ``spearman``,
        and of logarithms ``fold_error``, ten to the power of the MAE.
        """
        ranking = self.ranking
        first = ranking.pairs[ranking.pairs["a"] == next(iter(ranking.ranked), "")].set_index("b")
        steps = -first[["difference", "high", "low", "d"]].astype(float)
        steps.columns = pd.Index(["to_best", "to_best_low", "to_best_high", "d"])
        out = ranking.table.join(steps).join(self.cost[["cpu_minutes", "seconds", "peak_mb"]])
        out["failures"] = self.failures.groupby("method").size().reindex(out.index).fillna(0).astype(int)
        out["reference"] = [self.against_reference(str(name)) for name in out.index]
        for name, values in self.beside.items():
            out[name] = [values.get(str(method), float("nan")) for method in out.index]
        if "mae" in out and self.unit.startswith(LOGARITHMS):
            out["fold_error"] = 10.0 ** out["mae"]
        out["note"] = [ranking.left_out.get(str(name), "") for name in out.index]
        return out

    def __repr__(self) -> str:
        head = f"Board {self.name}, {self.split}, {self.metric}: {self.sentence}"
        return "\n".join([head, *self._said(), self._shown().to_string(na_rep="-")])

    def _repr_html_(self) -> str:
        head = f"{escape(self.name)}</b>, {escape(self.split)}, {escape(self.metric)}: {escape(self.sentence)}"
        said = "".join(f"<br>{escape(text)}" for text in self._said())
        return f"<p><b>{head}{said}</p>{self._shown().to_html(na_rep='-', border=0)}"

    def _said(self) -> list[str]:
        """The lines above the table: rows, notes, and why a method has no rank."""
        unranked = (f"{name} is not ranked: {why}" for name, why in self.ranking.left_out.items())
        return [text for text in (str(self.rows), *self.notes, *unranked) if text]

    def _shown(self) -> pd.DataFrame:
        """The columns that fit on a screen, as text."""
        frame = self.to_frame()
        columns = ["rank", "mean", "low", "high", "groups", "to_best", "to_best_low", "to_best_high", "cpu_minutes"]
        shown = frame[[*columns, "failures"]].map(lambda v: f"{v:.3g}" if isinstance(v, float) and v == v else v)
        for name in ("mean", "low", "high"):
            shown[name] = [f"{v:.3f}" if v == v else v for v in frame[name]]
        return shown

    @property
    def sentence(self) -> str:
        """Who leads, in words."""
        ranking = self.ranking
        ranked = ranking.ranked
        if not ranked:
            return "no method has all folds"
        folds = count(ranking.n_folds, "fold")
        if len(ranked) == 1:
            return f"{ranked[0]} is the only method ranked, over {folds}"
        if not self.tested:
            return f"{ranked[0]} has the best score of {len(ranked)} methods; {folds} cannot tell which are better"
        first = [name for name in ranked if ranking.table.loc[name, "rank"] == 1]
        if len(first) == 1:
            return f"{first[0]} leads alone, over {folds}"
        return f"{', '.join(first[:-1])} and {first[-1]} share the lead, over {folds}"


def make_boards(
    scores: pd.DataFrame,
    *,
    primary: Mapping[str, str | Sequence[str]] | None = None,
    reference: str | None = None,
    quoted: Iterable[Quoted] = (),
    shares: Mapping[str, float] | None = None,
    margins: Mapping[tuple[str, str], Margin] | None = None,
    expected: Mapping[str, Mapping[str, str]] | None = None,
    alpha: float = ALPHA,
) -> list[Board]:
    """Turn scores into boards, one a dataset, edition, split and metric, in the frame's order.

    A fold's score of a method is the mean over its seeds, then over the tasks that every ranked method has in that
    fold; the tasks that were left out are named. A method with a failed cell, or with predictions of fewer than 99%
    of the rows that another method predicted in a fold, is shown and not ranked.

    Args:
        scores: the frame of ``score_records``.
        primary: dataset -> the metrics that count in the summary; by default the first that each target has.
        reference: the method that the others are held against; by default the forest, where there is one.
        quoted: numbers from papers, as a recipe has them.
        shares: split -> test rows over training rows, where it has no folds that tell it; else 1/4.
        margins: (dataset, metric) -> the smallest difference that matters.
        expected: dataset -> method -> why it has no cell at all.
        alpha: family-wise error rate of a board.

    Raises:
        DataError: rows of one board differ in the hash of their data, or of their fold's split.

    Example:
        >>> rows = [{"dataset": "d", "edition": "raw", "data_hash": "1", "split": "random", "split_hash": str(f),
        ...          "repeat": 0, "fold": f, "seed": 0, "method": m, "target": "y", "metric": "rmse",
        ...          "value": 1.0 + f + (m == "mean"), "n": 9, "note": "", "status": "ok", "reason": "",
        ...          "seconds": 1.0, "cpu_seconds": 1.0, "peak_mb": 9.0, "higher_is_better": False}
        ...         for f in range(8) for m in ("mean", "rf")]
        >>> make_boards(pd.DataFrame(rows))[0].sentence
        'rf leads alone, over 8 folds'
    """
    wanted = [*PLACE, "metric", *CELL, "target", "value", "status", "split_hash", "data_hash"]
    missing = [column for column in wanted if column not in scores]
    if missing:
        raise DataError(f"the frame of scores lacks {', '.join(missing)}", hint="it is what score_records makes")
    scores = scores[scores["metric"].astype(str) != ""]  # a dataset that was refused has no board
    check_hashes(scores)
    quotes, leading, found = list(quoted), _leading_metrics(scores, primary), []
    for place, part in scores.groupby([*PLACE, "metric"], sort=False):
        dataset, edition, split, metric = map(str, place)
        folds = fold_scores(part, (expected or {}).get(dataset, {}))
        k = int(part["fold"].nunique())
        share = (shares or {}).get(split, 1 / (k - 1) if k > 1 else 0.25)
        higher = bool(part["higher_is_better"].iloc[0])
        margin = (margins or {}).get((dataset, metric))
        least = None if margin is None else margin.value
        how: dict[str, Any] = {"alpha": alpha, "test_over_train": share, "margin": least}
        ranking = rank_methods(folds.folds, higher, **how, why=folds.why)
        cost, failures = _costs(part)
        names = FOREST if reference is None else (reference,)
        board = Board(
            dataset=dataset,
            edition=edition,
            split=split,
            metric=metric,
            data_hash=str(part["data_hash"].iloc[0]),
            split_hashes=folds.hashes,
            ranking=ranking,
            scores=folds,
            cost=cost,
            failures=failures,
            reference=next((name for name in names if name in ranking.table.index), ""),
            quoted=tuple(q for q in quotes if (q.dataset, q.split, q.metric) == (dataset, split, metric)),
            margin=margin,
            primary=metric in leading[dataset, edition, split],
            alone=len(leading[dataset, edition, split]) == 1,
            notes=folds.notes,
        )
        found.append(board)
    return [_with_others(board, found) for board in found]


def _with_others(board: Board, boards: Sequence[Board]) -> Board:
    """A leading board of errors with the means of the metrics that people read beside them."""
    if board.metric not in ERRORS or not board.primary:
        return board
    place = (board.dataset, board.edition, board.split)
    same = {b.metric: b.ranking.table["mean"].to_dict() for b in boards if (b.dataset, b.edition, b.split) == place}
    return replace(board, beside={name: same[name] for name in ("r2", "spearman", "mae") if name in same})


def _leading_metrics(
    scores: pd.DataFrame, asked: Mapping[str, str | Sequence[str]] | None
) -> dict[tuple[str, ...], list[str]]:
    """(dataset, edition, split) -> one metric for each kind of target: the first asked for that judges it, or its own.

    Numbers and classes of one dataset have a board each that leads.
    """
    found: dict[tuple[str, ...], list[str]] = {}
    known = scores[[*PLACE, "target", "metric"]].drop_duplicates()
    for (*place, _), metrics in known.groupby([*PLACE, "target"], sort=False)["metric"]:
        wanted = (asked or {}).get(str(place[0]), ())
        wanted = [wanted] if isinstance(wanted, str) else wanted
        own = metrics.tolist()
        chosen = next((name for name in wanted if name in own), own[0])
        leads = found.setdefault(tuple(map(str, place)), [])
        leads += [] if chosen in leads else [chosen]
    return found


def _costs(part: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cost by method, and failed cells, from the rows of one metric."""
    cells = part.drop_duplicates(CELL)
    well = cells["status"] == "ok"
    good, every = cells[well].groupby("method", sort=False), cells.groupby("method", sort=False)
    cost = pd.DataFrame(
        {
            "cpu_minutes": good["cpu_seconds"].mean() / 60,
            "seconds": good["seconds"].mean(),
            "peak_mb": good["peak_mb"].max(),
            "cells": every.size(),
            "total_cpu_minutes": every["cpu_seconds"].sum() / 60,
        }
    )
    named = "r" + cells["repeat"].astype(str) + "-f" + cells["fold"].astype(str)
    bad = cells.assign(fold=named)[~well]
    return cost, bad[["method", "fold", "seed", "status", "reason"]].reset_index(drop=True)
