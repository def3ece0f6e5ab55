"""Draw the splits of a benchmark once, and keep them in its folder."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import DataError, MolgraphError, StorageError
from molgraph.base.paths import write_whole
from molgraph.base.registry import get
from molgraph.data.read import read_table
from molgraph.data.splits import Split, repeated_kfold, split_table
from molgraph.data.splits.columns import column_values
from molgraph.data.splits.split import PARTS, row_contents, rows_hash
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import file_of_split
from molgraph.evaluate.benchmark.recipe import BenchRecipe, BenchSplit, OwnTable

FrozenSplits = dict[tuple[str, int, int], Split]
logger = logging.getLogger("molgraph")


def freeze(
    recipe: BenchRecipe, out: Path, dataset: str, table: Table, *, write: bool
) -> tuple[FrozenSplits, dict[str, str]]:
    """The splits of a dataset by label, repeat and fold, and why others cannot divide it by their label."""
    frozen, refused = FrozenSplits(), dict[str, str]()
    for split in recipe.split_of(dataset):
        try:
            frozen |= _frozen(recipe, out, dataset, split, table, write=write)
        except StorageError:  # no fault of the split's: the folder cannot be written
            raise
        except MolgraphError as error:
            refused[split.name] = error.in_one_line
    return frozen, refused


def _frozen(
    recipe: BenchRecipe, out: Path, dataset: str, split: BenchSplit, table: Table, *, write: bool
) -> FrozenSplits:
    """The splits of one label: those that lie in the folder, where they are the ones asked for."""
    files = {(split.name, *part): file_of_split(out, dataset, split.name, *part) for part in split.parts}
    mark = out / "splits" / dataset / split.name / "asked.json"
    settings, source = _settings(recipe, dataset, split, table)
    asked = {"content": rows_hash(row_contents(table))} | ({"source": source} if source else {})
    asked |= split.model_dump(mode="json", exclude={"label", "method_seeds", "datasets", "splitter"})
    asked["recipe"] = split.splitter  # marks keep the key of before: nothing is drawn anew for its name
    wanted = json.dumps(asked, sort_keys=True)
    if mark.is_file() and mark.read_bytes() == wanted.encode():
        return {part: Split.load(file) for part, file in files.items()}
    logger.info("splitting %s: %s", dataset, split.name)
    splits = dict(zip(files, _draw(split, table, settings), strict=True))
    if write:
        mark.parent.mkdir(parents=True, exist_ok=True)
        if mark.is_file():
            mark.unlink()
            for old in mark.parent.glob("r[0-9]*-f[0-9]*.json"):
                old.unlink()
        for part, one in splits.items():
            one.save(files[part])
        write_whole(mark, wanted)  # last: it says that all are there
    return splits


def _draw(split: BenchSplit, table: Table, settings: Mapping[str, Any]) -> list[Split]:
    if split.folds is not None:
        return [*repeated_kfold(table, split.repeats, split.folds, split.splitter, split.seeds[0], **settings)]
    how = {"fractions": split.fractions, "quiet": True, **settings}
    splits = [split_table(table, split.splitter, seed=seed, **how) for seed in split.seeds]
    n = splits[0].params.get("folds")
    if n is not None and settings.get("fold") is None:
        raise DataError(
            f"its column holds the folds 0 to {n - 1}, and one split tests one of them",
            hint=f"say folds = {n} in the [[split]], or which one is tested: params = {{ fold = 0 }}",
        )
    return splits


def _settings(recipe: BenchRecipe, dataset: str, split: BenchSplit, table: Table) -> tuple[dict[str, Any], str]:
    """A split's settings with the values of the column that it names, and the sha256 of the column or files it reads.

    Where the hash changes, the split is drawn anew; it is empty for splits that read nothing but the molecules.
    """
    settings = dict(split.params)
    if "column" in get("split", split.splitter).params:
        name = settings.get("column")
        entry = next((t for t in recipe.table if t.name == dataset), None)
        if entry is not None and isinstance(name, str) and name:
            settings["column"] = None if name == entry.split_column else _column_of(entry, table, name)
        values = "\n".join(map(repr, column_values(table, settings.get("column")).tolist()))
        return settings, hashlib.sha256(values.encode("utf-8", "surrogatepass")).hexdigest()
    paths, digest = [Path(settings[key]) for key in ("path", *PARTS) if isinstance(settings.get(key), str)], b""
    try:
        for path in paths:
            for file in sorted(path.iterdir()) if path.is_dir() else [path]:
                digest += hashlib.sha256(file.read_bytes()).digest() if file.is_file() else b""
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
    return settings, hashlib.sha256(digest).hexdigest() if paths else ""


def _column_of(own: OwnTable, table: Table, name: str) -> Any:
    """A column of the table by its name, or else of its file by its values."""
    try:
        column_values(table, name)
    except DataError:
        return read_table(own.path, **own.columns, split=name).split
    return name
