"""Verify a benchmark's folder against its manifests, splits and datasets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.errors import MolgraphError
from molgraph.data.content import content_hash
from molgraph.data.datasets import load_dataset
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS, row_contents, split_hash
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import Cell, cell_key, file_of_split
from molgraph.evaluate.benchmark.plan import PLAN, DatasetPlan
from molgraph.evaluate.benchmark.run_folder import Predicted, Record, Records, read_records
from molgraph.evaluate.benchmark.scoring import score_records
from molgraph.evaluate.benchmark.store import read_manifest
from molgraph.evaluate.benchmark.table_parquet import read_handed
from molgraph.evaluate.benchmark.verify_scores import differences, read_stored, without_cell

Splits = dict[tuple[str, str, int, int], Split]
SHOWN = 50  # faults that are printed


@dataclass(frozen=True, repr=False)
class Verified:
    """What a check found.

    Args:
        cells: how many are as they were written: no fault is theirs, nor their scores'.
        faults: where -> what is wrong, one sentence.
        scores: the scores frame, made anew from the predictions.
        there: cells that were computed, damaged ones too.
        wanted: cells that the plans ask for; those that are not there are no fault, as a run may be unfinished.
        begun: datasets that have a plan; those without one, and without a trace of one, were not begun.
        datasets: how many the recipe names.
    """

    cells: int
    faults: tuple[tuple[str, str], ...]
    scores: pd.DataFrame
    there: int
    wanted: int
    begun: int
    datasets: int

    @property
    def ok(self) -> bool:
        """Whether there is something, and nothing is wrong."""
        return self.there > 0 and not self.faults

    def __repr__(self) -> str:
        lines = [f"{where}: {fault}" for where, fault in self.faults]
        of = "" if self.begun == self.datasets else f" of {self.begun} of {self.datasets} datasets"
        said = [f"{self.there:,} of {self.wanted:,} cells{of} are there"] if self.there < self.wanted or of else []
        said += [f"{self.cells:,} cells are as they were written, {len(self.scores):,} scores made anew"]
        if not self.there:
            said = [f"there is nothing to verify: none of {self.wanted:,} cells{of} is there"]
        return "\n".join(
            [*lines[:SHOWN], *[f"and {len(lines) - SHOWN:,} more"] * (len(lines) > SHOWN), "; ".join(said)]
        )


def verify_records(out: str | Path) -> Verified:
    """Hash data, splits and predictions once more, compare predictions' rows and measured values, score all anew.

    Args:
        out: a benchmark's folder.

    Raises:
        StorageError: it is none. DataError: a plan in it is damaged.
    """
    records = read_records(out)
    stored, faults = read_stored(records)
    faults += _gone(records, stored)
    tables: dict[str, Table] = {}
    splits: Splits = {}
    for problem in records.problems.values():
        faults += _check_problem(records, problem, tables, splits)
    there, spoilt, whole = 0, set[Cell | None](), []
    for cell in progress.track([c for p in records.problems.values() for c in p.cells], label="verifying"):
        if not cell.folder(records.out).is_dir():
            continue
        there += 1
        found, record = _look(records, cell, tables.get(cell.dataset), splits)
        faults += [(str(cell), fault) for fault in found]
        if found or _split_of(cell) not in splits:
            spoilt.add(cell)
        if record is not None and not found:
            whole.append(record)
    scores = score_records(records, whole)  # what is damaged has no scores
    if stored is not None:
        faults += without_cell(records, stored)
        for judged, where, fault in differences(records, scores, stored):
            faults.append((where, fault))
            spoilt.add(judged)
    good = sum(record.cell not in spoilt for record in whole)
    return Verified(
        good, tuple(faults), scores, there, records.wanted, len(records.problems), len(records.recipe.datasets)
    )


def _gone(records: Records, stored: pd.DataFrame | None) -> Iterator[tuple[str, str]]:
    """Datasets of the recipe that were begun, as something of them stands there, and whose plan does not."""
    scored = set() if stored is None else set(stored["dataset"])
    for name in records.recipe.datasets:
        traces = [records.out / folder / name for folder in ("cells", "splits")]
        if name not in records.problems and (name in scored or any(path.is_dir() for path in traces)):
            yield name, f"its plan is gone ({PLAN}/{name}.json): run the recipe again"


def _check_problem(
    records: Records, problem: DatasetPlan, tables: dict[str, Table], splits: Splits
) -> Iterator[tuple[str, str]]:
    """What is wrong with a dataset and its splits; those that are sound are added to ``tables`` and ``splits``."""
    name = problem.dataset
    if problem.refused:
        yield name, f"refused: {problem.refused}"
        return
    try:
        table = _table(records, problem)
    except MolgraphError as error:
        yield name, error.message
        return
    if (found := content_hash(table)) != problem.data_hash:
        yield name, f"the dataset's hash is {found}, the plan has {problem.data_hash}"
    else:
        tables[name] = table
    contents = row_contents(table)
    for part, stated in problem.split_hash.items():
        path = file_of_split(records.out, name, *part)
        try:
            split = Split.load(path)
            faults = list(_check_split(split, contents, stated))
        except MolgraphError as error:
            faults = [error.message]
        yield from ((str(path), fault) for fault in faults)
        if not faults and name in tables:
            splits[name, *part] = split


def _split_of(cell: Cell) -> tuple[str, str, int, int]:
    return cell.dataset, cell.split, cell.repeat, cell.fold


def _look(records: Records, cell: Cell, table: Table | None, splits: Splits) -> tuple[list[str], Record | None]:
    """What is wrong with a cell that has a folder, and its record where the manifest can be read."""
    try:
        manifest = read_manifest(records.out, cell)
    except MolgraphError as error:
        return [error.message], None
    if manifest is None:
        return ["its manifest is gone"], None
    record = Record(cell, manifest)
    return list(_check_cell(records, record, table, splits)), record


def _table(records: Records, problem: DatasetPlan) -> Table:
    """The dataset: as the run handed it to its cells, or loaded anew where that is gone."""
    path = problem.table_file(records.out)
    if path.is_file():
        return read_handed(path)

    return load_dataset(problem.dataset).table


def _check_split(split: Split, contents: list[str], stated: str) -> Iterator[str]:
    settings = {
        "recipe": split.recipe, "seed": split.seed, "fractions": list(split.fractions), "params": dict(split.params),
    }  # fmt: skip
    found = split_hash(contents, {name: getattr(split, name) for name in PARTS}, settings)
    if found != split.hash:
        yield f"the split's rows give the hash {found}, the file has {split.hash}"
    elif found != stated:
        yield f"the split's hash is {found}, the plan has {stated}"


def _check_cell(records: Records, record: Record, table: Table | None, splits: Splits) -> Iterator[str]:
    """What is wrong with one cell; nothing where it is as it was written."""
    cell, manifest = record
    problem = records.problems[cell.dataset]
    method = next((m for m in records.recipe.method if m.row == cell.method), None)
    stated = problem.split_hash.get((cell.split, cell.repeat, cell.fold), "")
    if manifest["data_hash"] != problem.data_hash or manifest["split_hash"] != stated:
        yield "its manifest has another dataset's or split's hash than the plan"
    if method is None:
        yield "the recipe has no method of its name"
    elif cell.key != cell_key(problem.data_hash, stated, method, cell.seed):
        yield "its key is not that of the recipe's data, split, method, parameters and seed"
    if manifest["status"] != "ok":
        return
    if not records.path(cell).is_file():
        yield "its predictions are gone"
        return
    try:
        predicted = records.predictions(cell, manifest)
    except MolgraphError as error:
        yield error.message
    else:
        yield from _check_predicted(predicted, problem, table, splits.get(_split_of(cell)))


def _check_predicted(
    predicted: Predicted, problem: DatasetPlan, table: Table | None, split: Split | None
) -> Iterator[str]:
    """What is wrong with predictions that nobody touched since: their columns, rows and measured values."""
    columns = [column for target in problem.targets for column in target.columns]
    if not set(columns) <= set(predicted.p) or not {t.name for t in problem.targets} <= set(predicted.y):
        yield "its predictions lack a target's column"
    elif table is not None and table.y is not None and split is not None:
        if not np.array_equal(predicted.rows, split.test):
            yield "its rows are not the split's test rows"
        elif not all(_same(predicted.y[t.name], table.y[split.test, j]) for j, t in enumerate(problem.targets)):
            yield "its measured values are not the dataset's"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)
