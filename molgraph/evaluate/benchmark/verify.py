"""Verify a benchmark's folder against its manifests, splits and datasets."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
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
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import Cell, cell_key, file_of_split
from molgraph.evaluate.benchmark.draws import read_draws
from molgraph.evaluate.benchmark.plan import PLAN, DatasetPlan
from molgraph.evaluate.benchmark.run_folder import Predicted, Record, Records, read_records
from molgraph.evaluate.benchmark.scoring import SCORES, score_records, stored_scores
from molgraph.evaluate.benchmark.store import read_manifest

SHOWN = 50  # faults that are printed
OF_CELL = ["dataset", "split", "split_hash", "repeat", "fold", "method", "seed"]  # columns of scores that name a cell


@dataclass(frozen=True, repr=False)
class Verified:
    """What a check found; cells that are not there are no fault, as a run may be unfinished."""

    cells: int  # that are as they were written: no fault is theirs, nor their scores'
    faults: tuple[tuple[str, str], ...]  # where, and what is wrong
    scores: pd.DataFrame  # made anew from the predictions
    there: int  # cells that were computed, damaged ones too
    wanted: int  # cells that the plans ask for
    begun: int  # datasets that have a plan
    datasets: int  # that the recipe names

    @property
    def ok(self) -> bool:
        """Whether there is something, and nothing is wrong."""
        return self.there > 0 and not self.faults

    def __repr__(self) -> str:
        lines = [f"{where}: {fault}" for where, fault in self.faults]
        lines[SHOWN:] = [f"and {len(lines) - SHOWN:,} more"] * (len(lines) > SHOWN)
        of = "" if self.begun == self.datasets else f" of {self.begun} of {self.datasets} datasets"
        counts = [f"{self.there:,} of {self.wanted:,} cells{of} are there"] if self.there < self.wanted or of else []
        counts += [f"{self.cells:,} cells are as they were written, {len(self.scores):,} scores made anew"]
        if not self.there:
            counts = [f"there is nothing to verify: none of {self.wanted:,} cells{of} is there"]
        return "\n".join([*lines, "; ".join(counts)])


@dataclass
class _Sound:
    """Tables by dataset, and splits by dataset, label, repeat and fold, that are as the plans have them."""

    tables: dict[str, Table] = field(default_factory=dict)
    splits: dict[tuple[str, str, int, int], Split] = field(default_factory=dict)


def verify_records(out: str | Path) -> Verified:
    """Hash data, splits and predictions once more, compare predictions' rows and measured values, score all anew."""
    records, sound = read_records(out), _Sound()
    stored, faults = None, list[tuple[str, str]]()
    try:
        stored = stored_scores(records.out)
    except (OSError, ValueError, KeyError) as error:
        faults.append((SCORES, f"it cannot be read: {error}"))
    faults += _gone(records, stored)
    for problem in records.problems.values():
        faults += _check_problem(records, problem, sound)
    spoilt, whole = set[Cell | None](), []
    there = [cell for cell in records.cells if cell.folder(records.out).is_dir()]
    for cell in progress.track(there, label="verifying"):
        try:
            manifest = read_manifest(records.out, cell)
            found = ["its manifest is gone"] if manifest is None else list(_check_cell(records, cell, manifest, sound))
        except MolgraphError as error:
            found = [error.message]
        faults += [(str(cell), fault) for fault in found]
        if found or _split_of(cell) not in sound.splits:
            spoilt.add(cell)
        if not found:
            whole.append(Record(cell, manifest or {}))
    scores = score_records(records, whole)  # what is damaged has no scores
    if stored is not None:
        for judged, where, fault in _check_scores(records, there, scores, stored):
            faults.append((where, fault))
            spoilt.add(judged)
    good = sum(record.cell not in spoilt for record in whole)
    counts = (len(there), records.wanted, len(records.problems), len(records.recipe.datasets))
    return Verified(good, tuple(faults), scores, *counts)


def _gone(records: Records, stored: pd.DataFrame | None) -> Iterator[tuple[str, str]]:
    """Datasets of the recipe that were begun, as something of them stands there, and whose plan does not."""
    scored = set() if stored is None else set(stored["dataset"])
    for name in records.recipe.datasets:
        traces = [records.out / folder / name for folder in ("cells", "splits")]
        if name not in records.problems and (name in scored or any(path.is_dir() for path in traces)):
            yield name, f"its plan is gone ({PLAN}/{name}.json): run the recipe again"


def _check_problem(records: Records, problem: DatasetPlan, sound: _Sound) -> Iterator[tuple[str, str]]:
    """What is wrong with a dataset and its splits; those that are sound are added."""
    name, path = problem.dataset, problem.table_file(records.out)
    if problem.refused:
        yield name, f"refused: {problem.refused}"
        return
    try:  # the dataset as the run handed it to its cells, or loaded anew where that is gone
        table = read_handed(path) if path.is_file() else load_dataset(name).table
    except MolgraphError as error:
        yield name, error.message
        return
    if (found := content_hash(table)) != problem.data_hash:
        yield name, f"the dataset's hash is {found}, the plan has {problem.data_hash}"
    else:
        sound.tables[name] = table
    contents = row_contents(table)
    for part, stated in problem.split_hash.items():
        path = file_of_split(records.out, name, *part)
        try:
            split = Split.load(path)
            fault = _check_split(split, contents, stated)
        except MolgraphError as error:
            fault = error.message
        if fault:
            yield str(path), fault
        elif name in sound.tables:
            sound.splits[name, *part] = split


