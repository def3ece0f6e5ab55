"""The peers: chemprop through its own command line, and scikit-learn's forest on the same fingerprints."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pandas as pd

from molgraph.base.errors import MolgraphError
from pipelines.quality.cells import Outcome
from pipelines.quality.study import Problem


def run_chemprop(problem: Problem) -> Outcome:
    """``chemprop train`` on the frozen split; the test predictions that it writes itself."""
    sizes, table = problem.study.sizes, problem.table
    assert table.y is not None
    parts = {"train": problem.rows("train"), "val": problem.rows("valid"), "test": problem.rows("test")}
    rows = np.concatenate(list(parts.values()))
    edges = np.cumsum([0, *(len(p) for p in parts.values())])
    options = {
        "--task-type": "classification" if problem.kind == "binary" else "regression",
        "--epochs": sizes.epochs,
        "--batch-size": sizes.batch_size,
        "--message-hidden-dim": sizes.hidden,
        "--depth": sizes.depth,
        "--aggregation": sizes.readout,
        "--ffn-hidden-dim": sizes.head_hidden,
        "--ffn-num-layers": sizes.head_layers,
        "--pytorch-seed": problem.seed,
    }
    with tempfile.TemporaryDirectory(prefix="quality-chemprop-") as scratch:
        folder = Path(scratch)
        pd.DataFrame({"smiles": table.smiles[rows], "y": table.y[rows, 0]}).to_csv(folder / "data.csv", index=False)
        split = {name: list(range(edges[i], edges[i + 1])) for i, name in enumerate(parts)}
        (folder / "split.json").write_text(json.dumps([split]))
        command = [sys.executable, "-c", "from chemprop.cli.main import main; main()", "train"]
        command += ["--data-path", "data.csv", "--smiles-columns", "smiles", "--target-columns", "y"]
        command += ["--splits-file", "split.json", "--accelerator", "cpu", "--devices", "1"]
        command += ["--output-dir", "out", "--logfile", "log.txt"]
        command += [str(word) for pair in options.items() for word in pair]
        started = time.perf_counter()
        done = subprocess.run(command, cwd=folder, env=_one_thread(), capture_output=True, text=True, check=False)
        seconds = time.perf_counter() - started
        if done.returncode:
            raise MolgraphError(f"chemprop stopped with {done.returncode}: {done.stderr[-2000:]}")
        frame = pd.read_csv(folder / "out" / "model_0" / "test_predictions.csv")
    expected = [str(s) for s in table.smiles[parts["test"]]]
    if [str(s) for s in frame["smiles"]] != expected:
        raise MolgraphError("chemprop's test predictions are not in the order of the test rows")
    return Outcome(frame["y"].to_numpy(np.float64), {k.lstrip("-"): v for k, v in options.items()}, seconds)


def run_sklearn_forest(problem: Problem) -> Outcome:
    """scikit-learn's forest with its defaults, on the bits of molgraph's forest made here a second time."""
    from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

    forest, table = problem.study.forest, problem.table
    assert table.y is not None
    train, test = problem.rows("train"), problem.rows("test")
    started = time.perf_counter()
    options = {"n_estimators": forest.trees, "random_state": problem.seed, "n_jobs": 2}
    model = (RandomForestClassifier if problem.kind == "binary" else RandomForestRegressor)(**options)
    model.fit(_fingerprints(problem, train), table.y[train, 0])
    x = _fingerprints(problem, test)
    value = model.predict_proba(x)[:, 1] if problem.kind == "binary" else model.predict(x)
    return Outcome(np.asarray(value, np.float64), options, time.perf_counter() - started)


def _fingerprints(problem: Problem, rows: np.ndarray) -> np.ndarray:
    from rdkit import Chem
    from rdkit.Chem import rdFingerprintGenerator

    forest = problem.study.forest
    generator = rdFingerprintGenerator.GetMorganGenerator(radius=forest.radius, fpSize=forest.n_bits)
    mols = [Chem.MolFromSmiles(s) for s in problem.table.smiles[rows]]
    return np.stack([generator.GetFingerprintAsNumPy(m) for m in mols])


def _one_thread() -> dict[str, str]:
    return os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
