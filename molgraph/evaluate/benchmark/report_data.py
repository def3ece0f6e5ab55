"""Collect everything that a benchmark's report shows."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.errors import DataError, MolgraphError
from molgraph.chem.identity import identities_of
from molgraph.data.cards import Card, card
from molgraph.data.replicates import replicate_sd
from molgraph.evaluate.benchmark.board import Board, Ceiling, make_boards
from molgraph.evaluate.benchmark.board_noise import NOISY, noise_ceiling
from molgraph.evaluate.benchmark.board_overall import Overall, summarise
from molgraph.evaluate.benchmark.recipe import BenchRecipe, Quoted
from molgraph.evaluate.benchmark.report_slices import Slices, slice_records
from molgraph.evaluate.benchmark.run_folder import Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.row_count import RowCount

LEAST_REPLICATES = 10  # degrees of freedom that the replicates' noise has to stand on


@dataclass(frozen=True)
class BenchReport:
    """All that a benchmark's report shows.

    Args:
        title: heading.
        boards: one a dataset, split and metric.
        overall: a summary a split.
        slices: (dataset, split) -> where methods err.
        cards: dataset -> its card, where it has one.
        recipe: the recipe, as TOML.
        recipe_name: its file's stem.
        facts: what a repeat needs: name -> text.
        done, wanted: cells.
        failed: status -> cells.
        refused: dataset -> why.
        refused_splits: (dataset, split) -> why the split cannot divide it.
        unplaced: quoted numbers that no board matches.
    """

    title: str
    boards: tuple[Board, ...]
    overall: tuple[Overall, ...]
    slices: Mapping[tuple[str, str], Slices] = field(default_factory=dict)
    cards: Mapping[str, Card] = field(default_factory=dict)
    recipe: str = ""
    recipe_name: str = "recipe"
    facts: Mapping[str, str] = field(default_factory=dict)
    done: int = 0
    wanted: int = 0
    failed: Mapping[str, int] = field(default_factory=dict)
    refused: Mapping[str, str] = field(default_factory=dict)
    refused_splits: Mapping[tuple[str, str], str] = field(default_factory=dict)
    unplaced: tuple[Quoted, ...] = ()

    @property
    def methods(self) -> list[str]:
        """All methods, in the order of the first summary."""
        named = [str(name) for each in self.overall for name in each.table.index]
        return list(dict.fromkeys([*named, *(name for board in self.boards for name in board.methods)]))

    def sections(self) -> list[list[Board]]:
        """Each primary board, followed by those of other metrics for its targets."""
        return [[first, *self._others(first)] for first in self.boards if first.primary]

    def _others(self, first: Board) -> list[Board]:
        peers = [b for b in self.boards if (b.name, b.split) == (first.name, first.split)]
        leaders, own = [b for b in peers if b.primary], []
        for board in peers:
            shared = [len({*board.scores.tasks} & {*leader.scores.tasks}) for leader in leaders]
            own += [board] if not board.primary and leaders[int(np.argmax(shared))] is first else []
        return own

    @property
    def refusals(self) -> list[str]:
        """What was refused, a sentence each."""
        of_split = [f"{name} was refused under the split {s}: {why}" for (name, s), why in self.refused_splits.items()]
        return [*(f"{name} was refused: {why}" for name, why in self.refused.items()), *of_split]


def gather(source: str | Path | Records, *, scores: pd.DataFrame | None = None, slices: bool = True) -> BenchReport:
    """Read a benchmark's folder, score what stands in it, rank, and look where methods err.

    Args:
        source: the folder, or its records.
        scores: the frame of ``score_records``; computed where None.
        slices: whether to read predictions once more for errors against distance and the worst molecules.

    Raises:
        StorageError: it is no such folder.
        DataError: nothing was computed yet, or rows of differing hash would stand in one table.
    """
    records = source if isinstance(source, Records) else read_records(source)
    if scores is None:
        scores = score_records(records)
    if not records.done:
        whys = dict.fromkeys([*records.refused.values(), *records.refused_splits.values()])
        raise DataError(
            "; ".join([f"{records.out} holds no cell that was computed", *whys]),
            hint="molgraph bench run goes on where it was",
        )
    recipe = records.recipe
    leading = {name: [m[0] for m in p.metrics.values()] for name, p in records.problems.items() if p.metrics}
    rows = {name: RowCount(problem.rows, problem.left_out) for name, problem in records.problems.items()}
    boards = boards_of(recipe, scores, leading, rows)
    places = list(dict.fromkeys((board.dataset, board.split) for board in boards))
    found: dict[tuple[str, str], Slices] = {}
    for dataset, split in progress.track(places, label="slices") if slices else ():
        made = slice_records(records, records.problems[dataset], split)
        if made is not None:
            found[dataset, split] = made
    cards = {name: known for name in records.problems if (known := _card(name)) is not None}
    boards = [_with_ceilings(b, cards.get(b.dataset), found.get((b.dataset, b.split))) for b in boards]
    placed = {(b.dataset, b.split, b.metric) for b in boards}
    status = Counter(str(record.manifest["status"]) for record in records.done)
    return BenchReport(
        title=recipe.title or recipe.name,
        boards=tuple(boards),
        overall=tuple(summarise(boards)),
        slices=found,
        cards=cards,
        recipe=recipe.to_toml(),
        recipe_name=recipe.name,
        facts=_facts(records),
        done=len(records.done),
        wanted=records.wanted,
        failed={name: n for name, n in status.items() if name != "ok"},
        refused=records.refused,
        refused_splits=records.refused_splits,
        unplaced=tuple(q for q in recipe.quoted if (q.dataset, q.split, q.metric) not in placed),
    )


def boards_of(
    recipe: BenchRecipe,
    scores: pd.DataFrame,
    leading: Mapping[str, str | Sequence[str]],
    rows: Mapping[str, RowCount],
) -> list[Board]:
    """The boards of a recipe's scores.

    Args:
        recipe: the benchmark.
        scores: the frame of ``score_records``.
        leading: dataset -> the metrics that count in the summary.
        rows: dataset -> its rows.
    """
    labels = {method.name: method.row for method in reversed(recipe.method)}
    shares = {s.name: s.fractions[2] / (s.fractions[0] + s.fractions[1]) for s in recipe.split if s.folds is None}
    boards = make_boards(
        scores,
        primary=leading,
        reference=labels.get("random_forest"),
        quoted=[q.model_dump() for q in recipe.quoted],
        shares=shares,
        expected={name: _expected(recipe, name) for name in recipe.datasets},
    )
    return [replace(board, rows=rows.get(board.dataset, board.rows)) for board in boards]


def _expected(recipe: BenchRecipe, dataset: str) -> dict[str, str]:
    """What to say of each method that has no cell on a dataset."""
    return {m.row: "left out by the recipe" if dataset in m.skip else "not run" for m in recipe.method}


def _card(name: str) -> Card | None:
    try:
        return card(name)
    except MolgraphError:  # a table of one's own has none
        return None


def _with_ceilings(board: Board, known: Card | None, slices: Slices | None) -> Board:
    """The board with what its labels' noise allows, from the set's own replicates and from its card."""
    if board.metric not in NOISY or slices is None or len(slices.targets) != 1 or not slices.tested:
        return board
    tested = max(slices.tested.values(), key=lambda each: len(each.rows))
    y, folds = tested.y[:, 0], max(sum(name.startswith("r0-") for name in board.split_hashes), 1)
    noise: list[tuple[float, str]] = []
    if len(slices.smiles):
        sd, df = _replicates(slices.smiles[tested.rows], y)
        if df >= LEAST_REPLICATES:
            noise.append((sd, f"replicates in the set ({df} degrees of freedom)"))
    if known is not None and known.noise.sd is not None:
        noise.append((known.noise.sd, known.noise.source or "the set's card"))
    made = [Ceiling(noise_ceiling(y, sd, board.metric, rows=len(y) // folds), sd, source) for sd, source in noise]
    return replace(board, ceilings=tuple(c for c in made if np.isfinite(c.value)))


def _replicates(smiles: np.ndarray, y: np.ndarray) -> tuple[float, int]:

    return replicate_sd([each.written or f"row {i}" for i, each in enumerate(identities_of(smiles.tolist()))], y)


def _facts(records: Records) -> dict[str, str]:
    """What a repeat needs, from the cells' manifests."""
    manifests = [record.manifest for record in records.done]
    digest = hashlib.sha256(records.recipe.to_toml().encode()).hexdigest()
    made = sorted(str(m["made"]) for m in manifests if m.get("made"))
    out = {"recipe": f"{records.recipe.name}.toml", "recipe sha256": digest}
    if made:
        out["computed"] = made[0][:10] if made[0][:10] == made[-1][:10] else f"{made[0][:10]} to {made[-1][:10]}"
    named: dict[str, list[str]] = {}
    for m in manifests:
        for name, value in dict(m.get("versions") or {}).items():
            named.setdefault(name, []).append(str(value))
    out |= {f"version of {name}": ", ".join(dict.fromkeys(values)) for name, values in named.items()}
    machines = dict.fromkeys(_machine(m.get("machine") or {}) for m in manifests)
    out["machine"] = "; ".join(text for text in machines if text)
    budgets = dict.fromkeys(str(m["budget"]) for m in manifests if m.get("budget"))
    budget = records.recipe.budget
    out["budget of a cell"] = f"{budget.seconds:g} s, {budget.memory_gb:g} GB" + "; mixed" * (len(budgets) > 1)
    cpu = sum(float(m["cpu_seconds"]) for m in manifests if m.get("cpu_seconds"))
    out["CPU time of all cells"] = f"{cpu / 3600:.1f} h" if cpu >= 3600 else f"{cpu / 60:.1f} min"
    for name, problem in records.problems.items():
        out[f"data hash of {name}"] = problem.data_hash
    return out


def _machine(machine: Mapping[str, Any]) -> str:
    return ", ".join(f"{value} cores" if key == "cores" else str(value) for key, value in machine.items() if value)
