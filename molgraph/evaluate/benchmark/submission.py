"""Check the predictions that another program made for a benchmark's folds, and add them to its folder as cells."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import pandas as pd
from pydantic import Field

from molgraph.base.errors import DataError, UsageError
from molgraph.base.paths import atomic_write, missing_file
from molgraph.base.toml_config import Section, read_toml
from molgraph.chem.inchi import inchikeys
from molgraph.data.read import read_table
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import FORMAT, MANIFEST, PREDICTIONS, Cell, file_of_split
from molgraph.evaluate.benchmark.export import PART, split_mark
from molgraph.evaluate.benchmark.plan import DatasetPlan
from molgraph.evaluate.benchmark.recipe import Label
from molgraph.evaluate.benchmark.run_folder import SUBMITTED, Records
from molgraph.evaluate.benchmark.store import sha256

LARGEST_CARD = 100_000
KEYS = ["dataset", "split", "repeat", "fold"]
SHOWN = 3
PERFECT = 0.98  # of at least 20 measured values of a fold equal to the predictions, or all of a class: these are labels
LEAST = 20
Part = tuple[str, int, int]


class Card(Section):
    """How the predictions of a submission were made, in the words of its authors."""

    name: Annotated[Label, Field(min_length=1)]  # the row of the board
    code: str = ""  # where the code is
    commit: str = ""
    licence: str = ""
    paper: str = ""
    pretraining: str = ""  # a file of the molecules that it was pretrained on; test molecules among them are counted
    tuning: str = ""  # what was chosen on which rows
    hardware: str = ""
    seconds: Annotated[float, Field(ge=0)] | None = None  # of a fold, on that hardware
    reproduced: str = ""  # by whom, and how, its predictions were made again; else it is self-reported

    @property
    def badge(self) -> str:
        """Whether somebody else got the same."""
        return f"reproduced: {self.reproduced}" if self.reproduced else "self-reported"


def submit(records: Records, predictions: Path, card: Path) -> list[Cell]:
    """Check predictions against a run's folds and add them as a row of its boards; nothing is written where one is bad.

    Args:
        records: what the run's folder holds.
        predictions: a csv file of the rows of ``test.csv`` files, with a column for each target (of a class the
            probability of class 1, ``target:class`` for several). Each split of a dataset that it has is whole.
        card: a toml file with the keys of ``Card``.

    Returns:
        The cells that were added.

    Raises:
        DataError: rows that are missing, doubled, foreign or of the training part, values that are no finite numbers,
            another split, or labels in the place of predictions.
        UsageError: a card with unknown keys, or a name that a method of the recipe has.
    """
    about = Card.from_dict(read_toml(card, 'name = "mine"'))
    if about.name in {method.row for method in records.recipe.method if method.kind != "external"}:
        raise UsageError(f"the run has a method called {about.name!r}", hint="give the card another name")
    if records.recipe.generates:
        raise UsageError("generators are not judged by predictions")
    frame, content = _read(records, predictions)
    cells, files = [], list[tuple[Path, bytes]]()
    groups = dict(iter(frame.groupby(KEYS, sort=False)))
    there = {name: records.problems[name] for name in frame["dataset"].unique() if name in records.problems}
    tables = {name: read_handed(p.table_file(records.out)) for name, p in there.items() if p.split_hash}
    checked = [
        _check(records, tables, key, part) for key, part in groups.items()
    ]  # all of them, before anything is written
    _check_whole(records, groups)
    known = _pretrained(about)
    for (problem, part, rows), made in zip(checked, groups.values(), strict=True):
        test = tables[problem.dataset].take(rows)
        table = _parquet(problem, test, rows, made)
        seen = len(known & set(inchikeys(test.smiles))) if known else 0
        notes = [f"{seen} of its test molecules are in the pretraining data"] if known else []
        digest = sha256(content + card.read_bytes() + repr((problem.dataset, part)).encode())
        cell = Cell(problem.dataset, *part, about.name, 0, digest)
        manifest = _manifest(cell, problem, about, notes, sha256(table))
        folder = cell.folder(records.out)
        files += [(folder / PREDICTIONS, table), (folder / MANIFEST, json.dumps(manifest, indent=1).encode())]
        cells.append(cell)
    for path, text in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        with atomic_write(path) as file:
            file.write(text)
    entry = {"card": about.model_dump(mode="json"), "cells": [vars(cell) for cell in cells]}
    path = records.out / SUBMITTED / f"{about.name}.json"
    path.parent.mkdir(exist_ok=True)
    with atomic_write(path, "w") as file:  # last: from now on they are read
        json.dump(entry, file, indent=1)
    return cells


def _read(records: Records, path: Path) -> tuple[pd.DataFrame, bytes]:
    """The submitted rows, no more than the run tests, and the file's content."""
    if not path.is_file():
        raise missing_file(path, "file of predictions")
    most = sum(len(rows) for rows in _tested(records).values())
    with path.open("rb") as file:
        lines = sum(1 for _ in zip(file, range(2 * most + 2), strict=False))
    if lines > 2 * most:
        raise DataError(
            f"{path} has more than {lines - 2:,} rows, the run tests {most:,}", hint="one for each test row"
        )
    try:
        frame = pd.read_csv(path, dtype={"dataset": str, "split": str, "split_hash": str, "id": str}, low_memory=False)
    except (ValueError, OSError) as error:
        raise DataError(f"{path} cannot be read: {error}") from error
    if lacks := [name for name in (*PART, "row") if name not in frame]:
        raise DataError(f"{path} has no column {lacks[0]!r}", hint="keep the columns of the test.csv files")
    if not len(frame):
        raise DataError(f"{path} has no rows")
    for name in ("repeat", "fold", "row"):
        whole = pd.to_numeric(frame[name], errors="coerce")
        if (bad := ~(whole % 1 == 0)).any():
            raise DataError(f"{path} has {name} {frame[name][bad].iloc[0]!r}, no whole number", hint="keep that column")
        frame[name] = whole.astype(np.int64)
    if frame[["dataset", "split"]].isna().any(axis=None):
        raise DataError(f"{path} has rows without a dataset or split", hint="keep these columns")
    return frame, path.read_bytes()


