"""Export the folds of a benchmark as csv files, so that any program can be benchmarked on them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base import progress
from molgraph.base.csv_text import write_csv
from molgraph.base.errors import UsageError
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.data.table_parquet import OF_ARRAYS, read_handed
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.plan import DatasetPlan
from molgraph.evaluate.benchmark.run_folder import Records

FOLDS = "folds"
PART = ["dataset", "split", "repeat", "fold", "split_hash"]  # which test rows a prediction belongs to
DIGITS = 16  # of the split's hash


def export_folds(records: Records) -> list[Path]:
    """Write ``train.csv``, ``test.csv`` and, where there is one, ``valid.csv`` of every fold of a folder with its plan.

    Test files have no labels. Their first columns say which fold they are of; ``molgraph bench submit`` takes test
    files back with a column of predictions for each target.

    Returns:
        The folders of the folds, ``FOLDER/folds/DATASET/SPLIT/r0-f0``.

    Raises:
        UsageError: a dataset of graphs or geometries, which no csv file holds.
    """
    made = []
    parts = [(p, *part) for p in records.problems.values() for part in p.split_hash]
    for problem, label, repeat, fold in progress.track(parts, label="exporting"):
        table = read_handed(problem.table_file(records.out))
        if odd := [e.name for e in table.entities if e.kind in OF_ARRAYS]:
            raise UsageError(f"{problem.dataset} has {odd[0]!r}, which is no text", hint="leave it out of the recipe")
        split = Split.load(file_of_split(records.out, problem.dataset, label, repeat, fold))
        folder = records.out / FOLDS / problem.dataset / label / f"r{repeat}-f{fold}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("train", split.train), ("valid", split.valid)):
            if len(rows):
                write_csv(folder / f"{name}.csv", pd.DataFrame({**_given(table, rows), **dict(_labels(table, rows))}))
        head = dict(
            zip(PART, (problem.dataset, label, repeat, fold, split_mark(problem, label, repeat, fold)), strict=True)
        )
        write_csv(folder / "test.csv", pd.DataFrame(head | _given(table, split.test)))
        made.append(folder)
    return made


def split_mark(problem: DatasetPlan, label: str, repeat: int, fold: int) -> str:
    """The first digits of a split's hash, which depends on the rows' content too."""
    return problem.split_hash[label, repeat, fold][:DIGITS]


def _given(table: Table, rows: np.ndarray) -> dict[str, Any]:
    """What a method may read of rows: number, id, entities and features."""
    part = table.take(rows)
    given: dict[str, Any] = {"row": rows, "id": part.ids} | {e.name: e.values for e in part.entities}
    if part.features is not None:
        given |= {name: part.features[:, j] for j, name in enumerate(part.feature_names)}
    return given


def _labels(table: Table, rows: np.ndarray) -> Iterator[tuple[str, np.ndarray]]:
    assert table.y is not None
    for j, target in enumerate(table.row_targets):
        yield target.name, table.y[rows, j]
    if table.weights is not None:
        yield "weight", table.weights[rows]
