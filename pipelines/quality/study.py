"""The recipe read and checked: quality.toml in, datasets with their tables and frozen splits out."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict

from molgraph.base.errors import DataError
from molgraph.base.paths import data_dir
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.table import Table

HERE = Path(__file__).parent
SPLITS = HERE.parents[1] / "datasets" / "splits"


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Sizes(_Strict):
    """Sizes of the graph model, the same for molgraph and chemprop."""

    hidden: int
    depth: int
    readout: Literal["mean", "sum", "norm"]
    head_hidden: int
    head_layers: int
    batch_size: int
    epochs: int


class Forest(_Strict):
    """Sizes of the forest, the same for molgraph and scikit-learn."""

    trees: int
    radius: int
    n_bits: int


class Dataset(_Strict):
    """One row of the table: where the data are, and what judges predictions."""

    name: str
    title: str
    source: str
    target: str
    metric: str
    smiles: str | None = None


class Study(_Strict):
    """The whole recipe."""

    split: str
    fractions: tuple[float, float, float]
    seeds: tuple[int, ...]
    sizes: Sizes
    forest: Forest
    dataset: tuple[Dataset, ...]


@dataclass(frozen=True)
class Problem:
    """One dataset with one split: what every method is given."""

    study: Study
    dataset: Dataset
    seed: int
    split: Split
    table: Table

    @property
    def kind(self) -> str:
        """``regression`` or ``binary``."""
        return "binary" if self.dataset.metric == "roc_auc" else "regression"

    def rows(self, part: str) -> np.ndarray:
        """Row numbers of a part that have a measured value."""
        rows = getattr(self.split, part)
        assert self.table.y is not None
        return rows[np.isfinite(self.table.y[rows, 0])]


def read_study(path: Path = HERE / "quality.toml") -> Study:
    """Read and check the recipe."""
    return Study.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))


def read_dataset(dataset: Dataset) -> Table:
    """The table of a dataset: from rdkit's package, or from the folder that MOLGRAPH_DATA names."""
    if dataset.source.startswith("builtin:"):
        return read_table(dataset.source)
    folder = data_dir()
    if folder is None:
        raise DataError(f"{dataset.title} is not here", hint="name the folder of datasets in MOLGRAPH_DATA")
    table = read_table(str(folder / dataset.source), smiles=dataset.smiles, targets=[dataset.target])
    # Row numbers, so that the frozen splits do not hang on which column a reader takes for ids.
    return replace(table, ids=np.array([str(i) for i in range(len(table))], dtype=object))


def split_path(study: Study, dataset: Dataset, seed: int) -> Path:
    """Where the frozen split of a dataset and seed stands."""
    return SPLITS / f"{dataset.name}-{study.split.replace('/', '-')}-s{seed}.json"


def freeze(study: Study, dataset: Dataset) -> list[Path]:
    """Write the split files of a dataset that do not stand yet; the ones that do are checked and left alone."""
    table, written = read_dataset(dataset), []
    for seed in study.seeds:
        path = split_path(study, dataset, seed)
        if path.exists():
            Split.load(path).check(table)
            continue
        split_table(table, study.split, fractions=study.fractions, seed=seed).save(path)
        written.append(path)
    return written


def open_problem(study: Study, dataset: Dataset, seed: int, table: Table | None = None) -> Problem:
    """A dataset with its frozen split, checked against each other."""
    table = read_dataset(dataset) if table is None else table
    path = split_path(study, dataset, seed)
    if not path.exists():
        raise DataError(f"no frozen split {path.name}", hint="make it with: python pipelines/quality/run.py freeze")
    split = Split.load(path)
    split.check(table)
    return Problem(study, dataset, seed, split, table)