def _tested(records: Records) -> dict[tuple[str, Part], np.ndarray]:
    """The test rows of each fold."""
    found = {}
    for name, problem in records.problems.items():
        for part in problem.split_hash:
            found[name, part] = Split.load(file_of_split(records.out, name, *part)).test
    return found


def _check(
    records: Records, tables: Mapping[str, Table], key: tuple, frame: pd.DataFrame
) -> tuple[DatasetPlan, Part, np.ndarray]:
    """The dataset, part and test rows that the rows of a fold belong to; raise ``DataError`` for what is wrong."""
    dataset, *rest = key
    problem, part = records.problems.get(dataset), (str(rest[0]), rest[1], rest[2])
    where = f"{dataset} {part[0]} r{part[1]}-f{part[2]}"
    if problem is None or part not in problem.split_hash:
        raise DataError(f"the run has no fold {where}", hint="export its folds and predict those")
    mark = split_mark(problem, *part)
    if (frame["split_hash"] != mark).any():
        raise DataError(f"{where} is another split: {frame['split_hash'].iloc[0]}, the run has {mark}")
    split = Split.load(file_of_split(records.out, dataset, *part))
    given = frame["row"]
    for rows, words in (
        (given[given.isin(split.train)], "of the training part"),
        (given[~given.isin(split.test)], "that it does not test"),
        (given[given.duplicated()], "twice"),
        (pd.Series(np.setdiff1d(split.test, given)), "too few: they are missing"),
    ):
        if len(rows):
            raise DataError(f"{where} has {len(rows):,} rows {words}: {_some(rows)}")
    table = tables[dataset]
    if "id" in frame and (bad := given[(frame["id"].fillna("") != table.ids[given])]).any():
        raise DataError(f"{where} has ids of other rows: {_some(bad)}")
    for column in (name for target in problem.targets for name in target.columns):
        if column not in frame:
            raise DataError(f"{where} has no column {column!r}", hint="a column of predictions for each target")
        values = pd.to_numeric(frame[column], errors="coerce")
        if len(bad := given[~np.isfinite(values)]):
            raise DataError(f"{where} has {len(bad):,} values of {column!r} that are no number: rows {_some(bad)}")
    _check_learned(problem, frame, table.y, where)
    return problem, part, split.test


