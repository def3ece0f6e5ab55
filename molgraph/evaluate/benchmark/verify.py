"""A benchmark's folder in; every row that is not what its manifest, split or dataset says out."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.errors import MolgraphError
from molgraph.data.content import content_hash
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS, row_contents, split_hash
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import cell_key, file_of_split
from molgraph.evaluate.benchmark.handed import read_handed
from molgraph.evaluate.benchmark.plan import Problem
from molgraph.evaluate.benchmark.records import Record, Records, read_records
from molgraph.evaluate.benchmark.scoring import SCORES, score_records, stored_scores
from molgraph.evaluate.benchmark.store import read_manifest, sha256

Splits = dict[tuple[str, str, int, int], Split]
SHOWN = 50  # faults that are printed


@dataclass(frozen=True, repr=False)
class Verified:
    """What a check found.

    Args:
        cells: how many are as they were written.
        faults: where -> what is wrong, one sentence.
        scores: the scores frame, made anew from the predictions.
    """

    cells: int
    faults: tuple[tuple[str, str], ...]
    scores: pd.DataFrame

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.faults

    def __repr__(self) -> str:
        lines = [f"{where}: {fault}" for where, fault in self.faults]
        said = f"{self.cells:,} cells are as they were written, {len(self.scores):,} scores made anew"
        return "\n".join([*lines[:SHOWN], *[f"and {len(lines) - SHOWN:,} more"] * (len(lines) > SHOWN), said])


def verify_records(out: str | Path) -> Verified:
    """Hash data, splits and predictions once more, compare predictions' rows and measured values, score all anew.

    Args:
        out: a benchmark's folder.

    Raises:
        StorageError: it is none. DataError: a plan in it is damaged.
    """
    records = read_records(out)
    faults: list[tuple[str, str]] = []
    tables: dict[str, Table] = {}
    splits: Splits = {}
    for name, problem in records.problems.items():
        if problem.refused:
            faults.append((name, f"refused: {problem.refused}"))
            continue
        try:
            tables[name] = _table(records, problem)
            faults += [(name, fault) for fault in _check_data(problem, tables[name])]
            contents = row_contents(tables[name])
            for (label, repeat, fold), stated in problem.split_hash.items():
                path = file_of_split(records.out, name, label, repeat, fold)
                split = Split.load(path)
                splits[name, label, repeat, fold] = split
                faults += [(str(path), fault) for fault in _check_split(split, contents, stated)]
        except MolgraphError as error:
            faults.append((name, error.message))
    good = []
    for record in progress.track(_records(records, faults), label="verifying"):
        cell = record.cell
        found = list(_check_cell(records, record, tables.get(cell.dataset), splits))
        faults += [(str(cell), fault) for fault in found]
        good += [] if found else [record]
    scores = score_records(records, good)  # what is damaged has no scores
    faults += _differences(records, scores)
    return Verified(len(good), tuple(faults), scores)


def _records(records: Records, faults: list[tuple[str, str]]) -> list[Record]:
    """Cells whose manifests can be read."""
    found = []
    for problem in records.problems.values():
        for cell in problem.cells:
            try:
                manifest = read_manifest(records.out, cell)
            except MolgraphError as error:
                faults.append((str(cell), error.message))
                continue
            found += [] if manifest is None else [Record(cell, manifest)]
    return found


def _table(records: Records, problem: Problem) -> Table:
    """The dataset: as the run handed it to its cells, or loaded anew where that is gone."""
    path = problem.table_file(records.out)
    if path.is_file():
        return read_handed(path)
    from molgraph.data.datasets import load_dataset

    return load_dataset(problem.dataset).table


def _check_data(problem: Problem, table: Table) -> Iterator[str]:
    found = content_hash(table)
    if found != problem.data_hash:
        yield f"the dataset's hash is {found}, the plan has {problem.data_hash}"


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
    problem, method = records.problems[cell.dataset], records.recipe.of_method(cell.method)
    stated = problem.split_hash[cell.split, cell.repeat, cell.fold]
    if manifest["data_hash"] != problem.data_hash or manifest["split_hash"] != stated:
        yield "its manifest has another dataset's or split's hash than the plan"
    if cell.key != cell_key(problem.data_hash, stated, method, cell.seed):
        yield "its key is not that of the recipe's data, split, method, parameters and seed"
    if manifest["status"] != "ok":
        return
    split = splits.get((cell.dataset, cell.split, cell.repeat, cell.fold))
    path = records.path(cell)
    if not path.is_file():
        yield "its predictions are gone"
    elif sha256(path) != manifest["predictions_sha256"]:
        yield f"its predictions were changed: sha256 {sha256(path)}, the manifest has {manifest['predictions_sha256']}"
    elif table is not None and table.y is not None and split is not None:
        try:
            found = records.predictions(cell)
        except MolgraphError as error:
            yield error.message
            return
        if not np.array_equal(found.rows, split.test):
            yield "its rows are not the split's test rows"
        elif not all(_same(found.y[t.name], table.y[split.test, j]) for j, t in enumerate(problem.targets)):
            yield "its measured values are not the dataset's"


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    return np.array_equal(a, b, equal_nan=True)


def _differences(records: Records, scores: pd.DataFrame) -> list[tuple[str, str]]:
    """Rows of the scores that the run wrote down which differ from those made anew."""
    stored = stored_scores(records.out)
    if stored is None:
        return []
    keys = ["dataset", "split", "repeat", "fold", "method", "seed", "target", "metric"]
    both = scores.merge(stored, on=keys, suffixes=("", "_stored"))
    same = (both["value"] == both["value_stored"]) | (both["value"].isna() & both["value_stored"].isna())
    found = []
    for row in both[~same & (both["split_hash"] == both["split_hash_stored"])].to_dict("records"):
        where = " ".join(str(row[key]) for key in keys)
        found.append((where, f"scores {row['value']!r}, {SCORES} has {row['value_stored']!r}"))
    return found
