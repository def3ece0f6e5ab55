"""List the cells of a benchmark, each with a key of its own."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe

FORMAT = "molgraph-cell-1"
FAILED = ("crashed", "timeout", "memory", "refused")


@dataclass(frozen=True)
class Cell:
    """One dataset, split, method and seed.

    Args:
        dataset: its name, with its edition.
        split: the split's label.
        repeat, fold: which of the split's parts.
        method: the method's row on the board.
        seed: the method's.
        key: sha256 of everything that the predictions depend on.
    """

    dataset: str
    split: str
    repeat: int
    fold: int
    method: str
    seed: int
    key: str

    @property
    def name(self) -> str:
        """What it is called among its method's cells."""
        return f"r{self.repeat}-f{self.fold}-s{self.seed}"

    def folder(self, out: Path) -> Path:
        """Where it stands once it is done."""
        return out / "cells" / self.dataset / self.split / self.method / f"{self.name}-{self.key[:8]}"

    def __str__(self) -> str:
        return f"{self.dataset} {self.split} {self.method} {self.name}"


def cell_key(data_hash: str, split_hash: str, method: BenchMethod, seed: int) -> str:
    """sha256 of what a cell's predictions depend on: data, rows, method, parameters, search, seed and columns."""
    search = None if method.search is None else method.search.model_dump(mode="json")
    parts: list[Any] = [FORMAT, data_hash, split_hash, method.name, method.params, search, seed]
    parts += [] if method.inputs is None else [{"inputs": method.inputs}]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def in_order(recipe: BenchRecipe, cells: list[Cell], sizes: dict[str, int]) -> list[Cell]:
    """Cells so that a board that is not whole is useful: the first split first, then method by method as the recipe
    has them (cheap ones first), small datasets first, all folds of one dataset and method together.

    Args:
        recipe: gives the order of splits and methods.
        cells: any order.
        sizes: rows of each dataset.
    """
    splits = {split.name: i for i, split in enumerate(recipe.split)}
    methods = {method.row: i for i, method in enumerate(recipe.method)}
    datasets = {name: i for i, name in enumerate(sorted(sizes, key=lambda name: (sizes[name], name)))}
    return sorted(
        cells,
        key=lambda c: (splits[c.split], methods[c.method], datasets[c.dataset], c.repeat, c.fold, c.seed),
    )


def file_of_split(out: Path, dataset: str, split: str, repeat: int, fold: int) -> Path:
    """Where a frozen split stands."""
    return out / "splits" / dataset / split / f"r{repeat}-f{fold}.json"
