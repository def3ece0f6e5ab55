"""Make the boards of a benchmark: one for each dataset, split and metric."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from html import escape

import numpy as np
import pandas as pd

from molgraph.base.errors import MolgraphError
from molgraph.base.printable import count
from molgraph.data.cards import Card, card
from molgraph.data.splits.unused_rows import RowCount
from molgraph.evaluate.benchmark.board_folds import FoldScores, check_hashes, fold_scores
from molgraph.evaluate.benchmark.board_sides import side_sentences
from molgraph.evaluate.benchmark.ranking import Ranking, rank_methods
from molgraph.evaluate.benchmark.recipe import BenchRecipe, Quoted

PLACE, CELL = ["dataset", "edition", "split"], ["repeat", "fold", "seed", "method"]
ERRORS = ("rmse", "mae")  # in the unit of the measured values
LOGARITHMS = ("log10(", "-log10(", "pIC50", "logD")  # units of which a difference is a fold
TRIVIAL = "mean"  # the method that predicts the mean label for all
FOREST = ("random_forest", "forest", "rf")  # names that the reference goes by, where nobody says another
THE_FOREST = "the forest"
SHOWN = ["rank", "mean", "low", "high", "groups", "to_best", "to_best_low", "to_best_high", "cpu_minutes", "failures"]


@dataclass(frozen=True)
class Ceiling:
    """The best score that the labels' own noise allows, and where the noise is known from."""

    value: float
    sd: float
    source: str


