"""The splitters that read lists of rows: ``file``, the user's own, and ``index/file``, as somebody published them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from molgraph.base.errors import (
    DataError,
    FormatError,
    MissingColumnError,
    MissingOptionError,
    RowIdError,
    UnsupportedError,
)
from molgraph.base.registry import full_name, names
from molgraph.data.splits.columns import parts_of_words
from molgraph.data.splits.fits import check_rows
from molgraph.data.splits.split import FORMAT, PARTS, Split, read_json
from molgraph.data.splits.splitter import WORDS, SplitParts, Task, register_split

ENDINGS = (".json", ".npz", ".npy", ".csv", ".csv.gz", ".txt", ".txt.gz", ".idx", "")


@register_split(
    "partition",
    "file",
    "a file of the user's: JSON of row numbers, or CSV of id and split",
    uses_fractions=False,
    params={"path": None},
    asks="Whatever the file was made for.",
)
def split_by_file(task: Task) -> SplitParts:
    """The user's own file: JSON from ``Split.save`` or with lists of row numbers, or CSV with columns id and split."""
    path = _path(task)
    if path.suffix != ".json":
        return parts_of_words(task, _words_of_ids(path, task.table.ids), str(path))
    if _mapping(path).get("format") != FORMAT:
        return _parts(task, _from_path(path), str(path))
    split = Split.load(path)
    check_rows(split, task.table, str(path))
    return SplitParts(split.train, split.valid, split.test, {out.row: out.reason for out in split.left_out})


def _words_of_ids(path: Path, ids: np.ndarray) -> list[str]:
    """The word that a csv of id and split has for each id; empty where it has none."""
    frame = _frame(path, keep_default_na=False)
    for name in ("id", "split"):
        if name not in frame.columns:
            raise MissingColumnError(f"{path} has no column {name!r}", hint=f"it has {', '.join(frame.columns)}")
    word_of = frame.set_index("id")["split"].str.strip().str.lower()
    if word_of.index.has_duplicates:
        raise RowIdError(f"{path} has the id {word_of.index[word_of.index.duplicated()][0]!r} twice")
    if strangers := set(word_of.index) - set(ids):
        raise RowIdError(f"{path} has the id {min(strangers)!r}, the table does not")
    return word_of.reindex(ids, fill_value="").tolist()


@register_split(
    "partition",
    "index/file",
    "row numbers as published (OGB, JT-VAE, ...), as they are; forms of a molecule may leak",
    reproduces=True,
    uses_fractions=False,
    params={"path": None, "train": None, "valid": None, "test": None, "first": 0},
    sources=("path", *PARTS),
    asks="Whatever the published lists were made for.",
)
def split_by_index(task: Task) -> SplitParts:
    """The parts that published files of row numbers name, as they are.

    Settings: ``path``, one file that holds all parts (JSON or npz with ``train``, ``valid``, ``test``; csv with such
    columns) or a folder with one file for each, as the Open Graph Benchmark has them; or ``train``, ``valid`` and
    ``test``, a file or the row numbers themselves (one number a line, csv without a header, npy or a JSON list).
    ``first`` is the number of the first row, 0 or 1. Where no training part is given, all other rows train, as with
    JT-VAE's lists.
    """
    given = {name: task.params[name] for name in PARTS if task.params[name] is not None}
    if (task.params["path"] is None) == (not given):
        raise MissingOptionError(
            "the split 'index/file' needs its row numbers",
            hint="give path=FILE_OR_FOLDER, or train=FILE, valid=FILE and test=FILE",
        )
    if given:
        found, source = {name: _numbers(lists, name) for name, lists in given.items()}, "the lists"
    else:
        found, source = _from_path(path := _path(task)), str(path)
    return _parts(task, found, source, int(task.params["first"]), others_train=True)


def _path(task: Task) -> Path:
    path = task.params["path"]
    if not isinstance(path, str | os.PathLike):
        not_this = f", not {path!r}" * (path is not None)
        raise MissingOptionError("the split needs a path" + not_this, hint="give path=FILE")
    return Path(path)


def splitter_or_file(name: str) -> tuple[str, dict[str, Any]]:
    """A splitter's name, or a file or folder of row numbers, as the splitter that serves it and its settings.

    Example:
        >>> splitter_or_file("random")
        ('random', {})
    """
    path = Path(name)
    if full_name("split", name) in names("split") or not os.path.exists(path):
        return full_name("split", name), {}
    head = ""
    if path.is_file() and path.suffix in (".csv", ".json"):
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                head = file.read(200)
        except OSError as error:
            raise _unreadable(path, error) from error
    mark = "split" if path.suffix == ".csv" else FORMAT
    return "file" if mark in head else "index/file", {"path": path}


