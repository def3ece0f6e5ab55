"""Attack every method's model files with seeded mutations, and write what came of it.

    python pipelines/attack/run.py                    # 2,000 files of each method; goes on where it was stopped
    python pipelines/attack/run.py --files 200 knn gp

``results.json`` beside this file counts, for each method, the files that were refused, that answered, that ended in an
error that no file may cause, that took over five seconds, and the highest memory.
"""

from __future__ import annotations

import argparse
import json
import select
import subprocess
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402

import molgraph  # noqa: E402
from molgraph.base.registry import get, names  # noqa: E402
from molgraph.data.featurize_geometry import METHANE, WATER  # noqa: E402
from molgraph.data.table import Entities, Table  # noqa: E402
from molgraph.train.make_method import make_method  # noqa: E402
from molgraph.train.model import Model  # noqa: E402
from pipelines.attack.mutate import mutated  # noqa: E402

RESULTS = Path(__file__).with_name("results.json")
SECONDS, MEGABYTES, EVERY = 5.0, 1024, 50
NET = {"epochs": 1, "head_width": 8, "batch_size": 16}
METHODS: dict[str, list[tuple[str, dict[str, Any]]]] = {
    "dmpnn": [("dmpnn", NET | {"d_hidden": 8})],
    "mpnn": [("mpnn", NET | {"d_hidden": 8, "d_edge": 8})],
    "gin": [("gin", NET | {"d_hidden": 8})],
    "dag": [("dag", NET | {"d_hidden": 8})],
    "schnet": [("schnet", NET | {"d_hidden": 8, "n_basis": 8})],
    "deepdta": [("deepdta", NET | {"d_embed": 8, "n_filters": 8})],
    "dmpnn+deepdta": [
        ("dmpnn+deepdta", NET | {"dmpnn.d_hidden": 8, "deepdta.d_embed": 8, "deepdta.n_filters": 8, "joiner": joiner})
        for joiner in ("concat", "bilinear")
    ],
    "gru": [("gru", {"epochs": 1, "d_embedding": 8, "d_hidden": 8, "n_layers": 1})],
    "pyg_conv": [
        ("pyg_conv", NET | {"d_hidden": 8, "heads": 2, "conv": conv, "options": options})
        for conv, options in (("GINEConv", {"eps": 0.1}), ("GATv2Conv", {"concat": True}), ("TAGConv", {"K": 2}),
                              ("NNConv", {"aggr": "mean"}), ("SGConv", {"K": 2}), ("GENConv", {"num_layers": 2}))
    ],
    "ensemble": [
        ("ensemble", {"method": "dmpnn", "n": 2, "params": NET | {"d_hidden": 4}}),
        ("ensemble", {"method": "random_forest", "n": 2, "params": {"n_estimators": 2, "n_bits": 64}}),
    ],
    "random_forest": [("random_forest", {"n_estimators": 3, "n_bits": 64})],
    "xgboost": [("xgboost", {"n_estimators": 3, "max_depth": 3, "n_bits": 64})],
    "maplight": [("maplight", {"iterations": 3, "depth": 3, "n_bits": 64})],
    "knn": [("knn", {"n_bits": 64})],
    "linear": [("linear", {"n_bits": 64, "features": "morgan"})],
    "svm": [("svm", {"n_bits": 64})],
    "gp": [("gp", {"n_bits": 64, "steps": 2})],
    "mean": [("mean", {})],
    "chemprop": [("chemprop", {"epochs": 1, "d_hidden": 8, "head_width": 8})],
    "deepchem": [("deepchem", {"model": m, "epochs": 1, "d_hidden": 8, "n_bits": 64}) for m in ("multitask", "dmpnn")],
}  # fmt: skip


def sound_files(name: str, folder: Path) -> list[bytes]:
    """Small sound files of a method: of one number, and of two targets of other kinds."""
    from molgraph.base.contracts import Target
    from molgraph.data.table import make_table

    table = molgraph.read_table("builtin:chembl2321810").take(np.arange(24))
    n = np.arange(24)
    features = np.stack([np.sin(n), np.cos(n)], axis=1)
    targets = (Target("c", "multiclass", classes=("x", "y", "z")), Target("b", "binary"))
    several = make_table(
        list(table.smiles),
        targets=targets,
        y=np.stack([n % 3, n % 2], axis=1),
        features=features,
        feature_names=("f", "g"),
    )
    found = []
    for i, (method, params) in enumerate(METHODS[name]):
        for j, rows in enumerate((table, several)):
            generates = method in names("generator")
            made = get("generator", method)(**params) if generates else make_method(method, **params)
            rows = replace(rows, entities=entities_of(name, rows))
            fitted = made.fit(rows.with_targets([]) if generates else rows)
            path = folder / f"{name}-{i}-{j}.mgm"
            targets = () if generates else rows.row_targets
            Model(fitted, targets=targets, feature_names=rows.feature_names).save(path)
            found.append(path.read_bytes())
    return found


