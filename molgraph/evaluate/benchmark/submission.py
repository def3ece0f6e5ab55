"""Check the predictions that any program made for a benchmark's folds, and add them as cells."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
import pandas as pd
from pydantic import Field

from molgraph.base.contracts import Prediction
from molgraph.base.errors import (
    AmbiguousColumnError,
    CellError,
    ConflictError,
    EmptyError,
    FormatError,
    MismatchError,
    MissingColumnError,
    RowIdError,
    TooLargeError,
    UnsupportedError,
)
from molgraph.base.paths import missing_file, storage_error, write_whole
from molgraph.base.printable import count
from molgraph.base.toml_config import Section, read_toml
from molgraph.chem.identity import molecule_keys
from molgraph.data.read import read_table
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import PREDICTIONS, Cell, file_of_split
from molgraph.evaluate.benchmark.export import KEYS, PART, fold_mark
from molgraph.evaluate.benchmark.job import Outcome
from molgraph.evaluate.benchmark.recipe import BenchMethod, Label
from molgraph.evaluate.benchmark.run_folder import SUBMITTED, Records
from molgraph.evaluate.benchmark.store import keep, make_manifest, sha256, work_folder
from molgraph.evaluate.benchmark.worker import write_predictions
from molgraph.evaluate.label_check import label_noise, refuse_labels

SHOWN = 3
NOTHING = ("NA", "N/A", "n/a", "NaN", "nan", "NULL", "null", "None", "<NA>", "#N/A")  # as programs read them
HOW = "write the rows of the test.csv files with a column for each target, with commas between columns, as UTF-8"
WHOLE = 0.01  # what the probabilities of a row may lack of 1
ROW_BYTES = 65_536  # of a row of predictions, at most


class SubmissionCard(Section):
    """How the predictions of a submission were made, in the words of its authors."""

    called: ClassVar[str] = "card"
    name: Annotated[Label, Field(min_length=1)]  # the row of the board
    code: str = ""  # where the code is
    commit: str = ""
    licence: str = ""
    paper: str = ""
    # the molecules that it was pretrained on: a file, beside the card, in which test molecules are counted, or words
    pretraining: str = ""
    tuning: str = ""  # what was chosen on which rows
    hardware: str = ""
    seconds: Annotated[float, Field(ge=0)] | None = None  # of a fold, on that hardware


def submit(records: Records, predictions: Path, card: Path, *, reproduced: str = "") -> list[Cell]:
    """Check predictions against a run's folds and add them as a row of its boards; nothing is written where one is bad.

    Args:
        records: what the run's folder holds.
        predictions: a csv file of the rows of ``test.csv`` files, with a column for each target (of a class the
            probability of class 1, ``target:class`` for several). Each split of a dataset that it has is whole.
        card: a toml file with the keys of ``SubmissionCard``.
        reproduced: by whom, and how, the predictions were made again, as who keeps the board knows it; without it the
            row is marked self-reported.

    Returns:
        The cells that were added.

    Raises:
        DataError: rows that are missing, doubled, foreign or of the training part, values that are no finite numbers,
            another split, or labels in the place of predictions.
        UsageError: a card with unknown keys, or a name that a method or another submission has.
    """
    about = SubmissionCard.from_dict(read_toml(card, 'name = "mine"', "card"))
    if about.name in {method.row for method in records.recipe.method if method.kind != "external"}:
        raise ConflictError(f"the run has a method called {about.name!r}", hint="give the card another name")
    if (kept := records.out / SUBMITTED / f"{about.name}.json").exists():
        hint = f"give another name, or delete {kept}"
        raise ConflictError(f"the run has a submission called {about.name!r}", hint=hint)
    if records.recipe.generates:
        raise UnsupportedError("generators are not judged by predictions")
    parts = [(name, *part) for name, problem in records.problems.items() for part in problem.split_hash]
    splits = {key: Split.load(file_of_split(records.out, *key)) for key in parts}
    frame, content = _read(predictions, sum(len(split.test) for split in splits.values()))
    tables = {name: records.table(name) for name in frame["dataset"].unique() if name in records.problems}
    corpus = card.parent / about.pretraining
    if corpus.suffix and len(about.pretraining.split()) == 1 and not corpus.is_file():
        raise missing_file(corpus, "file of the molecules of pretraining")
    pretrained = _parents(read_table(corpus).smiles) if about.pretraining and corpus.is_file() else set()
    row = BenchMethod(name=about.name, kind="external")
    recipe = records.recipe.model_copy(update={"method": (*records.recipe.method, row)})
    badge = f"reproduced: {reproduced}" if reproduced else "self-reported"
    checked, judged = [], dict[tuple[str, str], list[tuple[Any, np.ndarray]]]()  # all, before anything is written
    for (dataset, label, repeat, fold), part in frame.groupby(KEYS, sort=False, dropna=False):
        key, where = (dataset, label, int(repeat), int(fold)), f"{dataset} {label} r{repeat}-f{fold}"
        if key not in splits:
            raise MismatchError(f"the run has no fold {where}", hint="export its folds and predict those")
        problem, test = records.problems[dataset], tables[dataset].take(splits[key].test)
        mark = fold_mark(records, key)
        if (part["split_hash"] != mark).any():
            raise MismatchError(
                f"{where} is another split, or of other data: {part['split_hash'].iloc[0]}, the run has {mark}"
            )
        prediction = _check(splits[key], test, part, where, label_noise(dataset))
        judged.setdefault((dataset, label), []).append((test.y, prediction.value))
        tested = _parents(test.smiles) if pretrained else set()
        cell = Cell(*key, about.name, 0, sha256(content + card.read_bytes() + repr((dataset, key[1:])).encode()))
        manifest = make_manifest(cell, problem, recipe, Outcome("ok", "", {"notes": [badge]}))
        ours = dict.fromkeys(("threads", "budget", "commit"))  # nothing is known of the program that predicted
        external = {**about.model_dump(), "seen": [len(pretrained & tested), len(tested)] if pretrained else None}
        theirs = {"versions": {}, "machine": {}, "seconds": {"total": about.seconds}, "external": external}
        checked.append((cell, test, prediction, manifest | ours | theirs))
    for (dataset, label), folds in judged.items():  # together too: folds may be small, and a class rare
        y, value = (np.concatenate(arrays) for arrays in zip(*folds, strict=True))
        refuse_labels(tables[dataset].row_targets, y, value, label_noise(dataset), f"{dataset} {label}")
    there = {(cell.dataset, *cell.part) for cell, *_ in checked}
    for dataset, label in sorted({key[:2] for key in there}):
        asked = [key for key in splits if key[:2] == (dataset, label)]
        if gone := [f"r{repeat}-f{fold}" for *_, repeat, fold in sorted({*asked} - there)]:
            raise MismatchError(f"{dataset} {label} lacks {len(gone)} of {len(asked)} folds: {', '.join(gone[:SHOWN])}")
    try:
        for cell, test, prediction, manifest in checked:
            folder = work_folder(records.out, cell)
            write_predictions(folder / PREDICTIONS, splits[cell.dataset, *cell.part].test, test, prediction)
            keep(records.out, cell, folder, manifest)
        (records.out / SUBMITTED).mkdir(exist_ok=True)
    except OSError as error:
        raise storage_error(f"cannot write the benchmark's folder {records.out}", error) from error
    cells = [cell for cell, *_ in checked]
    entry = json.dumps({"card": about.model_dump(), "cells": [vars(cell) for cell in cells]}, indent=1)
    write_whole(records.out / SUBMITTED / f"{about.name}.json", entry)  # last: from now on they are read
    return cells


def _read(path: Path, most: int) -> tuple[pd.DataFrame, bytes]:
    """The submitted rows, no more than twice the run's ``most`` test rows, and the file's content."""
    if not path.is_file():
        raise missing_file(path, "file of predictions")
    if path.stat().st_size > ROW_BYTES * (2 * most + 1):
        large = f"{path} has {path.stat().st_size / 1e6:,.0f} MB, the run tests {most:,} rows"
        raise TooLargeError(large, hint=HOW)
    words = dict.fromkeys(("dataset", "split", "split_hash", "id"), str)
    try:
        frame = pd.read_csv(path, dtype=words, keep_default_na=False, low_memory=False, nrows=2 * most + 1)
    except (ValueError, OSError) as error:
        raise FormatError(f"{path} cannot be read: {error}", hint=HOW) from error
    if len(frame) > 2 * most:
        large = f"{path} has more than {2 * most:,} rows, the run tests {most:,}"
        raise TooLargeError(large, hint="one for each test row")
    if lacks := [name for name in (*PART, "row") if name not in frame]:
        raise MissingColumnError(f"{path} has no column {lacks[0]!r}", hint=HOW)
    if not len(frame):
        raise EmptyError(f"{path} has no rows")
    heads = pd.read_csv(path, header=None, nrows=1, dtype=str).iloc[0]
    if (twice := heads[heads.duplicated()]).size:
        raise AmbiguousColumnError(f"{path} has two columns {twice.iloc[0]!r}", hint="keep one of them")
    for name in ("repeat", "fold", "row"):
        whole = pd.to_numeric(frame[name], errors="coerce")
        if (bad := ~((whole % 1 == 0) & (whole.abs() < 2**53))).any():
            raise CellError(
                f"{path} has {name} {str(frame[name][bad].iloc[0])!r}, no whole number", hint="keep that column"
            )
        frame[name] = whole.astype(np.int64)
    return frame, path.read_bytes()


def _parents(smiles: np.ndarray) -> set[str]:
    """The different molecules, salts and stereoisomers taken for one."""
    return {*molecule_keys(smiles, stereo=False).values} - {""}


def _check(split: Split, test: Table, frame: pd.DataFrame, where: str, noise: float) -> Prediction:
    """The rows of a fold as a prediction for its test rows; raise ``DataError`` for what is wrong."""
    numbers = frame["row"]
    for rows, words in (
        (numbers[numbers.isin(split.train)], "of the training part"),
        (numbers[~numbers.isin(split.test)], "that it does not test"),
        (numbers[numbers.duplicated()], "twice"),
        (pd.Series(np.setdiff1d(split.test, numbers)), "too few: missing"),
    ):
        if len(rows):
            raise RowIdError(f"{where} has {count(len(rows), 'row')} {words}: {_some(rows)}")
    frame = frame.set_index("row", drop=False).loc[split.test]
    if "id" in frame and (bad := frame["row"][~_same_ids(frame["id"], pd.Series(test.ids, frame.index))]).size:
        raise RowIdError(f"{where} has ids of other rows: {_some(bad)}")
    values = {}
    for column in (name for target in test.row_targets for name in target.columns):
        if column not in frame:
            hint = "a column of predictions for each target"
            raise MissingColumnError(f"{where} has no column {column!r}", hint=hint)
        if frame[column].dtype == bool:
            hint = "give numbers: 1 and 0, or probabilities"
            raise FormatError(f"{where} has True and False as {column!r}", hint=hint)
        with np.errstate(over="ignore"):  # what single precision cannot hold is no finite number, as it is kept so
            values[column] = pd.to_numeric(frame[column], errors="coerce").to_numpy(np.float32).astype(np.float64)
        if len(bad := frame["row"][~np.isfinite(values[column])]):
            raise CellError(f"{where}: {count(len(bad), 'value')} of {column!r} that are no number, rows {_some(bad)}")
    for target in test.row_targets:
        p = np.stack([values[name] for name in target.columns])
        if target.kind in ("binary", "multiclass") and (p.min() < 0 or p.max() > 1):
            raise CellError(f"{where} has scores of {target.name!r} outside 0 to 1", hint="give probabilities")
        if target.kind == "multiclass" and np.abs(p.sum(axis=0) - 1).max() > WHOLE:
            raise CellError(f"{where} has probabilities of {target.name!r} that do not sum to 1")
    value = np.stack([*values.values()], axis=1)
    refuse_labels(test.row_targets, test.y, value, noise, where)
    return Prediction(test.ids, test.row_targets, value, test.status, test.reason)


def _same_ids(given: pd.Series, own: pd.Series) -> pd.Series:
    """Whether ids are the rows' own, as far as a program that reads 007 as a number, and NA as nothing, keeps them."""
    numbers = [pd.to_numeric(ids, errors="coerce") for ids in (given, own)]
    return (given == own) | ((given == "") & own.isin(NOTHING)) | (numbers[0] == numbers[1])


def _some(rows: pd.Series) -> str:
    named = ", ".join(str(row) for row in rows[:SHOWN])
    return named + (f" and {len(rows) - SHOWN:,} more" if len(rows) > SHOWN else "")