@dataclass(frozen=True)
class Board:
    """One table: methods on the same folds of one dataset under one metric."""

    dataset: str
    edition: str
    split: str
    metric: str
    ranking: Ranking  # the statistics over ``scores.folds``
    scores: FoldScores  # macro means over tasks, a row a fold, with the tasks that they stand on
    # by method: ``cpu_minutes`` and ``seconds`` of a cell (means over those that ended well), ``peak_mb`` (largest)
    cost: pd.DataFrame
    failures: pd.DataFrame  # a row a failed cell: method, fold, seed, status, reason
    beside: pd.DataFrame  # means of the metrics that people read beside a leading error, a row a method
    card: Card | None = None  # what is known of the dataset, where it has a card
    unit: str = ""  # of the measured values, from the card
    censored: float = 0.0  # share of them that stand at a limit of the assay, from the card
    reference: str = ""  # the row that every other method is held against, or empty
    against: str = THE_FOREST  # what pages call it
    quoted: tuple[Quoted, ...] = ()  # numbers from papers: shown in grey, never ranked
    ceilings: tuple[Ceiling, ...] = ()  # what the labels' noise allows, as far as it is known
    errors: pd.DataFrame | None = None  # of one split, the bootstrap errors by which its methods are tested
    primary: bool = False  # whether it leads: the summary over datasets counts this metric of these targets
    # whether no other board leads on this dataset and split; one with numbers and classes has two that do
    alone: bool = True
    notes: tuple[str, ...] = ()  # what else a reader should know
    entered: Mapping[str, str] = field(default_factory=dict)  # how the rows that others submitted came about
    positions: Mapping[str, str] = field(default_factory=dict)  # where methods have positions of atoms from, by method
    rows: RowCount = field(default_factory=RowCount)  # the dataset's rows, and those that no method could use
    sides: Mapping[str, Sequence[str]] = field(default_factory=dict)  # of pairs, the rows that read one side alone

    @property
    def side_sentences(self) -> list[str]:
        """Of a board of pairs, whether its models did better than the rows of one side alone."""
        return side_sentences(self.ranking, self.sides, TRIVIAL)

    @property
    def place(self) -> tuple[str, str, str]:
        """Dataset, split and metric."""
        return self.dataset, self.split, self.metric

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

    @cached_property
    def leaders(self) -> list[str]:
        """The methods of rank 1, down to the last that is better than the mean label where that is ranked."""
        first = [str(name) for name in self.ranking.table.index[self.ranking.table["rank"] == 1]]
        while TRIVIAL in self.ranking.ranked and first and self.ranking.verdict(first[-1], TRIVIAL) != "better":
            first.pop()
        return first

    @property
    def methods(self) -> list[str]:
        """All methods, ranked ones first."""
        return [str(name) for name in self.ranking.table.index]

    def against_reference(self, method: str) -> str:
        """``better``, ``worse``, ``equivalent`` or ``undecided``; empty where the two were not tested."""
        return self.ranking.verdict(method, self.reference)

    def tested_by(self, errors: pd.DataFrame | None) -> Board:
        """The board of one split, its methods tested by the standard errors of their differences, where there are."""
        if errors is None:
            return self
        old, of = self.ranking, self.scores
        how = {"margin": old.margin, "why": of.why, "errors": errors}
        ranking = rank_methods(of.folds, old.higher_is_better, test_over_train=old.test_over_train, **how)
        return replace(self, ranking=ranking, errors=errors)

    def to_frame(self) -> pd.DataFrame:
        """A row a method: the ranking's table, the difference from the first with its interval, cost, failures.

        Columns beside those of ``Ranking.table``: ``to_best``, ``to_best_low``, ``to_best_high``, ``reference``
        (against the reference), ``cpu_minutes``, ``seconds``, ``peak_mb``, ``failures`` (cells) and ``note`` (why it
        has no rank), ``leads`` (whether it is of ``leaders``); of a leading error of numbers ``r2`` and ``spearman``,
        and of logarithms ``fold_error``, ten to the power of the MAE.
        """
        return self._frame.copy()

    @cached_property
    def _frame(self) -> pd.DataFrame:
        ranking = self.ranking
        first = ranking.pairs[ranking.pairs["a"] == next(iter(ranking.ranked), "")].set_index("b")
        steps = -first[["difference", "high", "low"]].astype(float)
        steps.columns = pd.Index(["to_best", "to_best_low", "to_best_high"])
        out = ranking.table.join(steps).join(self.cost[["cpu_minutes", "seconds", "peak_mb"]])
        out["failures"] = self.failures.groupby("method").size().reindex(out.index).fillna(0).astype(int)
        out["reference"] = [self.against_reference(str(name)) for name in out.index]
        out = out.join(self.beside)
        if "mae" in out and self.unit.startswith(LOGARITHMS):
            out["fold_error"] = 10.0 ** out["mae"]
        out["leads"] = out.index.isin(self.leaders)
        out["note"] = [ranking.left_out.get(str(name), "") for name in out.index]
        return out

    def __repr__(self) -> str:
        shown = self.to_frame()[SHOWN].to_string(float_format="{:.4g}".format, na_rep="-")
        return "\n".join([*self._about(), shown])

    def _repr_html_(self) -> str:
        shown = self.to_frame()[SHOWN].to_html(float_format="{:.4g}".format, na_rep="-", border=0)
        return f"<p>{'<br>'.join(map(escape, self._about()))}</p>{shown}"

    def _about(self) -> list[str]:
        """The lines above the table: the outcome, rows, notes, and why a method has no rank."""
        head = f"Board {self.name}, {self.split}, {self.metric}: {self.sentence}"
        unranked = (f"{name} is not ranked: {reason}" for name, reason in self.ranking.left_out.items())
        return [text for text in (head, *self.side_sentences, str(self.rows), *self.notes, *unranked) if text]

    @property
    def sentence(self) -> str:
        """Who leads, in words."""
        ranking = self.ranking
        ranked = ranking.ranked
        if not ranked:
            return "no method has all folds"
        over, first = "on one split" if ranking.n_folds == 1 else f"over {ranking.n_folds} folds", self.leaders
        if len(ranked) == 1:
            return f"{ranked[0]} is the only method ranked, {over}"
        if not self.tested:
            return f"{ranked[0]} has the best score of {len(ranked)} methods; one fold cannot tell which are better"
        if not first:
            return f"{ranked[0]} has the best score; {over} none of rank 1 is told from the mean label"
        others = int((ranking.table["rank"] == 1).sum()) - len(first)
        words = f"; {count(others, 'more method')} of rank 1 not told from the mean label" if others else ""
        if len(first) == 1:
            return f"{first[0]} leads{'' if others else ' alone'}, {over}{words}"
        return f"{', '.join(first[:-1])} and {first[-1]} share the lead, {over}{words}"


