"""Read what a split of a benchmark takes from the user: columns of their table, and files."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import DataError
from molgraph.base.registry import get
from molgraph.data.read import read_table
from molgraph.data.splits.columns import column_values
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.recipe import BenchRecipe, BenchSplit, OwnTable


def settings_of(recipe: BenchRecipe, dataset: str, split: BenchSplit, table: Table) -> tuple[dict[str, Any], str]:
    """A split's settings with the values of the column that it names, and a hash of what it reads.

    Args:
        recipe: the benchmark; a ``[[table]]`` of the dataset says which file has the column.
        dataset: its name.
        split: one of the recipe's.
        table: the dataset's rows.

    Returns:
        The settings, and the sha256 of the column or the files: where it changes, the split is made anew. It is empty
        for splits that read nothing but the molecules.

    Raises:
        DataError: no such column.
    """
    settings, known = dict(split.params), get("split", split.recipe)
    if "column" in known.params:
        name = settings.get("column")
        own = next((t for t in recipe.table if t.name == dataset), None)
        if own is not None and isinstance(name, str) and name:
            settings["column"] = None if name == own.split_column else _column_of(own, table, name)
        return settings, _hash_of_column(column_values(table, settings.get("column")))
    paths = [Path(settings[key]) for key in ("path", *PARTS) if isinstance(settings.get(key), str)]
    digest = hashlib.sha256()
    try:
        for path in paths:
            for file in sorted(path.iterdir()) if os.path.isdir(path) else [path]:
                if os.path.isfile(file):
                    digest.update(hashlib.sha256(file.read_bytes()).digest())
    except OSError as error:
        raise DataError(f"cannot read {error.filename}: {error.strerror}") from error
    return settings, digest.hexdigest() if paths else ""


def _column_of(own: OwnTable, table: Table, name: str) -> Any:
    """A column of the table by its name, or else of its file by its values."""
    try:
        column_values(table, name)
    except DataError:
        return read_table(own.path, smiles=own.smiles, id=own.id, split=name).split
    return name


def _hash_of_column(values: np.ndarray) -> str:
    return hashlib.sha256("\n".join(map(repr, values.tolist())).encode("utf-8", "surrogatepass")).hexdigest()
