"""Write train.csv and test.csv of each fold of a benchmark, the test files without labels."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.contracts import Target
from molgraph.base.csv_text import write_csv
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.data.table_parquet import OF_ARRAYS
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.run_folder import Records
from molgraph.evaluate.benchmark.store import sha256

FOLDS = "folds"
KEYS = ["dataset", "split", "repeat", "fold"]
PART = [*KEYS, "split_hash"]  # which test rows a prediction belongs to
RESERVED = (*PART, "row", "id", "weight")
DIGITS = 16  # of the hash


def export_folds(records: Records) -> list[Path]:
    """Write ``train.csv``, ``test.csv`` and, where there is one, ``valid.csv`` of every fold of a folder with its plan.

    Test files have no labels. Their first columns say which fold they are of; ``molgraph bench submit`` takes test
    files back with a column of predictions for each target.

    Returns:
        The folders of the folds, ``FOLDER/folds/DATASET/SPLIT/r0-f0``.

    Raises:
        UnsupportedError: a dataset of graphs or geometries, which no csv file holds.
    """
    folders = []
    parts = [(name, *part) for name, problem in records.problems.items() for part in problem.split_hash]
    tables = {name: records.table(name) for name in dict.fromkeys(name for name, *_ in parts)}
    for name, table in tables.items():
        if odd := [e.name for e in table.entities if e.kind in OF_ARRAYS]:
            raise UnsupportedError(f"{name} has {odd[0]!r}, which is no text", hint="leave it out of the recipe")
        columns = [e.name for e in table.entities] + [t.name for t in table.row_targets] + [*table.feature_names]
        if taken := [column for column in columns if column in RESERVED]:
            raise ConflictError(f"{name} has a column {taken[0]!r}, which the files need", hint="give it another name")
    for part in progress.track(parts, label="exporting"):
        table, split = tables[part[0]], Split.load(file_of_split(records.out, *part))
        folder = records.out / FOLDS / part[0] / part[1] / f"r{part[2]}-f{part[3]}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("train", split.train), ("valid", split.valid)):
            if len(rows):
                write_csv(folder / f"{name}.csv", pd.DataFrame(_columns(table, rows, labelled=True)))
        head = dict(zip(PART, (*part, fold_mark(records, part)), strict=True))
        write_csv(folder / "test.csv", pd.DataFrame(head | _columns(table, split.test, labelled=False)))
        folders.append(folder)
    for old in {*(records.out / FOLDS).glob("*/*/r*-f*")} - {*folders}:  # of another recipe
        shutil.rmtree(old)
    return folders


def fold_mark(records: Records, part: tuple[str, str, int, int]) -> str:
    """What a fold's files say of its split and data, labels too; a text that nothing reads as a number."""
    problem = records.problems[part[0]]
    return f"h{sha256((problem.split_hash[part[1:]] + problem.data_hash).encode())[:DIGITS]}"


def _columns(table: Table, rows: np.ndarray, *, labelled: bool) -> dict[str, Any]:
    """Number, id, entities and features of rows, which a method may read, and with ``labelled`` what it learns from."""
    part = table.take(rows)
    columns: dict[str, Any] = {"row": rows, "id": part.ids} | {e.name: e.values for e in part.entities}
    if part.features is not None:
        columns |= dict(zip(part.feature_names, part.features.T, strict=True))
    if labelled and part.y is not None:
        columns |= {target.name: _words(target, y) for target, y in zip(part.row_targets, part.y.T, strict=True)}
        columns |= {} if part.weights is None else {"weight": part.weights}
    return columns


def _words(target: Target, y: np.ndarray) -> Any:
    """Labels as files have them: numbers, or the names of several classes."""
    if target.kind != "multiclass":
        return y
    return [target.classes[int(code)] if np.isfinite(code) else "" for code in y]