def _check_learned(problem: DatasetPlan, frame: pd.DataFrame, y: np.ndarray | None, where: str) -> None:
    """Refuse probabilities beyond 0 to 1, and labels in the place of predictions."""
    assert y is not None
    for j, target in enumerate(problem.targets):
        if target.kind in ("binary", "multiclass") and not frame[list(target.columns)].stack().between(0, 1).all():
            raise DataError(f"{where} has scores of {target.name!r} outside 0 to 1", hint="give probabilities")
        truth = y[frame["row"], j]
        measured = np.isfinite(truth)
        if target.kind == "multiclass" or measured.sum() < LEAST:
            continue
        given = frame[target.columns[0]].to_numpy()[measured]
        same, constant = (given == truth[measured]).mean(), len(np.unique(given)) == 1
        if same >= (1.0 if target.kind == "binary" else PERFECT) and not constant:
            raise DataError(
                f"{where}: {same:.0%} of the predictions of {target.name!r} are the measured values themselves",
                hint="predict the test rows from the training rows",
            )


def _check_whole(records: Records, groups: dict) -> None:
    """Refuse a dataset's split of which folds are missing."""
    for dataset, label in dict.fromkeys((key[0], key[1]) for key in groups):
        wanted = {part for part in records.problems[dataset].split_hash if part[0] == label}
        there = {(key[1], key[2], key[3]) for key in groups if key[0] == dataset}
        if gone := sorted(wanted - there):
            names = ", ".join(f"r{repeat}-f{fold}" for _, repeat, fold in gone[:SHOWN])
            raise DataError(f"{dataset} {label} lacks {len(gone)} of {len(wanted)} folds: {names}")


def _pretrained(card: Card) -> set[str]:
    """InChIKeys of the molecules that a method was pretrained on."""
    return set(inchikeys(read_table(card.pretraining).smiles)) - {""} if card.pretraining else set()


def _parquet(problem: DatasetPlan, test: Any, rows: np.ndarray, frame: pd.DataFrame) -> bytes:
    """A cell's predictions as its own process would have written them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    given = frame.set_index("row").loc[rows]
    columns: dict[str, Any] = {"row": rows, "id": test.ids, "status": test.status, "reason": test.reason}
    columns |= {f"y:{t.name}": test.y[:, j] for j, t in enumerate(problem.targets)}
    names = [name for target in problem.targets for name in target.columns]
    columns |= {f"p:{name}": given[name].to_numpy(np.float64) for name in names}
    sink = pa.BufferOutputStream()
    pq.write_table(
        pa.table({k: pa.array(v, pa.string() if v.dtype == object else None) for k, v in columns.items()}), sink
    )
    return sink.getvalue().to_pybytes()


def _manifest(cell: Cell, problem: DatasetPlan, card: Card, notes: list[str], digest: str) -> dict[str, Any]:
    return {
        "format": FORMAT, "key": cell.key, "status": "ok", "reason": "", "dataset": cell.dataset,
        "edition": problem.edition, "data_hash": problem.data_hash, "repeat": cell.repeat, "fold": cell.fold,
        "split_hash": problem.split_hash[cell.split, cell.repeat, cell.fold], "method": cell.method,
        "label": cell.method, "params": {}, "resolved": {}, "external": card.model_dump(mode="json"),
        "seed": cell.seed, "notes": [card.badge, *notes], "unlearned": {}, "search": None, "chosen": {},
        "split": {"label": cell.split}, "versions": {}, "machine": {},
        "seconds": {"total": card.seconds}, "cpu_seconds": None, "peak_mb": None,
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "predictions_sha256": digest,
    }  # fmt: skip


def _some(rows: pd.Series) -> str:
    named = ", ".join(str(row) for row in rows[:SHOWN])
    return named + (f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else "")
