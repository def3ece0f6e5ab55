"""Export the folds of a benchmark as csv files, so that any program can be benchmarked on them."""

from __future__ import annotations

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
    parts = [(name, *part) for name, problem in records.problems.items() for part in problem.split_hash]
    for part in progress.track(parts, label="exporting"):
        problem, split = records.problems[part[0]], Split.load(file_of_split(records.out, *part))
        table = read_handed(problem.table_file(records.out))
        if odd := [e.name for e in table.entities if e.kind in OF_ARRAYS]:
            raise UsageError(f"{part[0]} has {odd[0]!r}, which is no text", hint="leave it out of the recipe")
        folder = records.out / FOLDS / part[0] / part[1] / f"r{part[2]}-f{part[3]}"
        folder.mkdir(parents=True, exist_ok=True)
        for name, rows in (("train", split.train), ("valid", split.valid)):
            if len(rows):
                write_csv(folder / f"{name}.csv", pd.DataFrame(_columns(table, rows, labelled=True)))
        head = dict(zip(PART, (*part, split_mark(problem, *part[1:])), strict=True))
        write_csv(folder / "test.csv", pd.DataFrame(head | _columns(table, split.test, labelled=False)))
        made.append(folder)
    return made


def split_mark(problem: DatasetPlan, label: str, repeat: int, fold: int) -> str:
    """The first digits of a split's hash, which depends on the rows' content too."""
    return problem.split_hash[label, repeat, fold][:DIGITS]


def _columns(table: Table, rows: np.ndarray, *, labelled: bool) -> dict[str, Any]:
    """Number, id, entities and features of rows, which a method may read, and with ``labelled`` what it learns from."""
    part = table.take(rows)
    made: dict[str, Any] = {"row": rows, "id": part.ids} | {e.name: e.values for e in part.entities}
    if part.features is not None:
        made |= dict(zip(part.feature_names, part.features.T, strict=True))
    if labelled and part.y is not None:
        made |= {target.name: y for target, y in zip(part.row_targets, part.y.T, strict=True)}
        made |= {} if part.weights is None else {"weight": part.weights}
    return made
