"""Read the manifests and predictions of a benchmark's cells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from molgraph.base.errors import DataError, StorageError
from molgraph.base.paths import missing_file
from molgraph.base.toml_config import parse_json
from molgraph.evaluate.benchmark.cells import PREDICTIONS, Cell
from molgraph.evaluate.benchmark.plan import PLAN, DatasetPlan, Planned
from molgraph.evaluate.benchmark.recipe import BenchMethod, BenchRecipe
from molgraph.evaluate.benchmark.store import read_manifest, sha256

RECIPE, SUBMITTED = "recipe.toml", "submitted"


class Predicted(NamedTuple):
    """A cell's stored predictions of n rows of the dataset, ascending.

    ``y`` has the measured values by target; ``p`` the predicted columns by name (a target's, or ``target:class``), and
    ``spread`` the same for the spread, where there is one; float64 [n].
    """

    rows: np.ndarray
    ids: np.ndarray
    status: np.ndarray
    reason: np.ndarray
    y: Mapping[str, np.ndarray]
    p: Mapping[str, np.ndarray]
    spread: Mapping[str, np.ndarray]


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
        found = ((cell, read_manifest(self.out, cell)) for cell in self.cells)
        return tuple(Record(cell, manifest) for cell, manifest in found if manifest is not None)

    @property
    def wanted(self) -> int:
        """How many cells the recipe asks for."""
        return len(self.cells)

    @property
    def frame(self) -> pd.DataFrame:
        """A row for each cell that was computed: what its manifest says, seconds by step."""
        rows = []
        for record in self.done:
            plain = {
                k: v
                for k, v in record.manifest.items()
                if k not in ("seconds", "search", "targets", "split", "resolved")
            }
            seconds = {f"seconds_{k}": v for k, v in record.manifest["seconds"].items()}
            rows.append(plain | {"split": record.cell.split} | seconds)
        return pd.DataFrame(rows)

    def path(self, cell: Cell) -> Path:
        """A cell's predictions."""
        return cell.folder(self.out) / PREDICTIONS

    def predictions(self, cell: Cell, manifest: Mapping[str, Any] | None = None) -> Predicted:
        """The predictions of a cell that ended well; its manifest is read where it is not at hand."""
        path = self.path(cell)
        manifest = manifest or read_manifest(self.out, cell)
        if manifest is None or not path.is_file():
            raise StorageError(f"{cell} has no predictions", hint="its manifest says why, where it was computed")
        return read_predictions(path, str(manifest.get("predictions_sha256")))

    def __iter__(self) -> Iterator[Record]:
        return iter(self.done)

    def __repr__(self) -> str:
        failed = sum(r.manifest["status"] != "ok" for r in self.done)
        return f"Records of {self.recipe.name}: {len(self.done):,} of {self.wanted:,} cells, {failed:,} failed"


def read_records(out: str | Path) -> Records:
    """Read what a benchmark's folder holds."""
    out = Path(out)
    if not (out / RECIPE).is_file():
        raise missing_file(out / RECIPE, "recipe of a benchmark that was run")
    recipe = BenchRecipe.from_toml(out / RECIPE)
    problems = {}
    for name in recipe.datasets:
        path = out / PLAN / f"{name}.json"
        if path.is_file():
            problems[name] = DatasetPlan.load(path)
    return _with_submitted(Records(out, recipe, problems))


def _with_submitted(records: Records) -> Records:
    """With the rows that were submitted, where they are of the splits as they stand."""
    recipe, problems = records.recipe, dict(records.problems)
    for path in sorted((records.out / SUBMITTED).glob("*.json")):
        try:
            cells = [Cell(**cell) for cell in parse_json(path.read_text(encoding="utf-8"))["cells"]]
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise DataError(f"{path} is damaged: {error}", hint="delete it and submit again") from error
        for cell in cells:
            problem = problems.get(cell.dataset)
            if problem is not None and (cell.split, cell.repeat, cell.fold) in problem.split_hash:
                problems[cell.dataset] = replace(problem, cells=(*problem.cells, cell))
        lacks = tuple(name for name in recipe.datasets if name not in {cell.dataset for cell in cells})
        row = BenchMethod(name=path.stem, kind="external", skip=lacks)
        recipe = recipe.model_copy(update={"method": (*recipe.method, row)})
    return Records(records.out, recipe, problems)


def read_predictions(path: Path, stated: str) -> Predicted:
    """Read a file that a cell wrote; one that is damaged, or has another sha256 than stated, raises ``DataError``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    again = "delete its folder and run the recipe again"
    try:
        content = path.read_bytes()
        made = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        numbers: dict[str, dict[str, np.ndarray]] = {"y": {}, "p": {}, "spread": {}}
        for name in made.column_names:
            kind, colon, rest = name.partition(":")
            if colon:
                numbers[kind][rest] = made[name].to_numpy()
        rows, ids, status, reason = (made[name].to_numpy() for name in ("row", "id", "status", "reason"))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise DataError(f"{path} is damaged: {error}", hint=again) from error
    if (found := sha256(content)) != stated:
        raise DataError(f"predictions were changed: {path} has sha256 {found}, the manifest {stated}", hint=again)
    return Predicted(rows, ids, status, reason, numbers["y"], numbers["p"], numbers["spread"])
