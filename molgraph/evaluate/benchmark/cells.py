"""List the cells of a benchmark, each with a key of its own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from molgraph.base.version import __version__
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe, Generation

FORMAT = "molgraph-cell-3"
FAILED = ("crashed", "timeout", "memory", "refused")
MANIFEST, PREDICTIONS, LOG = "manifest.json", "predictions.parquet", "stderr.txt"
LONGEST_LOG = 20_000  # bytes of what a failed cell printed that are kept


@dataclass(frozen=True)
class Cell:
    """One dataset (with its edition), split (by its label), part of the split, row of the board and seed of the method.

    ``key`` is the sha256 of everything that the predictions depend on.
    """

    dataset: str
    split: str
    repeat: int
    fold: int
    method: str
    seed: int
    key: str

    @property
    def part(self) -> tuple[str, int, int]:
        """The split's label, repeat and fold."""
        return self.split, self.repeat, self.fold

    @property
    def name(self) -> str:
        """What it is called among its method's cells."""
        return f"r{self.repeat}-f{self.fold}-s{self.seed}"

    def folder(self, out: Path) -> Path:
        """Where it stands once it is done."""
        return out / "cells" / self.dataset / self.split / self.method / f"{self.name}-{self.key[:8]}"

    def __str__(self) -> str:
        return f"{self.dataset} {self.split} {self.method} {self.name}"


def cell_key(
    data_hash: str,
    split_hash: str,
    method: BenchMethod,
    seed: int,
    resolved: Mapping[str, Any],
    version: str = __version__,
    generation: Generation | None = None,
) -> str:
    """sha256 of data, rows, method, its resolved parameters and code, search, seed, columns and molgraph's version.

    ``generation`` is that of a generator's.
    """
    search = None if method.search is None else method.search.model_dump(mode="json")
    if search is not None and not search["params"]:
        del search["params"]
    parts: list[Any] = [FORMAT, data_hash, split_hash, method.name, resolved, search, seed]
    parts += [] if generation is None else [{"generation": generation.model_dump(include={"draws", "most_train"})}]
    parts += [] if method.inputs is None else [{"inputs": method.inputs}]
    parts += [{"side": method.side}] if method.side and method.inputs is None else []
    parts += [{"molgraph": version}]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def in_order(recipe: BenchRecipe, cells: list[Cell], sizes: Mapping[str, int]) -> list[Cell]:
    """Cells in an order whose first part is a useful board too.

    The first split comes first, then method by method as the recipe has them (cheap ones first), small datasets first
    (``sizes`` are rows), all folds of one dataset and method together.
    """
    splits = {split.name: i for i, split in enumerate(recipe.split)}
    methods = {method.row: i for i, method in enumerate(recipe.method)}
    return sorted(
        cells, key=lambda c: (splits[c.split], methods[c.method], sizes[c.dataset], c.dataset, *c.part[1:], c.seed)
    )


def file_of_split(out: Path, dataset: str, split: str, repeat: int, fold: int) -> Path:
    """Where a frozen split stands."""
    return out / "splits" / dataset / split / f"r{repeat}-f{fold}.json"


def end_of(log: Path) -> str:
    """The last of what a cell printed, which may be gigabytes; nothing where there is no log."""
    if not log.is_file():
        return ""
    with log.open("rb") as file:
        file.seek(max(log.stat().st_size - LONGEST_LOG, 0))
        return file.read(LONGEST_LOG).decode(errors="replace")
