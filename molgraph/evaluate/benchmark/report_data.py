"""Collect everything that a benchmark's report shows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.errors import DataError, MolgraphError
from molgraph.base.seeds import generator
from molgraph.chem.identity import identities_of
from molgraph.data.card_parts import Margin
from molgraph.data.cards import Card, card
from molgraph.data.replicates import replicate_sd
from molgraph.evaluate.benchmark.board import Board, Ceiling, make_boards
from molgraph.evaluate.benchmark.board_overall import Overall, summarise
from molgraph.evaluate.benchmark.bootstrap import bootstrap_errors
from molgraph.evaluate.benchmark.recipe import BenchRecipe, Quoted
from molgraph.evaluate.benchmark.report_facts import entered_rows, facts_of
from molgraph.evaluate.benchmark.report_slices import Slices, slice_records
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.unused_rows import RowCount
from molgraph.evaluate.metrics import evaluate_metric, get_metric

LEAST_REPLICATES = 10  # degrees of freedom that the replicates' noise has to stand on
NOISY = ("rmse", "mae", "r2", "spearman", "kendall")


@dataclass(frozen=True)
class BenchReport:
    """All that a benchmark's report shows."""

    title: str  # heading
    boards: tuple[Board, ...]  # one a dataset, split and metric
    slices: Mapping[tuple[str, str], Slices] = field(default_factory=dict)  # (dataset, split) -> where methods err
    cards: Mapping[str, Card] = field(default_factory=dict)  # dataset -> its card, where it has one
    recipe: str = ""  # the recipe, as TOML
    recipe_name: str = "recipe"  # its file's stem
    facts: Mapping[str, str] = field(default_factory=dict)  # what a repeat needs: name -> text
    done: int = 0  # cells
    wanted: int = 0  # cells
    failed: Mapping[str, int] = field(default_factory=dict)  # status -> cells
    refused: Mapping[str, str] = field(default_factory=dict)  # dataset -> why
    # (dataset, split) -> why the split cannot divide it
    refused_splits: Mapping[tuple[str, str], str] = field(default_factory=dict)
    # (dataset, split, metric) -> bootstrap errors of the methods' differences, of boards of one split
    errors: Mapping[tuple[str, str, str], pd.DataFrame] = field(default_factory=dict)
    unplaced: tuple[Quoted, ...] = ()  # quoted numbers that no board matches

    @cached_property
    def overall(self) -> list[Overall]:
        """A summary a split."""
        return summarise(self.boards)

    @property
    def methods(self) -> list[str]:
        """All methods, in the order of the first summary."""
        named = [str(name) for each in self.overall for name in each.table.index]
        return list(dict.fromkeys([*named, *(name for board in self.boards for name in board.methods)]))

    def sections(self) -> list[list[Board]]:
        """Each primary board, followed by those of other metrics for its targets."""
        leaders = [board for board in self.boards if board.primary]
        others: dict[int, list[Board]] = {id(board): [] for board in leaders}
        for board in self.boards:
            peers = [b for b in leaders if (b.name, b.split) == (board.name, board.split)]
            if not board.primary:
                nearest = max(peers, key=lambda b: len({*board.scores.tasks} & {*b.scores.tasks}))
                others[id(nearest)].append(board)
        return [[board, *others[id(board)]] for board in leaders]

    @property
    def refusals(self) -> list[str]:
        """What was refused, a sentence each."""
        of_split = [f"{name} was refused under the split {s}: {why}" for (name, s), why in self.refused_splits.items()]
        return [*(f"{name} was refused: {why}" for name, why in self.refused.items()), *of_split]

    @property
    def commands(self) -> list[str]:
        """How to do it again."""
        name = self.recipe_name
        run = f"molgraph bench run {name}.toml -o bench/{name}"
        return [run, f"molgraph bench report bench/{name} --leaderboard LEADERBOARD.md"]


