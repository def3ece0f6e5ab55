"""Cells: one dataset, method and seed each; predictions and a manifest in one JSON file, whole or not there."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np

import molgraph
from molgraph.base.errors import DataError
from molgraph.base.paths import atomic_write
from pipelines.quality.study import Problem

FORMAT = "molgraph-quality-cell-1"
PACKAGES = ("torch", "rdkit", "chemprop", "scikit-learn", "numpy", "lightning")


@dataclass(frozen=True)
class Cell:
    """What a method predicted on the test rows of one split.

    Args:
        manifest: dataset, method, seed, split hash, settings, versions, seconds.
        rows: int64 [n], row numbers in the dataset.
        y: float64 [n], measured.
        prediction: float64 [n], a value or the probability of class 1; NaN where the method gave none.
    """

    manifest: dict[str, Any]
    rows: np.ndarray
    y: np.ndarray
    prediction: np.ndarray


@dataclass(frozen=True)
class Outcome:
    """What a method hands back: predictions for the test rows, and what belongs into the manifest."""

    prediction: np.ndarray
    settings: dict[str, Any]
    seconds: float


Runner = Callable[[Problem], Outcome]


def cell_path(out: Path, dataset: str, method: str, seed: int) -> Path:
    """Where a cell stands."""
    return out / dataset / f"{method}-s{seed}.json"


def write_cell(path: Path, problem: Problem, method: str, outcome: Outcome) -> None:
    """Write predictions and manifest in one rename."""
    rows = problem.rows("test")
    assert problem.table.y is not None
    manifest = {
        "format": FORMAT,
        "dataset": problem.dataset.name,
        "method": method,
        "seed": problem.seed,
        "metric": problem.dataset.metric,
        "split": problem.split.hash,
        "settings": outcome.settings,
        "seconds": round(outcome.seconds, 1),
        "versions": versions(),
        "machine": f"{platform.system()} {platform.machine()}, Python {platform.python_version()}",
    }
    body = {
        "rows": rows.tolist(),
        "y": [float(f"{v:.8g}") for v in problem.table.y[rows, 0]],
        "prediction": [float(f"{v:.7g}") if np.isfinite(v) else None for v in outcome.prediction],
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [f'"manifest": {json.dumps(manifest)}']
    lines += [f"{json.dumps(k)}: {json.dumps(v, separators=(',', ':'))}" for k, v in body.items()]
    digest = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    text = "{\n" + ",\n".join([*lines, f'"sha256": "{digest}"']) + "\n}\n"
    with atomic_write(path, "wb") as file:
        file.write(text.encode())


def read_cell(path: Path) -> Cell:
    """Read a cell; one that is not whole, or was changed by hand, raises ``DataError``."""
    try:
        text = path.read_text(encoding="utf-8")
        body, _, tail = text.rpartition(',\n"sha256": "')
        if hashlib.sha256("\n".join(body[2:].split(",\n")).encode()).hexdigest() != tail.partition('"')[0]:
            raise ValueError("its checksum is another")
        raw = json.loads(text)
        if raw["manifest"]["format"] != FORMAT:
            raise ValueError(f"its format is not {FORMAT!r}")
        columns = [np.array(raw[name], dtype=np.float64) for name in ("y", "prediction")]
        return Cell(raw["manifest"], np.array(raw["rows"], dtype=np.int64), *columns)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{path} is not a whole cell: {error}", hint="delete it and run the pipeline again") from error


def versions() -> dict[str, str]:
    """Versions of the packages that a result depends on."""
    found = {"molgraph": molgraph.__version__}
    for name in PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found
