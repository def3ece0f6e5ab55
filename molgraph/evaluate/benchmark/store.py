"""Move a cell's results into the benchmark's folder, whole or not at all, and read their manifests."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from molgraph.base.code import commit
from molgraph.base.errors import FormatError, MismatchError
from molgraph.base.toml_config import parse_json
from molgraph.evaluate.benchmark.cells import FORMAT, LOG, MANIFEST, PREDICTIONS, Cell, end_of
from molgraph.evaluate.benchmark.job import Outcome, machine, versions
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan
from molgraph.evaluate.benchmark.recipe import BenchRecipe

_NUMBER, AGAIN = int | float | None, "delete its folder and run the recipe again"
READ: dict[str, Any] = {  # what is read of every manifest
    "status": str, "reason": str, "data_hash": str, "split_hash": str, "made": str, "seconds": dict,
    "cpu_seconds": _NUMBER, "peak_mb": _NUMBER, "predictions_sha256": str | None,
}  # fmt: skip


def work_folder(out: Path, cell: Cell) -> Path:
    """An empty folder for a cell's process; who has claimed the cell may clear what an earlier run left there."""
    folder = out / WORK / "cells" / cell.key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def keep(out: Path, cell: Cell, folder: Path, manifest: dict[str, Any]) -> None:
    """Write a cell's manifest beside its predictions or log, and move the folder to its place in one rename."""
    final, log = cell.folder(out), folder / LOG
    ok = manifest["status"] == "ok"
    if ok:
        manifest = {**manifest, "predictions_sha256": sha256((folder / PREDICTIONS).read_bytes())}
    elif log.is_file():
        log.write_text(end_of(log), encoding="utf-8")
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for path in folder.iterdir():
        if path.name not in (MANIFEST, PREDICTIONS if ok else LOG):
            path.unlink() if path.is_file() else shutil.rmtree(path)
    final.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(final, ignore_errors=True)  # of a cell that was to be computed again
    os.rename(folder, final)


def make_manifest(cell: Cell, problem: DatasetPlan, recipe: BenchRecipe, outcome: Outcome) -> dict[str, Any]:
    """What a cell's manifest says: on which rows and how it was computed, and how it ended."""
    details, method, split = outcome.found, recipe.of_method(cell.method), recipe.of_split(cell.split)
    seed = split.seeds[0 if split.folds else cell.repeat]
    return {
        "format": FORMAT,
        "status": outcome.status,
        "reason": outcome.reason,
        **asdict(cell),
        "edition": problem.edition,
        "data_hash": problem.data_hash,
        "split": {"label": cell.split, "recipe": split.splitter, "params": split.params, "seed": seed},
        "split_hash": problem.split_hash[cell.part],
        "method": method.name,
        "label": cell.method,
        "params": method.params,
        "resolved": problem.resolved.get(cell.method, {}),
        **({} if method.inputs is None else {"inputs": method.inputs}),
        "chosen": details.get("chosen", {}),
        "search": details.get("search"),
        "notes": details.get("notes", []),
        "unlearned": details.get("unlearned", {}),
        "targets": [{"name": t.name, "kind": t.kind, "classes": t.classes} for t in problem.targets],
        "seconds": {k: round(v, 3) for k, v in (*details.get("seconds", {}).items(), ("total", outcome.seconds))},
        "cpu_seconds": None if outcome.cpu_seconds is None else round(outcome.cpu_seconds, 3),
        "peak_mb": None if outcome.peak_mb is None else round(outcome.peak_mb, 1),
        "threads": recipe.run.threads,
        "budget": recipe.budget.model_dump(),
        "versions": details.get("versions") or versions(),
        "machine": details.get("machine") or machine(),
        "commit": commit(),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "predictions_sha256": None,
    }


def read_manifest(out: Path, cell: Cell) -> dict[str, Any] | None:
    """A cell's manifest, or None where the cell has not been computed."""
    path = cell.folder(out) / MANIFEST
    try:
        manifest: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise FormatError(f"{path} cannot be read: {error}", hint=AGAIN) from error
    if not isinstance(manifest, dict) or (manifest.get("format"), manifest.get("key")) != (FORMAT, cell.key):
        raise MismatchError(f"{path} belongs to another cell", hint=AGAIN)
    odd = [name for name, kind in READ.items() if name not in manifest or not isinstance(manifest[name], kind)]
    if odd or not isinstance(manifest["seconds"].get("total", ""), _NUMBER):
        raise FormatError(f"{path} is damaged: {(odd or ['seconds'])[0]!r} is gone or changed", hint=AGAIN)
    return manifest


def read_stored(path: Path, stated: str) -> dict[str, Any]:
    """The columns of a parquet file that a cell wrote, as Arrow's arrays by name.

    Raises:
        DataError: the file is damaged, or has another sha256 than its manifest states.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        content = path.read_bytes()
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
    except (OSError, pa.ArrowException) as error:
        raise FormatError(f"{path} is damaged: {error}", hint=AGAIN) from error
    if (digest := sha256(content)) != stated:
        raise MismatchError(f"predictions were changed: {path} has sha256 {digest}, the manifest {stated}", hint=AGAIN)
    return {name: table[name] for name in table.column_names}


def sha256(content: bytes) -> str:
    """Of a file's content, as manifests have it."""
    return hashlib.sha256(content).hexdigest()