def make_boards(
    scores: pd.DataFrame,
    recipe: BenchRecipe | None = None,
    *,
    primary: Mapping[str, str | Sequence[str]] | None = None,
    rows: Mapping[str, RowCount] | None = None,
) -> list[Board]:
    """Turn scores into boards, one a dataset, edition, split and metric, in the frame's order.

    A fold's score of a method is the mean over its seeds, then over the tasks that every ranked method has in that
    fold; the tasks that were left out are named. A method with a failed cell, or with predictions of fewer than 99%
    of the rows that another method predicted in a fold, is shown and not ranked.

    Args:
        scores: the frame of ``score_records``.
        recipe: what was asked for: methods that have no cell at all, the reference, quoted numbers, and the
            datasets whose cards say the unit and the smallest difference that matters.
        primary: dataset -> the metrics that count in the summary; by default the first that each target has.
        rows: dataset -> its rows, and those that no method could use.

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
    scores = scores[scores["metric"].astype(str) != ""]  # a dataset that was refused has no board
    check_hashes(scores)
    asked = (recipe.method, recipe.split, recipe.quoted, recipe.table) if recipe is not None else ((), (), (), ())
    methods, splits, quoted, tables = asked
    named = recipe.reference if recipe is not None else ""
    references = [named] if named else [method.row for method in methods if method.name == FOREST[0]] or FOREST
    boards = []
    for (dataset, edition, split), here in scores.groupby(PLACE, sort=False):
        skipped = [m.row for m in methods if m.skips(str(dataset), str(split))]
        expected = [m.row for m in methods if m.row not in skipped]
        sides = {m.side: [other.row for other in methods if other.side == m.side] for m in methods if m.side}
        k = here["fold"].nunique()
        ratio = next((s.test_over_train for s in splits if s.name == split), 1 / (k - 1 or 4))
        known = None
        with suppress(MolgraphError):  # a table of one's own has no card
            known = card(dataset) if recipe is not None else None
        leading = _leading(here, np.atleast_1d((primary or {}).get(dataset, [])))
        margins = {table.metric or leading[0]: table.margin for table in tables if table.name == dataset}
        margins |= {known.metric: known.margin.value} if known is not None and known.margin is not None else {}
        parts = {str(metric): part for metric, part in here.groupby("metric", sort=False)}
        by_metric = {metric: fold_scores(part, expected) for metric, part in parts.items()}
        means = pd.DataFrame({metric: result.folds.mean() for metric, result in by_metric.items()})
        cost, failures = _costs(here)
        for metric, result in by_metric.items():
            higher = bool(parts[metric]["higher_is_better"].iloc[0])
            groups = [g for g in (known.target if known is not None else ()) if {*g.names} & {*result.tasks}]
            others = ["r2", "spearman", "mae"] if metric in ERRORS and metric in leading else []
            board = Board(
                dataset,
                edition,
                split,
                metric,
                rank_methods(result.folds, higher, test_over_train=ratio, margin=margins.get(metric), why=result.why),
                result,
                cost,
                failures,
                means[[name for name in others if name in means]],
                card=known,
                unit=groups[0].unit if len(groups) == 1 else "",
                censored=groups[0].censored if len(groups) == 1 else 0.0,
                reference=next((name for name in references if name in result.folds), ""),
                against=named or THE_FOREST,
                quoted=tuple(q for q in quoted if (q.dataset, q.split, q.metric) == (dataset, split, metric)),
                primary=metric in leading,
                alone=len(leading) == 1,
                notes=(*result.notes, *[f"Left out by the recipe: {', '.join(skipped)}."] * bool(skipped)),
                rows=(rows or {}).get(dataset, RowCount()),
                sides=sides,
            )
            boards.append(board)
    return boards


def _leading(scores: pd.DataFrame, asked: Iterable[str]) -> list[str]:
    """One metric for each kind of target of a dataset: the first asked for that judges it, or its own first."""
    metrics = scores.groupby("target", sort=False)["metric"].unique()
    return list(dict.fromkeys(next((name for name in asked if name in names), str(names[0])) for names in metrics))


def _costs(part: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Cost by method, and failed cells, from the rows of one metric."""
    cells = part.drop_duplicates(CELL)
    well = cells["status"] == "ok"
    good = cells[well].groupby("method", sort=False)
    cost = good.agg(cpu_minutes=("cpu_seconds", "mean"), seconds=("seconds", "mean"), peak_mb=("peak_mb", "max"))
    cost = cost.reindex(cells["method"].unique())
    cost["cpu_minutes"] /= 60
    named = "r" + cells["repeat"].astype(str) + "-f" + cells["fold"].astype(str)
    failures = cells.assign(fold=named).loc[~well, ["method", "fold", "seed", "status", "reason"]]
    return cost, failures.reset_index(drop=True)
