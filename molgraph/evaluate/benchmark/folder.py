"""Open a benchmark's folder, and refuse to write over files that are not its own or that are read."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from molgraph.base.errors import MolgraphError, StorageError, UsageError
from molgraph.base.paths import atomic_write, storage_error
from molgraph.data.splits.split import PARTS
from molgraph.evaluate.benchmark.plan import PLAN, WORK
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run_folder import RECIPE, SUBMITTED, read_records
from molgraph.evaluate.benchmark.scoring import SCORES

_WRITTEN = (RECIPE, SCORES, PLAN, "splits", "cells", "folds", SUBMITTED, WORK)


def check_folder(out: Path, recipe: BenchRecipe, source: Path | None = None) -> None:
    """Refuse a folder that holds other things than a benchmark, and files that a run would read and write over.

    ``source`` is the file that the recipe was read from; the folder's own copy serves where it is still as it was.
    """
    try:
        foreign = out.is_dir() and any(not path.name.startswith(".") for path in out.iterdir()) and not _is_own(out)
    except OSError as error:
        raise storage_error(f"cannot read the benchmark's folder {out}", error) from error
    if foreign:
        raise StorageError(
            f"{out} holds other files, and no benchmark: they could be written over",
            hint="name a folder that is new or empty, or that of an earlier run",
        )
    read = [*([] if source is None else [source]), *(Path(table.path) for table in recipe.table)]
    named = [split.params.get(key) for split in recipe.split for key in ("path", *PARTS)]
    for path in [*read, *(Path(each) for each in named if isinstance(each, str))]:
        if lies_in(out, path) and not (path == source and path.read_bytes() == recipe.to_toml().encode()):
            raise UsageError(
                f"{path} is read, and lies where the run writes", hint="name another folder, or move that file first"
            )


def lies_in(out: Path, path: str | Path, *more: str) -> bool:
    """Whether a path is one of the files that a run writes into its folder, or of ``more``, links followed."""
    asked = Path(os.path.normcase(os.path.realpath(path)))
    return any(asked.is_relative_to(os.path.normcase(os.path.realpath(out / name))) for name in (*_WRITTEN, *more))


def open_folder(out: Path, recipe: BenchRecipe) -> None:
    """Make the folder, or go on in it, with the recipe that is to be run."""
    try:
        (out / WORK).mkdir(parents=True, exist_ok=True)  # first: it is the mark that the folder is a benchmark's
        path, text = out / RECIPE, recipe.to_toml().encode()
        before = path.read_bytes() if path.is_file() else None
        if before == text:
            return
        (out / SCORES).unlink(missing_ok=True)  # of cells that the recipe no longer asks for
    except OSError as error:
        raise storage_error(f"cannot write the benchmark's folder {out}", error) from error
    with atomic_write(path) as file:
        file.write(text)


def check_unchanged(out: Path, recipe: BenchRecipe) -> None:
    """Raise ``StorageError`` where another run has begun in the folder with another recipe."""
    if (out / RECIPE).read_bytes() != recipe.to_toml().encode():
        raise StorageError(
            f"another run has begun in {out} with another recipe",
            hint="what is done is kept: wait for that run and give the command once more, or name another folder",
        )


def _is_own(out: Path) -> bool:
    if (out / WORK).is_dir():
        return True
    with suppress(MolgraphError):  # one that was copied without its hidden folder
        return bool(read_records(out).problems)
    return False
