"""Judge the stored draws of a benchmark's generators against the test molecules, beside the control rows."""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from molgraph.base.paths import atomic_write
from molgraph.base.version import __version__
from molgraph.data.datasets import load_dataset
from molgraph.data.splits import Split
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import Cell, file_of_split
from molgraph.evaluate.benchmark.draws import given_molecules, read_draws
from molgraph.evaluate.benchmark.plan import WORK
from molgraph.evaluate.benchmark.run_folder import Record, Records
from molgraph.evaluate.generation.generation_report import Row
from molgraph.evaluate.generation.judge import Draws, judge_samples, reference_sample
from molgraph.evaluate.generation.measures import MEASURES
from molgraph.evaluate.generation.sample import Sample
from molgraph.evaluate.statistics import Interval

TARGET = "molecules"  # of the frame of scores
FIRST = "frechet"  # the metric that leads the frame
Part = tuple[str, str, int, int]  # dataset, split, repeat, fold
MEASURED = f"generation-1 molgraph {__version__}"  # what judged; other values of it are judged anew


def score_generators(records: Records, done: Sequence[Record]) -> Iterator[tuple]:
    """Rows of the frame of scores: one a cell and metric; a cell that failed has them too, without a value."""
    judged = {cell: row for cell, row in judge_cells(records, done).items() if isinstance(cell, Cell)}
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


def judge_cells(records: Records, done: Sequence[Record]) -> dict[Cell | tuple[Part, str], Row]:
    """The row of each cell that ended well, and the control rows of each part, by part and name.

    What was judged is kept in the folder, under the sha256 of the draws and all else that it depends on.
    """
    parts: dict[Part, list[Record]] = defaultdict(list)
    for record in done:
        if record.manifest["status"] == "ok":
            cell = record.cell
            parts[cell.dataset, cell.split, cell.repeat, cell.fold].append(record)
    found: dict[Cell | tuple[Part, str], Row] = {}
    for part, members in parts.items():
        judge = _Judge(records, part)
        found |= {record.cell: judge.sample(record) for record in members}
        found |= {(part, row.name): row for row in judge.controls()}
    return found


class _Judge:
    """Judges the cells of one fold; its molecules are described when the first of them was not judged before."""

    def __init__(self, records: Records, part: Part) -> None:
        self.records, self.part, self.how = records, part, records.recipe.generation
        problem = records.problems[part[0]]
        self.base = [MEASURED, problem.data_hash, problem.split_hash[part[1:]], self.how.model_dump()]

    @cached_property
    def molecules(self) -> tuple[list[str], Sample]:
        """Those that were given to the generators, and the test ones."""
        path = self.records.problems[self.part[0]].table_file(self.records.out)
        table = read_handed(path) if path.is_file() else load_dataset(self.part[0]).table
        split = Split.load(file_of_split(self.records.out, *self.part))
        train = given_molecules(table.take(split.train), self.how.most_train)
        return train.smiles.tolist(), reference_sample(table.take(split.test).smiles.tolist())

    def sample(self, record: Record) -> Row:
        """The row of one cell."""
        stated = str(record.manifest["predictions_sha256"])
        draws = read_draws(self.records.path(record.cell), stated)
        return self._kept(stated, lambda: self._judged({record.cell.method: draws}))[0]

    def controls(self) -> list[Row]:
        """The rows of the trivial generators."""
        return self._kept("controls", lambda: self._judged({"": Draws(["C"] * self.how.draws)}, controls=True)[1:])

    def _judged(self, samples: dict[str, Draws], controls: bool = False) -> list[Row]:
        train, reference = self.molecules
        judged = judge_samples(
            samples,
            reference=reference,
            train=train,
            n=self.how.draws,
            embedding=self.how.embedding,
            controls=controls,
        )
        return list(judged.rows)

    def _kept(self, what: str, make: Callable[[], list[Row]]) -> list[Row]:
        digest = hashlib.sha256(json.dumps([*self.base, what], sort_keys=True).encode()).hexdigest()
        path = self.records.out / WORK / "judged" / f"{digest}.json"
        if (rows := _read(path)) is None:
            rows = make()
            _write(path, rows)
        return rows


def _write(path: Path, rows: Sequence[Row]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    plain = [[row.name, row.kind, row.n, {name: [*value] for name, value in row.values.items()}] for row in rows]
    with atomic_write(path, "w") as file:
        json.dump(plain, file)


def _read(path: Path) -> list[Row] | None:
    """Rows that were judged before; None where there are none, or the file is damaged."""
    try:
        raw = json.loads(path.read_text(encoding="utf-8"))
        return [
            Row(name, kind, n, {key: Interval(*map(float, value)) for key, value in values.items()})
            for name, kind, n, values in raw
        ]
    except (OSError, ValueError, TypeError, AttributeError):
        return None
