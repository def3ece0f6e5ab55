"""Open a benchmark's folder to write into it, or read the manifests and predictions that it holds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import (
    BusyError,
    ConflictError,
    DataError,
    FileKeptError,
    FormatError,
    MismatchError,
    MissingFileError,
    MolgraphError,
)
from molgraph.base.paths import missing_file, storage_error, write_whole
from molgraph.base.toml_config import parse_json
from molgraph.data.datasets import load_dataset
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import PREDICTIONS, Cell
from molgraph.evaluate.benchmark.plan import OWN, PLAN, WORK, DatasetPlan, Planned
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe
from molgraph.evaluate.benchmark.store import read_manifest, read_stored

RECIPE, SUBMITTED, SCORES = "recipe.toml", "submitted", "scores.csv"
_WRITTEN = (RECIPE, SCORES, PLAN, "splits", "cells", "folds", SUBMITTED, WORK)


class Predicted(NamedTuple):
    """A cell's stored predictions of n rows of the dataset, ascending.

    ``y`` has the measured values by target, ``p`` the predicted columns by name (a target's, or ``target:class``);
    float64 [n].
    """

    rows: np.ndarray
    y: Mapping[str, np.ndarray]
    p: Mapping[str, np.ndarray]

    def of(self, target: Target) -> np.ndarray:
        """The predictions of a target: float64 [n], or [n, classes] of several classes."""
        columns = [self.p[name] for name in target.columns]
        return np.stack(columns, axis=1) if target.kind == "multiclass" else columns[0]


class Record(NamedTuple):
    """A cell that was computed, and its manifest."""

    cell: Cell
    manifest: Mapping[str, Any]


@dataclass(frozen=True)
class Records(Planned):
    """What a benchmark's folder holds for its recipe, the one it was last run with; other cells are not read."""

    out: Path
    recipe: BenchRecipe
    problems: Mapping[str, DatasetPlan]  # its datasets by name

    @cached_property
    def done(self) -> tuple[Record, ...]:
        """Cells that were computed, failures too, in the plan's order."""
        pairs = ((cell, read_manifest(self.out, cell)) for cell in self.cells)
        return tuple(Record(cell, manifest) for cell, manifest in pairs if manifest is not None)

    @property
    def wanted(self) -> int:
        """How many cells the recipe asks for."""
        return len(self.cells)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each cell that was computed: what its manifest says, seconds by step."""
        rows = [{**m, "split": c.split} | {f"seconds_{k}": v for k, v in m["seconds"].items()} for c, m in self.done]
        return pd.DataFrame(rows).drop(columns=["seconds", "search", "targets", "resolved"], errors="ignore")

    def table(self, dataset: str) -> Table:
        """A dataset's rows, as its cells were handed them, or loaded anew where that file is gone.

        Raises:
            DataError: what is loaded now is another table.
        """
        problem = self.problems[dataset]
        if problem.table_file(self.out).is_file():
            return read_handed(problem.table_file(self.out))
        if problem.edition == OWN:
            raise DataError(f"the rows of the table {dataset!r} are gone", hint="run the recipe again")
        loaded = load_dataset(dataset)
        if loaded.hash != problem.data_hash:
            raise MismatchError(f"{dataset} has the hash {loaded.hash}, the plan {problem.data_hash}")
        return loaded.table

    def path(self, cell: Cell) -> Path:
        """A cell's predictions."""
        return cell.folder(self.out) / PREDICTIONS

    def predictions(self, cell: Cell, manifest: Mapping[str, Any] | None = None) -> Predicted:
        """The predictions of a cell that ended well; its manifest is read where it is not at hand.

        Raises:
            MissingFileError: there are none.
            DataError: the file is damaged, or has another sha256 than the manifest states.
        """
        path, manifest = self.path(cell), manifest or read_manifest(self.out, cell)
        if manifest is None or not path.is_file():
            raise MissingFileError(f"{cell} has no predictions", hint="its manifest says why, where it was computed")
        columns = read_stored(path, manifest["predictions_sha256"])
        y, p = ({k[2:]: v.to_numpy() for k, v in columns.items() if k.startswith(kind)} for kind in ("y:", "p:"))
        return Predicted(columns["row"].to_numpy(), y, p)

    def __iter__(self) -> Iterator[Record]:
        return iter(self.done)

    def __repr__(self) -> str:
        failed = sum(r.manifest["status"] != "ok" for r in self.done)
        return f"Records of {self.recipe.name}: {len(self.done):,} of {self.wanted:,} cells, {failed:,} failed"


def read_records(out: str | Path) -> Records:
    """Read what a benchmark's folder holds, with the rows that were submitted for its splits as they stand."""
    out = Path(out)
    if not (out / RECIPE).is_file():
        raise missing_file(out / RECIPE, "recipe of a benchmark that was run")
    recipe = BenchRecipe.from_toml(out / RECIPE)
    plans = {name: out / PLAN / f"{name}.json" for name in recipe.datasets}
    problems = {name: DatasetPlan.load(path) for name, path in plans.items() if path.is_file()}
    rows = []
    for path in sorted((out / SUBMITTED).glob("*.json")):
        try:
            cells = [Cell(**cell) for cell in parse_json(path.read_text(encoding="utf-8"))["cells"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise FormatError(f"{path} is damaged: {error}", hint="delete it and submit again") from error
        for cell in cells:
            problem, meta = problems.get(cell.dataset), read_manifest(out, cell) or {}
            stands = (meta.get("data_hash"), meta.get("split_hash"))  # else it is of data, or of folds, of before
            if problem is not None and stands == (problem.data_hash, problem.split_hash.get(cell.part)):
                problems[cell.dataset] = replace(problem, cells=(*problem.cells, cell))
        lacks = tuple(name for name in recipe.datasets if name not in {cell.dataset for cell in cells})
        rows.append(BenchMethod(name=path.stem, kind="external", skip=lacks))
    return Records(out, recipe.model_copy(update={"method": (*recipe.method, *rows)}), problems)


def open_folder(out: Path, recipe: BenchRecipe, source: Path | None = None, *, write: bool = True) -> None:
    """Make the folder, or go on in it, with the recipe that is to be run; without ``write``, look whether that can be.

    A folder that holds other things than a benchmark is refused, and so are files that a run would read and write over.
    ``source`` is the file that the recipe was read from; the folder's own copy serves where it is still as it was.
    """
    path, text = out / RECIPE, recipe.to_toml().encode()
    try:
        foreign = out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()) and not _is_own(out)
    except OSError as error:
        raise storage_error(f"cannot read the benchmark's folder {out}", error) from error
    if foreign:
        raise FileKeptError(
            f"{out} holds other files, and no benchmark: they could be written over",
            hint="name a folder that is new or empty, or that of an earlier run",
        )
    named = [split.params.get(key) for split in recipe.split for key in ("path", *PARTS)]
    for read in [source, *(table.path for table in recipe.table), *(file for file in named if isinstance(file, str))]:
        if read is not None and lies_in(out, read) and not (read is source and _renamed(read) == text):
            raise ConflictError(
                f"{read} is read, and lies where the run writes", hint="name another folder, or move that file first"
            )
    if taken := [method.row for method in recipe.method if (out / SUBMITTED / f"{method.row}.json").exists()]:
        raise ConflictError(
            f"{out} holds a submission called {taken[0]!r}",
            hint=f"give the method another label, or delete {out / SUBMITTED / taken[0]}.json",
        )
    if not write:
        return
    try:
        (out / WORK).mkdir(parents=True, exist_ok=True)  # first: it is the mark that the folder is a benchmark's
        if path.is_file() and _renamed(path) == text:
            return
        (out / SCORES).unlink(missing_ok=True)  # of cells that the recipe no longer asks for
    except OSError as error:
        raise storage_error(f"cannot write the benchmark's folder {out}", error) from error
    write_whole(path, text)


def _renamed(path: str | Path) -> bytes:
    """A folder's recipe, with the key ``recipe`` of the splits of older ones under its name of today."""
    return re.sub(rb"^recipe = ", b"splitter = ", Path(path).read_bytes(), flags=re.MULTILINE)


def _is_own(out: Path) -> bool:
    if (out / WORK).is_dir():
        return True
    with suppress(MolgraphError):  # one that was copied without its hidden folder
        return bool(read_records(out).problems)
    return False


def lies_in(out: Path, path: str | Path, *more: str) -> bool:
    """Whether a path is one of the files that a run writes into its folder, or of ``more``, links followed."""
    asked = Path(os.path.normcase(os.path.realpath(path)))
    return any(asked.is_relative_to(os.path.normcase(os.path.realpath(out / name))) for name in (*_WRITTEN, *more))


def check_unchanged(out: Path, recipe: BenchRecipe) -> None:
    """Raise ``BusyError`` where another run has begun in the folder with another recipe."""
    if _renamed(out / RECIPE) != recipe.to_toml().encode():
        raise BusyError(
            f"another run has begun in {out} with another recipe",
            hint="what is done is kept: wait for that run and give the command once more, or name another folder",
        )