def gather(source: str | Path | Records, *, scores: pd.DataFrame | None = None, slices: bool = True) -> BenchReport:
    """Read a benchmark's folder, score what stands in it, rank, and look where methods err."""
    records = source if isinstance(source, Records) else read_records(source)
    if scores is None:
        scores = score_records(records)
    if not records.done:
        whys = dict.fromkeys([*records.refused.values(), *records.refused_splits.values()])
        raise DataError(
            "; ".join([f"{records.out} holds no cell that was computed", *whys]),
            hint="molgraph bench run goes on where it was",
        )
    recipe, problems = records.recipe, records.problems
    leading = {name: [m[0] for m in p.metrics.values()] for name, p in problems.items() if p.metrics}
    rows = {name: RowCount(problem.rows, problem.left_out) for name, problem in problems.items()}
    entered = entered_rows(records)
    boards = [
        replace(b, notes=(*b.notes, *(words for (name, at), words in entered.items() if at == b.dataset)))
        for b in boards_of(recipe, scores, leading, rows)
    ]
    single = [b for b in boards if b.primary and b.ranking.n_folds == 1] if not recipe.generates else []
    errors = {
        (b.dataset, b.split, b.metric): bootstrap_errors(records, b) for b in progress.track(single, label="bootstrap")
    }
    found: dict[tuple[str, str], Slices] = {}
    places = list(dict.fromkeys((board.dataset, board.split) for board in boards))
    for dataset, split in progress.track(places, label="slices") if slices else ():
        made = slice_records(records, problems[dataset], split)
        if made is not None:
            found[dataset, split] = made
    cards = {name: known for name in problems if (known := _card(name)) is not None}
    ceilings = {
        (b.dataset, b.split, b.metric): _ceilings(b, cards.get(b.dataset), found.get((b.dataset, b.split)))
        for b in boards
    }
    status = Counter(str(record.manifest["status"]) for record in records.done)
    return report_of(
        recipe,
        boards,
        ceilings,
        errors={place: each for place, each in errors.items() if each is not None},
        slices=found,
        cards=cards,
        recipe_name=recipe.name,
        facts=facts_of(records),
        done=len(records.done),
        wanted=records.wanted,
        failed={name: n for name, n in status.items() if name != "ok"},
        refused=records.refused,
        refused_splits=records.refused_splits,
    )


def report_of(
    recipe: BenchRecipe,
    boards: Sequence[Board],
    ceilings: Mapping[tuple[str, str, str], Sequence[Ceiling]],
    errors: Mapping[tuple[str, str, str], pd.DataFrame],
    **known: Any,
) -> BenchReport:
    """The report of a recipe's boards, with ceilings and bootstrap errors by dataset, split and metric."""
    made = tuple(replace(b, ceilings=tuple(ceilings.get((b.dataset, b.split, b.metric), ()))) for b in boards)
    tested = (errors.get((b.dataset, b.split, b.metric)) for b in made)
    made = tuple(b if each is None else b.tested_by(each) for b, each in zip(made, tested, strict=True))
    placed = {(b.dataset, b.split, b.metric) for b in boards}
    unplaced = tuple(q for q in recipe.quoted if (q.dataset, q.split, q.metric) not in placed)
    title = recipe.title or known["recipe_name"]
    return BenchReport(title, made, recipe=recipe.to_toml(), unplaced=unplaced, errors=errors, **known)


def boards_of(
    recipe: BenchRecipe,
    scores: pd.DataFrame,
    leading: Mapping[str, str | Sequence[str]],
    rows: Mapping[str, RowCount],
) -> list[Board]:
    """The boards of a recipe's scores; ``leading`` are the metrics that count in the summary, by dataset."""
    labels = {method.name: method.row for method in reversed(recipe.method)}
    boards = make_boards(
        scores,
        primary=leading,
        reference=labels.get("random_forest"),
        quoted=recipe.quoted,
        shares={s.name: s.fractions[2] / (s.fractions[0] + s.fractions[1]) for s in recipe.split if s.folds is None},
        margins=margins_of(scores["dataset"].astype(str).unique()),
        expected={
            name: {m.row: "left out by the recipe" if name in m.skip else "not run" for m in recipe.method}
            for name in recipe.datasets
        },
    )
    cards = {board.dataset: _card(board.dataset) for board in boards}
    return [
        replace(board, rows=rows.get(board.dataset, board.rows), **_measured(cards[board.dataset], board))
        for board in boards
    ]