def entities_of(name: str, rows: Table) -> tuple[Entities, ...]:
    """The table's molecules, or the entity columns that a method reads in their place."""
    shapes, proteins = np.full(len(rows), None, dtype=object), np.full(len(rows), "MKTAYIAKQR", dtype=object)
    shapes[:] = [(WATER, METHANE)[i % 2] for i in range(len(rows))]
    if name == "schnet":
        return (Entities("geometry", "geometry", shapes),)
    return (*rows.entities, *[Entities("protein", "sequence", proteins)] * ("+" in name))


class Worker:
    """The process that opens the files, started anew where it had to be ended."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def ask(self, path: Path) -> dict[str, Any]:
        """How a file fared; ``hang`` or ``died`` where there was no answer."""
        if self.process is None:
            command = [sys.executable, "-m", "pipelines.attack.worker"]
            self.process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
            )
            self._line(300.0)
        assert self.process.stdin is not None
        self.process.stdin.write(f"{path}\n")
        self.process.stdin.flush()
        line = self._line(12 * SECONDS)  # on a busy machine; seconds of CPU time are judged
        if line:
            return json.loads(line)
        ended = "died" if self.process.poll() is not None else "hang"
        self.close()
        return {"ended": ended, "error": ended, "seconds": 0.0, "peak_mb": 0, "before_mb": 0}

    def _line(self, seconds: float) -> str:
        assert self.process is not None and self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else ""

    def close(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def attack(name: str, files: int, results: dict[str, Any]) -> None:
    """Mutate and try a method's files from where the results end, writing them down now and then."""
    about = results.setdefault(name, {"files": 0, "refused": 0, "answered": 0, "fault": 0, "hang": 0, "died": 0})
    if about["files"] >= files:
        return
    worker = Worker()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        sound = sound_files(name, folder)
        path = folder / "mutated.mgm"
        for whole in sound:  # what is imported once is no mutation's fault
            path.write_bytes(whole)
            assert worker.ask(path)["ended"] == "answered", f"a sound file of {name} is refused"
        for seed in range(about["files"], files):
            data, change = mutated(sound[seed % len(sound)], seed)
            path.write_bytes(data)
            told = worker.ask(path)
            about["files"] += 1
            about[told["ended"]] += 1
            about["slowest_seconds"] = max(about.get("slowest_seconds", 0.0), told["seconds"])
            about["peak_mb"] = max(about.get("peak_mb", 0), told["peak_mb"])
            about["above_sound_mb"] = max(about.get("above_sound_mb", 0), told["peak_mb"] - told["before_mb"])
            slow, large = told["seconds"] > SECONDS, told["peak_mb"] > MEGABYTES
            if slow or large or told["ended"] not in ("refused", "answered"):
                words = f"{told['error']} {told['seconds']} s {told['peak_mb']} MB".strip()
                about.setdefault("found", []).append({"seed": seed, "change": change, "what": words})
                print(f"{name} {seed}: {words}: {change}", flush=True)
            if about["files"] % EVERY == 0 or about["files"] == files:
                write(results)
    worker.close()


def write(results: dict[str, Any]) -> None:
    """Write the results, sorted by method."""
    from molgraph.base.paths import atomic_write

    with atomic_write(RESULTS, "w") as file:
        file.write(json.dumps(dict(sorted(results.items())), indent=1) + "\n")


def main() -> None:
    """Attack the methods that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", default=[], help=f"some of {', '.join(METHODS)}; all if none is named")
    parser.add_argument("--files", type=int, default=2000, help="files of each method")
    parser.add_argument("--fresh", action="store_true", help="begin anew")
    asked = parser.parse_args()
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() and not asked.fresh else {}
    for name in asked.methods or METHODS:
        started = time.time()
        attack(name, asked.files, results)
        print(f"{name}: {results[name]} ({time.time() - started:.0f} s)", flush=True)


if __name__ == "__main__":
    main()
