"""Move a cell's results into the benchmark's folder, whole or not at all."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import DataError
from molgraph.base.toml_config import parse_json
from molgraph.evaluate.benchmark.cells import FORMAT, Cell
from molgraph.evaluate.benchmark.environment import machine, versions
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan
from molgraph.evaluate.benchmark.worker import LOG, PREDICTIONS

MANIFEST = "manifest.json"
_NUMBER = int | float | None
READ: dict[str, Any] = {  # what is read of every manifest
    "status": str, "reason": str, "data_hash": str, "split_hash": str, "made": str, "seconds": dict,
    "cpu_seconds": _NUMBER, "peak_mb": _NUMBER, "predictions_sha256": str | None,
}  # fmt: skip
LONGEST_LOG = 20_000  # characters of what a failed cell printed


def work_folder(out: Path, cell: Cell) -> Path:
    """An empty folder for a cell's process; who has claimed the cell may clear what an earlier run left there."""
    folder = out / WORK / "cells" / cell.key
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def keep(
    out: Path, cell: Cell, problem: DatasetPlan, job: Job, label: Mapping[str, Any], outcome: Outcome
) -> dict[str, Any]:
    """Finish a cell's manifest, and move its folder to its place in one rename.

    Args:
        out: the benchmark's folder.
        cell: the cell.
        problem: its dataset.
        job: what its process was told.
        label: what the manifest says of the split: recipe, params, seed.
        outcome: how it ended.

    Returns:
        The manifest.
    """
    folder, final = Path(job.folder), cell.folder(out)
    predictions = folder / PREDICTIONS
    ok = outcome.status == "ok"
    if not ok:
        predictions.unlink(missing_ok=True)
    found = outcome.found
    seconds = {k: round(v, 3) for k, v in found.get("seconds", {}).items()} | {"total": round(outcome.seconds, 3)}
    manifest = {
        "format": FORMAT,
        "key": cell.key,
        "status": outcome.status,
        "reason": outcome.reason,
        "dataset": problem.dataset,
        "edition": problem.edition,
        "data_hash": problem.data_hash,
        "split": {"label": cell.split, **label},
        "repeat": cell.repeat,
        "fold": cell.fold,
        "split_hash": problem.split_hash[(cell.split, cell.repeat, cell.fold)],
        "method": job.method,
        "label": cell.method,
        "params": dict(job.params),
        **({} if job.inputs is None else {"inputs": list(job.inputs)}),
        "chosen": found.get("chosen", {}),
        "search": found.get("search"),
        "seed": cell.seed,
        "notes": list(found.get("notes", ())),
        "unlearned": found.get("unlearned", {}),
        "targets": [{"name": t.name, "kind": t.kind, "classes": list(t.classes)} for t in problem.targets],
        "seconds": seconds,
        "cpu_seconds": None if outcome.cpu_seconds is None else round(outcome.cpu_seconds, 3),
        "peak_mb": None if outcome.peak_mb is None else round(outcome.peak_mb, 1),
        "threads": job.threads,
        "budget": {"seconds": job.seconds, "memory_gb": job.memory_gb},
        "versions": dict(found.get("versions") or versions()),
        "machine": dict(found.get("machine") or machine()),
        "made": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "predictions_sha256": sha256(predictions.read_bytes()) if ok else None,
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    for each in folder.iterdir():
        if each.name not in {MANIFEST, PREDICTIONS, *([] if ok else [LOG])}:
            each.unlink() if each.is_file() else shutil.rmtree(each)
    if not ok and (folder / LOG).is_file():
        text = (folder / LOG).read_text(encoding="utf-8", errors="replace")
        (folder / LOG).write_text(text[-LONGEST_LOG:], encoding="utf-8")
    final.parent.mkdir(parents=True, exist_ok=True)
    forget(out, cell)
    with contextlib.suppress(FileExistsError):  # what stands there already was made by another run, and is as good
        os.rename(folder, final)
    shutil.rmtree(folder, ignore_errors=True)
    return manifest


def forget(out: Path, cell: Cell) -> None:
    """Take away a cell that is to be computed again, in one rename."""
    final, old = cell.folder(out), out / WORK / "cells" / f"{cell.key}.old"
    if final.exists():
        shutil.rmtree(old, ignore_errors=True)
        os.rename(final, old)
    shutil.rmtree(old, ignore_errors=True)


def read_manifest(out: Path, cell: Cell) -> dict[str, Any] | None:
    """A cell's manifest, or None where the cell has not been computed.

    Raises:
        DataError: the file is no manifest, lacks something, or is another cell's.
    """
    path, again = cell.folder(out) / MANIFEST, "delete its folder and run the recipe again"
    try:
        manifest: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise DataError(f"{path} cannot be read: {error}", hint=again) from error
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or manifest.get("key") != cell.key:
        raise DataError(f"{path} belongs to another cell", hint=again)
    odd = [name for name, kind in READ.items() if name not in manifest or not isinstance(manifest[name], kind)]
    if odd or not isinstance(manifest["seconds"].get("total"), int | float):
        raise DataError(f"{path} is damaged: {(odd or ['seconds'])[0]!r} is gone or changed", hint=again)
    return manifest


def sha256(content: bytes) -> str:
    """Of a file's content, as manifests have it."""
    return hashlib.sha256(content).hexdigest()