def _measured(known: Card | None, board: Board) -> dict[str, Any]:
    """What a card says of a board's measured values: unit and censored share, where its tasks have one of each."""
    groups = [] if known is None else [g for g in known.target if set(g.names) & set(board.scores.tasks)]
    if len(groups) != 1:
        return {}
    return {"unit": groups[0].unit, "censored": groups[0].censored}


def margins_of(datasets: Iterable[str]) -> dict[tuple[str, str], Margin]:
    """(dataset, metric) -> the smallest difference that matters, of the datasets whose card says one."""
    found = {name: known for name in datasets if (known := _card(name)) is not None}
    return {(n, c.metric): c.margin for n, c in found.items() if c.margin is not None and c.margin.value is not None}


def _card(name: str) -> Card | None:
    try:
        return card(name)
    except MolgraphError:  # a table of one's own has none
        return None


def _ceilings(board: Board, known: Card | None, slices: Slices | None) -> list[Ceiling]:
    """What the labels' noise allows, from the set's own replicates and from its card."""
    if board.metric not in NOISY or slices is None or len(slices.targets) != 1 or not slices.tested:
        return []
    tested = max(slices.tested.values(), key=lambda each: len(each.rows))
    y, folds = tested.y[:, 0], max(sum(name.startswith("r0-") for name in board.split_hashes), 1)
    noise: list[tuple[float, str]] = []
    if len(slices.smiles):
        kinds = identities_of(slices.smiles[tested.rows].tolist())
        sd, df = replicate_sd([each.written or f"row {i}" for i, each in enumerate(kinds)], y)
        if df >= LEAST_REPLICATES:
            noise.append((sd, f"replicates in the set ({df} degrees of freedom)"))
    if known is not None and known.noise.sd is not None:
        noise.append((known.noise.sd, known.noise.source or "the set's card"))
    made = [Ceiling(noise_ceiling(y, sd, board.metric, rows=len(y) // folds), sd, source) for sd, source in noise]
    return [c for c in made if np.isfinite(c.value)]


def noise_ceiling(y: np.ndarray, sd: float, metric: str, *, rows: int = 0, n: int = 200, seed: int = 0) -> float:
    """The mean score of a model that knows every true value, judged by labels with noise (Brown et al. 2009).

    RMSE and MAE are those of the noise itself. For the others (Brown, Muchmore and Hajduk 2009, Drug Discov. Today
    14:420) true values are the measured ones, drawn to their mean until noise restores the measured spread, and new
    labels are drawn from them ``n`` times.

    Args:
        y: measured values, float [molecules].
        sd: standard deviation of one measurement, in y's unit.
        metric: one of ``NOISY``; another has no ceiling: NaN, as without noise, or where all that y has is noise.
        rows: test rows of a fold, drawn each time; 0 for all.

    Example:
        >>> noise_ceiling(np.arange(9.0), 0.6, "rmse")
        0.6
    """
    y = y[np.isfinite(y)]
    if metric not in NOISY or not np.isfinite(sd) or sd <= 0 or len(y) < 3:
        return float("nan")
    if metric in ("rmse", "mae"):
        return float(sd * (1.0 if metric == "rmse" else np.sqrt(2 / np.pi)))
    kept = 1 - sd**2 / y.var(ddof=1)
    if kept <= 0:
        return float("nan")
    true = y.mean() + (y - y.mean()) * np.sqrt(kept)
    rng, judge = generator(seed, "noise ceiling"), get_metric(metric)
    size = min(rows or len(true), len(true))
    found = []
    for _ in range(n):
        part = rng.choice(true, size, replace=False)
        found.append(evaluate_metric(judge, part + rng.normal(0, sd, size), part)[0])
    return float(np.mean(found))
