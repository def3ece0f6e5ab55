"""The splitters that read lists of rows: ``file``, the user's own, and ``index/file``, as somebody published them."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd

from molgraph.base.errors import (
    DataError,
    FormatError,
    MismatchError,
    MissingColumnError,
    MissingOptionError,
    RowIdError,
    UnsupportedError,
)
from molgraph.base.registry import full_name, names
from molgraph.chem.standardise import FIRST
from molgraph.data.splits.columns import parts_of_words
from molgraph.data.splits.split import ANEW, FORMAT, PARTS, Split, digests_of, read_json, row_contents, rows_hash
from molgraph.data.splits.splitter import WORDS, SplitParts, Task, register_split
from molgraph.data.standardise import standardise
from molgraph.data.table import Table

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
    if path.suffix not in (".json", ".npz", ".npy"):
        return parts_of_words(task, _words_of_ids(path, task.table.ids), str(path))
    if _named_lists(path).get("format") != FORMAT:
        return _parts(task, _lists_of_parts(path), str(path))
    split = Split.load(path)
    check_rows(split, task.table, str(path))
    return SplitParts(split.train, split.valid, split.test, {out.row: out.reason for out in split.left_out})


def _words_of_ids(path: Path, ids: np.ndarray) -> list[str]:
    """The word that a csv of id and split has for each id; empty where it has none."""
    frame = _read(path, header=0)
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
    sources = {name: task.params[name] for name in PARTS if task.params[name] is not None}
    if (task.params["path"] is None) == (not sources):
        raise MissingOptionError(
            "the split 'index/file' needs its row numbers",
            hint="give path=FILE_OR_FOLDER, or train=FILE, valid=FILE and test=FILE",
        )
    if not sources:
        lists, source = _lists_of_parts(_path(task)), str(_path(task))
    else:
        paths = {name: Path(rows) if isinstance(rows, str | os.PathLike) else rows for name, rows in sources.items()}
        lists, source = {name: _numbers(rows, name) for name, rows in paths.items()}, "the lists"
    return _parts(task, lists, source, int(task.params["first"]), others_train=True)


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


def check_rows(split: Split, table: Table, source: str) -> None:
    """Raise ``MismatchError`` unless the table's rows are those of the split, as they stand or once standardised.

    Row numbers mean the same rows before and after standardising, so that one file serves ``train`` (which
    standardises) and a benchmark (which does not).

    Raises:
        MismatchError: the cause (the number of rows, their order, or the first one that differs) and what to do.
    """
    other = f"{source} was made for other rows"
    if len(table) != split.n_rows:
        message = f"{source} was made for a table of {split.n_rows} rows, this one has {len(table)}"
        raise MismatchError(message, hint=ANEW)
    hint = f"{ANEW}; tried with the standardisers {', '.join(names('standardiser'))}"
    differing = []  # rows, in each form of the table
    for contents in _forms(table):
        if not split.content or rows_hash(contents) == split.content:
            return
        digests = digests_of(contents)
        if len(digests) != len(split.digests) or digests == split.digests:  # a file of an earlier version has none
            continue
        here, there = (np.array(re.findall("..", text)) for text in (digests, split.digests))
        differing.append(np.flatnonzero(here != there))
        if sorted(here) == sorted(there):
            row = differing[-1][0]
            message = f"{source} was made for the same rows in another order, from row {row + 1} "
            message += f"(id {str(table.ids[row])!r}) on"
            raise MismatchError(message, hint=f"{ANEW}; a split kept as a .csv of ids knows no order")
    if not differing:
        raise MismatchError(f"{other}: ids or molecules differ, or stand in another order", hint=hint)
    rows = min(differing, key=len)
    if len(rows) > 0.9 * len(table):  # a digest is one of 256, so that a few are equal by chance
        hint = f"were the ids read from another column then (--id)? Else {hint}"
        raise MismatchError(f"{other}: not one has the id and molecule that it had", hint=hint)
    more = f", and {len(rows) - 1:,} more have" if len(rows) > 1 else ""
    first = f"row {rows[0] + 1} (id {str(table.ids[rows[0]])!r})"
    raise MismatchError(f"{other}: {first} has another id or molecule{more}", hint=hint)


def _forms(table: Table) -> Iterator[list[str]]:
    """The contents of the rows: as they stand, then after each standardiser."""
    yield row_contents(table)
    if any(e.kind == "molecule" for e in table.entities):
        for preset in [*names("standardiser")[::-1], *(f"{name}/1" for name in FIRST)]:  # the default first
            if preset != "none":
                yield row_contents(standardise(table, preset))


def _path(task: Task) -> Path:
    path = task.params["path"]
    if not isinstance(path, str | os.PathLike):
        wrong = "" if path is None else f", not {path!r}"
        raise MissingOptionError(f"the split needs a path{wrong}", hint="give path=FILE")
    return Path(path)


def _parts(
    task: Task, lists: Mapping[str, np.ndarray], source: str, first: int = 0, *, others_train: bool = False
) -> SplitParts:
    """The parts from the row numbers of each, counted from ``first``; ``others_train`` where no list of training is."""
    n = len(task.table)
    part_of = np.full(n, -1)
    for k, name in enumerate(PARTS):
        rows = lists.get(name, np.zeros(0, dtype=np.int64)) - first
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
    if others_train and "train" not in lists:
        part_of[part_of < 0] = 0
    used = part_of[task.rows]
    return SplitParts.of(task.rows, used, dict.fromkeys(task.rows[used < 0].tolist(), f"in no part of {source}"))


def _lists_of_parts(path: Path) -> dict[str, np.ndarray]:
    """The row numbers of each part, from a file of all parts or a folder with a file for each."""
    lists, name_of = _named_lists(path), dict[str, str]()
    for name in lists:
        part = _part_of(name)
        if part is None:
            raise FormatError(f"{path}: {name!r} is no part", hint="parts: train, valid, test")
        if part in name_of:
            raise FormatError(f"{path} has the part {part!r} twice: {name_of[part]} and {name}", hint="keep one")
        name_of[part] = name
    if not lists:
        raise FormatError(f"{path} has no list for train, valid or test", hint="as a folder, such as test_idx.txt")
    return {part: _numbers(lists[name], f"{path}, {name}") for part, name in name_of.items()}


def _named_lists(path: Path) -> dict[str, Any]:
    """Lists of row numbers, or files of them, by the names that a file or folder has for them."""
    if path.is_dir() and path.suffix != ".json":
        try:
            files = sorted(file for file in path.iterdir() if file.is_file())
        except OSError as error:
            raise _unreadable(path, error) from error
        stems = [file.name.partition(".")[0] for file in files]
        named = zip(stems, files, strict=True)
        return {file.name: file for stem, file in named if file.name[len(stem) :] in ENDINGS and _part_of(stem)}
    if path.name.endswith((".csv", ".csv.gz")):
        frame = _read(path, header=0)
        return {name: [cell for cell in frame[name] if cell.strip()] for name in frame.columns if _part_of(name)}
    if not path.name.endswith((".json", ".npz")):
        raise UnsupportedError(
            f"{path.name} cannot hold all parts", hint="give a JSON, npz or csv, a folder, or test=FILE for one part"
        )
    lists = _read(path)
    if not isinstance(lists, dict):
        raise FormatError(f"{path} holds no parts", hint='give {"train": [...], "valid": [...], "test": [...]}')
    return lists


def _part_of(name: str) -> str | None:
    """The part that a name speaks of: ``jtvae_valid_idx`` is valid; None where it names none or several."""
    parts = {PARTS[WORDS[word]] for word in re.split(r"[^a-z]+", name.lower()) if word in WORDS}
    return parts.pop() if len(parts) == 1 else None


def _read(path: Path, header: int | None = None) -> Any:
    """A JSON value, an array (npy), arrays by name (npz), or a text as a frame, whose ``header`` may be its line 0."""
    if path.exists() and not path.is_file():
        raise FormatError(f"cannot read {path}: it is no file", hint="name a file")
    try:
        if path.suffix == ".json":
            return read_json(path)
        if path.suffix == ".npy":
            return np.load(path, allow_pickle=False)
        if path.suffix == ".npz":
            with np.load(path, allow_pickle=False) as arrays:
                return dict(arrays)
        return pd.read_csv(path, header=header, dtype=str, keep_default_na=False)
    except (OSError, ValueError, EOFError, BadZipFile) as error:
        if isinstance(error, pd.errors.EmptyDataError) and header is None:
            return [[]]
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: Exception) -> DataError:
    kind = DataError if isinstance(error, OSError) else FormatError
    return kind(f"cannot read {path}: {getattr(error, 'strerror', None) or error}")


def _numbers(rows: Any, source: str) -> np.ndarray:
    """int64: the row numbers of one part, from a file of them or as they are."""
    if isinstance(rows, Path):
        path, source = rows, str(rows)
        rows = _read(path)
        if path.suffix == ".npz" and len(rows) == 1:
            (rows,) = rows.values()
        elif path.suffix not in (".npz", ".npy", ".json"):
            rows = rows[0]
    if not isinstance(rows, Iterable) or isinstance(rows, str | Mapping):
        raise FormatError(f"{source} holds no list of row numbers")
    values = np.asarray(rows if isinstance(rows, np.ndarray) else list(rows))
    try:
        numbers = np.zeros(0) if not values.size else values.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise FormatError(f"{source} holds something that is no row number: {error}") from error
    if numbers.ndim != 1 or values.dtype == bool or not np.isfinite(numbers).all() or (numbers % 1).any():
        raise FormatError(f"{source} holds no list of whole row numbers")
    return numbers.astype(np.int64)