def _parts(
    task: Task, found: Mapping[str, np.ndarray], source: str, first: int = 0, *, others_train: bool = False
) -> SplitParts:
    """The parts from the row numbers of each, counted from ``first``; ``others_train`` where no list of training is."""
    n = len(task.table)
    part_of = np.full(n, -1)
    for k, name in enumerate(PARTS):
        rows = found.get(name, np.zeros(0, dtype=np.int64)) - first
        outside = rows[(rows < 0) | (rows >= n)]
        if len(outside):
            raise RowIdError(
                f"{source} names row {outside[0] + first} in {name}; the table has rows {first} to {n - 1 + first}",
                hint="is it the table that the lists were made for, in its order? first=1 counts rows from 1",
            )
        values, counts = np.unique(rows, return_counts=True)
        if (counts > 1).any():
            raise RowIdError(f"{source} names row {values[counts > 1][0] + first} twice in {name}")
        both = rows[part_of[rows] >= 0]
        if len(both):
            raise RowIdError(f"{source} names row {both[0] + first} in {PARTS[part_of[both[0]]]} and in {name}")
        part_of[rows] = k
    if others_train and "train" not in found:
        part_of[part_of < 0] = 0
    mine = part_of[task.rows]
    return SplitParts.of(task.rows, mine, dict.fromkeys(task.rows[mine < 0].tolist(), f"in no part of {source}"))


def _from_path(path: Path) -> dict[str, np.ndarray]:
    """The row numbers of each part, from a file of all parts or a folder with a file for each."""
    if path.is_dir():
        return _from_folder(path)
    if path.name.endswith((".json", ".npz")):
        held = _mapping(path)
    elif path.name.endswith((".csv", ".csv.gz")):
        frame = _frame(path)
        held = {str(name): frame[name].dropna().tolist() for name in frame.columns if _word(str(name)) is not None}
    else:
        raise UnsupportedError(
            f"{path.name} cannot hold all parts", hint="give a JSON, npz or csv, a folder, or test=FILE for one part"
        )
    found: dict[str, np.ndarray] = {}
    for name, values in held.items():
        part = _word(name)
        if part is None:
            raise FormatError(f"{path}: {name!r} is no part", hint="parts: train, valid, test")
        if part in found:
            raise FormatError(f"{path} has the part {part!r} twice")
        found[part] = _whole(values, f"{path}, {name}")
    if not found:
        raise FormatError(f"{path} names no part", hint="parts: train, valid, test")
    return found


def _from_folder(path: Path) -> dict[str, np.ndarray]:
    found: dict[str, Path] = {}
    try:
        inside = sorted(path.iterdir())
    except OSError as error:
        raise _unreadable(path, error) from error
    for file in inside:
        stem, dot, ending = file.name.partition(".")
        part = _word(stem)
        if part is None or not file.is_file() or dot + ending not in ENDINGS:
            continue
        if part in found:
            raise FormatError(f"{path} has two files for {part}: {found[part].name} and {file.name}", hint="name one")
        found[part] = file
    if not found:
        raise FormatError(f"{path} has no file for train, valid or test", hint="such as train.csv.gz or test_idx.txt")
    return {part: _numbers(file, part) for part, file in found.items()}


def _word(name: str) -> str | None:
    """The part that a name speaks of: ``jtvae_valid_idx`` is valid; None where it names none or several."""
    parts = {PARTS[WORDS[w]] for w in re.split(r"[^a-z]+", name.lower()) if w in WORDS}
    return parts.pop() if len(parts) == 1 else None


def _numbers(source: Any, name: str) -> np.ndarray:
    """The row numbers of one part, from a file of them or as they are."""
    if not isinstance(source, str | os.PathLike):
        return _whole(source, name)
    path = Path(source)
    if path.suffix == ".npz":
        held = _mapping(path)
        if len(held) != 1:
            raise FormatError(f"{path} holds {len(held)} arrays, expected one", hint="give it as path=FILE")
        return _whole(next(iter(held.values())), str(path))
    try:
        if path.suffix == ".npy":
            return _whole(np.load(path, allow_pickle=False), str(path))
        if path.suffix == ".json":
            return _whole(read_json(path), str(path))
        return _whole(pd.read_csv(path, header=None, dtype=str, skip_blank_lines=True)[0], str(path))
    except pd.errors.EmptyDataError:
        return np.zeros(0, dtype=np.int64)
    except (OSError, ValueError, EOFError) as error:
        raise _unreadable(path, error) from error


def _mapping(path: Path) -> dict[str, Any]:
    try:
        if path.name.endswith(".npz"):
            with np.load(path, allow_pickle=False) as held:
                return {name: held[name] for name in held.files}
        raw = read_json(path)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        raise _unreadable(path, error) from error
    if not isinstance(raw, dict):
        raise FormatError(f"{path} holds no parts", hint='give {"train": [...], "valid": [...], "test": [...]}')
    return raw


def _frame(path: Path, **options: Any) -> pd.DataFrame:
    if path.exists() and not path.is_file():
        raise FormatError(f"cannot read {path}: it is no file", hint="name a file")
    try:
        return pd.read_csv(path, dtype=str, **options)
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    kind = DataError if isinstance(error, OSError) else FormatError
    return kind(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")


def _whole(values: Any, source: str) -> np.ndarray:
    """int64: whole numbers, whatever they were written as."""
    if not isinstance(values, Iterable) or isinstance(values, str | Mapping):
        raise FormatError(f"{source} holds no list of row numbers")
    listed = np.asarray(values if isinstance(values, np.ndarray) else list(values))
    try:
        numbers = np.zeros(0) if not listed.size else listed.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise FormatError(f"{source} holds something that is no row number: {error}") from error
    if numbers.ndim != 1 or listed.dtype == bool or not np.isfinite(numbers).all() or (numbers % 1).any():
        raise FormatError(f"{source} holds no list of whole row numbers")
    return numbers.astype(np.int64)
