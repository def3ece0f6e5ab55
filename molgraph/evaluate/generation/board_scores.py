"""Judge the stored draws of a benchmark's generators against the test molecules, beside the control rows."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import NamedTuple

from molgraph.base.paths import atomic_write
from molgraph.base.version import __version__
from molgraph.data.splits import Split
from molgraph.evaluate.benchmark.cells import Cell, file_of_split
from molgraph.evaluate.benchmark.plan import WORK
from molgraph.evaluate.benchmark.run_folder import Record, Records
from molgraph.evaluate.generation.draws import given_molecules, read_draws
from molgraph.evaluate.generation.generation_report import Row
from molgraph.evaluate.generation.judge import Draws, judge_samples, reference_sample
from molgraph.evaluate.generation.measures import MEASURES
from molgraph.evaluate.generation.sample import Sample
from molgraph.evaluate.statistics import Interval

TARGET = "molecules"  # of the frame of scores
FIRST = "frechet"  # the metric that leads the frame
Part = tuple[str, str, int, int]  # dataset, split, repeat, fold
MEASURED = f"generation-1 molgraph {__version__}"  # what judged; other values of it are judged anew


class Judged(NamedTuple):
    """A cell that ended well and the measures of what it drew; a control of its fold has no cell."""

    part: Part
    cell: Cell | None
    row: Row


def score_generators(records: Records, done: Sequence[Record]) -> Iterator[tuple]:
    """Rows of the frame of scores: one a cell and metric; a cell that failed has them too, without a value."""
    judged = {each.cell: each.row for each in judge_cells(records, done)}
    ordered = sorted(MEASURES, key=lambda each: each.name != FIRST)
    for cell, manifest in done:
        problem, row = records.problems[cell.dataset], judged.get(cell)
        head = (cell.dataset, problem.edition, manifest["data_hash"], cell.split, manifest["split_hash"], cell.repeat,
                cell.fold, cell.seed, cell.method)  # fmt: skip
        cost = (manifest["seconds"]["total"], manifest["cpu_seconds"], manifest["peak_mb"])
        for each in ordered:
            if row is None or each.name in row.values:
                value, n = (math.nan, 0) if row is None else (row.values[each.name].value, row.n)
                ended = (manifest["status"], manifest["reason"])
                yield (*head, TARGET, each.name, value, n, n, "", *ended, *cost, bool(each.higher))


def judge_cells(records: Records, done: Sequence[Record]) -> list[Judged]:
    """Judge each cell that ended well, then the controls of its fold.

    What was judged is kept in the folder, under the sha256 of the draws and all else that it depends on.
    """
    folds: dict[Part, list[Record]] = defaultdict(list)
    for record in done:
        if record.manifest["status"] == "ok":
            cell = record.cell
            folds[cell.dataset, cell.split, cell.repeat, cell.fold].append(record)
    results = []
    for part, members in folds.items():
        judge = _Judge(records, part)
        for cell, manifest in members:
            stated = str(manifest["predictions_sha256"])
            (row,) = judge.rows(stated, cell.method, read_draws(records.path(cell), stated))
            results.append(Judged(part, cell, row))
        rows = judge.rows("controls", "", Draws(["C"] * judge.how.draws), controls=True)
        results += [Judged(part, None, row) for row in rows if row.kind == "control"]
    return results


class _Judge:
    """Judges the draws of one fold; its molecules are described when the first of them was not judged before."""

    def __init__(self, records: Records, part: Part) -> None:
        self.records, self.part, self.how = records, part, records.recipe.generation
        self.problem = records.problems[part[0]]

    @cached_property
    def molecules(self) -> tuple[list[str], Sample]:
        """Those that were given to the generators, and the test ones."""
        table = self.records.table(self.part[0])
        split = Split.load(file_of_split(self.records.out, *self.part))
        train = given_molecules(table.take(split.train), self.how.most_train)
        return train.smiles.tolist(), reference_sample(table.take(split.test).smiles.tolist())

    def rows(self, key: str, name: str, draws: Draws, controls: bool = False) -> list[Row]:
        """Judge draws, or read what was judged of the same ``key`` before; a file that is damaged is made anew."""
        known = [MEASURED, self.problem.data_hash, self.problem.split_hash[self.part[1:]], self.how.model_dump(), key]
        digest = hashlib.sha256(json.dumps(known, sort_keys=True).encode()).hexdigest()
        path = self.records.out / WORK / "judged" / f"{digest}.json"
        try:
            return [
                Row(name, kind, n, {measure: Interval(*map(float, value)) for measure, value in values.items()})
                for name, kind, n, values in json.loads(path.read_text(encoding="utf-8"))
            ]
        except (OSError, ValueError, TypeError, AttributeError):
            pass
        train, reference = self.molecules
        how, asked = self.how, {name: draws}
        judged = judge_samples(
            asked, reference=reference, train=train, n=how.draws, embedding=how.embedding, controls=controls
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path, "w") as file:
            json.dump(
                [[row.name, row.kind, row.n, {k: [*v] for k, v in row.values.items()}] for row in judged.rows], file
            )
        return list(judged.rows)