def _check_split(split: Split, contents: list[str], stated: str) -> str:
    settings = {
        "recipe": split.recipe, "seed": split.seed, "fractions": list(split.fractions), "params": dict(split.params),
    }  # fmt: skip
    found = split_hash(contents, {name: getattr(split, name) for name in PARTS}, settings)
    if found != split.hash:
        return f"the split's rows give the hash {found}, the file has {split.hash}"
    return "" if found == stated else f"the split's hash is {found}, the plan has {stated}"


def _split_of(cell: Cell) -> tuple[str, str, int, int]:
    return cell.dataset, cell.split, cell.repeat, cell.fold


def _check_cell(records: Records, cell: Cell, manifest: dict, sound: _Sound) -> Iterator[str]:
    """What is wrong with one cell; nothing where it is as it was written."""
    problem = records.problems[cell.dataset]
    method = next((m for m in records.recipe.method if m.row == cell.method), None)
    stated = problem.split_hash.get((cell.split, cell.repeat, cell.fold), "")
    if manifest["data_hash"] != problem.data_hash or manifest["split_hash"] != stated:
        yield "its manifest has another dataset's or split's hash than the plan"
    if method is None:
        yield "the recipe has no method of its name"
    elif method.kind != "external":
        resolved = manifest.get("resolved", {})
        version = manifest.get("versions", {}).get("molgraph", "")
        drawn = records.recipe.generation if records.recipe.generates else None
        key = cell_key(problem.data_hash, stated, method, cell.seed, resolved, version, drawn)
        if cell.key != key or manifest.get("params") != method.params:
            yield "its key is not that of the recipe's data, split, method, parameters and seed"
    if manifest["status"] != "ok":
        return
    if not records.path(cell).is_file():
        yield "its predictions are gone"
        return
    try:
        if records.recipe.generates:
            read_draws(records.path(cell), str(manifest["predictions_sha256"]))
            return
        predicted = records.predictions(cell, manifest)
    except MolgraphError as error:
        yield error.message
        return
    table, split = sound.tables.get(cell.dataset), sound.splits.get(_split_of(cell))
    yield from _check_predicted(predicted, problem, table, split)


def _check_predicted(
    predicted: Predicted, problem: DatasetPlan, table: Table | None, split: Split | None
) -> Iterator[str]:
    """What is wrong with predictions that nobody touched since: their columns, rows and measured values."""
    columns = [column for target in problem.targets for column in target.columns]
    if not set(columns) <= set(predicted.p) or not {t.name for t in problem.targets} <= set(predicted.y):
        yield "its predictions lack a target's column"
    elif table is not None and table.y is not None and split is not None:
        measured = zip(problem.targets, table.y[split.test].T, strict=True)
        if not np.array_equal(predicted.rows, split.test):
            yield "its rows are not the split's test rows"
        elif not all(np.array_equal(predicted.y[t.name], y, equal_nan=True) for t, y in measured):
            yield "its measured values are not the dataset's"


def _check_scores(
    records: Records, there: list[Cell], scores: pd.DataFrame, stored: pd.DataFrame
) -> Iterator[tuple[Cell | None, str, str]]:
    """Rows of the stored scores without a cell, or that differ from those made anew: the cell, where, what is wrong."""
    hashes = {name: problem.split_hash for name, problem in records.problems.items()}
    cells = {
        (c.dataset, c.split, hashes[c.dataset].get(_split_of(c)[1:], ""), c.repeat, c.fold, c.method, c.seed): c
        for c in there
    }
    lost = dict[str, None]()
    for key in stored[OF_CELL].drop_duplicates().itertuples(index=False, name=None):
        dataset, label, _, repeat, fold, method, seed = key
        problem = records.problems.get(dataset)
        if problem is None and dataset in records.recipe.datasets:
            continue  # its plan is gone, or it was not begun
        refused = problem is not None and (problem.refused or label in problem.refused_splits)
        if key not in cells and not refused:
            lost[f"{dataset} {label} {method} r{repeat}-f{fold}-s{seed}"] = None
    for where in lost:
        yield None, where, f"{SCORES} has rows of it, and the cell is not there: run the recipe again"
    keys = [*OF_CELL, "target", "metric"]
    both = scores.merge(stored, on=keys, suffixes=("", "_stored"))
    same = (both["value"] == both["value_stored"]) | (both["value"].isna() & both["value_stored"].isna())
    for row in both[~same].to_dict("records"):
        where = " ".join(str(row[key]) for key in keys if key != "split_hash")
        judged = cells.get(tuple(row[key] for key in OF_CELL))
        yield judged, where, f"scores {row['value']!r}, {SCORES} has {row['value_stored']!r}"
