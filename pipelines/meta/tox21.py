"""Meta-train on nine assays of Tox21 and adapt to each of the three others, on molecules that no assay was trained on.

    MOLGRAPH_DATA=... python pipelines/meta/tox21.py       # writes pipelines/meta/tox21.json; stopped, it goes on

Each starting point is fine-tuned alike, on the same draws of molecules, half of them active; the area under the ROC
curve is taken over all other molecules that were held out.
"""

from __future__ import annotations

import json
import logging
import sys
import tempfile
import time
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.linear_model import RidgeClassifier
from sklearn.metrics import roc_auc_score

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

from molgraph.chem.fingerprints import morgan  # noqa: E402
from molgraph.chem.tanimoto import tanimoto  # noqa: E402
from molgraph.data.read import read_table  # noqa: E402
from molgraph.data.table import Table  # noqa: E402
from molgraph.train.card import ModelCard  # noqa: E402
from molgraph.train.inputs import input_graphs  # noqa: E402
from molgraph.train.method import GraphMethod  # noqa: E402
from molgraph.train.model import Model  # noqa: E402

NEW = ("SR-HSE", "SR-MMP", "SR-p53")
SIZES, DRAWS = (16, 64), 4
SHAPE: dict[str, Any] = {"head_width": 64, "threads": 1}
WIDTH = {"d_hidden": 64, "depth": 3}
MAML = {"objective.inner_rate": 0.1, "objective.inner_steps": 2, "objective.shots": 32}
STARTS: dict[str, dict[str, Any]] = {
    "maml": {"objective": "maml", "params": WIDTH | MAML},
    "maml, first order": {"objective": "maml", "params": WIDTH | MAML | {"objective.first_order": True}},
    "nine assays, supervised": {"params": WIDTH, "epochs": 30},
}
LEARNING: dict[str, Any] = {"epochs": 8, "batch_size": 128, "warmup_epochs": 1.0}
TUNED, TUNING = (20, 60), {"batch_size": 16, "learning_rate": 1e-3, "warmup_epochs": 1.0}


def pretrained(name: str, table: Table, valid: Table, folder: Path) -> Path:
    """The file of a starting point."""
    path = folder / f"{name.replace(' ', '-').replace(',', '')}.mgm"
    if not path.exists():
        began = time.process_time()
        method = GraphMethod(**{**SHAPE, **LEARNING, **STARTS[name]})
        method.fit(table, valid, workdir=folder / path.stem)
        targets = table.targets if method.predicts else ()
        Model(method, targets=targets, card=ModelCard(what=name)).save(path)
        losses = method.curves[["train_loss", "valid_loss"]].round(3).to_numpy().tolist()
        print(name, losses, f"{time.process_time() - began:.0f} s", flush=True)
    return path


def fingerprint_scores(x: np.ndarray, y: np.ndarray, support: np.ndarray, rest: np.ndarray) -> dict[str, float]:
    """Ridge regression, and the mean label of the five nearest by Tanimoto, weighted by their similarity."""
    ridge = RidgeClassifier(alpha=10.0).fit(1.0 * x[support], y[support]).decision_function(x[rest])
    similarity = tanimoto(x[rest], x[support])
    near = np.argsort(-similarity, axis=1)[:, :5]
    weights = np.take_along_axis(similarity, near, axis=1) + 1e-6
    knn = (weights * y[support][near]).sum(axis=1) / weights.sum(axis=1)
    return {"ridge on fingerprints": roc_auc_score(y[rest], ridge), "5-NN on fingerprints": roc_auc_score(y[rest], knn)}


def write(found: dict[str, dict[str, list[float]]]) -> None:
    """Write every draw's score, and the mean over assays and draws for each number of molecules."""
    means: dict[str, dict[int, float]] = {name: {} for name in found}
    for name, size in product(found, SIZES):
        scores = [score for key, own in found[name].items() if key.endswith(f" {size}") for score in own]
        means[name] |= {size: round(float(np.mean(scores)), 3)} if scores else {}
    (HERE / "tox21.json").write_text(json.dumps({"mean": means, "draws": found}, indent=1) + "\n", encoding="utf-8")


def main(folder: Path) -> None:
    """Train the starting points, adapt each to each draw, write the table."""
    folder.mkdir(parents=True, exist_ok=True)
    table = read_table("dataset:tox21")
    old = [t.name for t in table.targets if t.name not in NEW]
    order = np.random.default_rng(0).permutation(len(table))
    cut, held = int(0.65 * len(table)), int(0.7 * len(table))
    train, valid = (table.take(np.sort(rows)).with_targets(old) for rows in (order[:cut], order[cut:held]))
    inits: dict[str, Path | None] = {name: pretrained(name, train, valid, folder) for name in STARTS}
    inits["random weights"] = None
    pool = table.take(np.sort(order[held:]))
    bits = morgan(list(pool.smiles))
    readable = np.flatnonzero(bits.ok)
    pool, x = pool.take(readable), bits.x[readable]
    found: dict[str, dict[str, list[float]]] = {}
    graphs = None
    for assay in NEW:
        one = pool.with_targets([assay])
        assert one.y is not None
        y = one.y[:, 0]
        for size in SIZES:
            for draw in range(DRAWS):
                rng = np.random.default_rng([size, draw, NEW.index(assay)])
                support = np.concatenate([rng.choice(np.flatnonzero(y == c), size // 2, replace=False) for c in (0, 1)])
                rest = np.setdiff1d(np.flatnonzero(~np.isnan(y)), support)
                scores = fingerprint_scores(x, y, support, rest)
                for (name, path), epochs in product(inits.items(), TUNED):
                    params = WIDTH if path is None else None
                    init = None if path is None else str(path)
                    method = GraphMethod(**SHAPE, **TUNING, epochs=epochs, params=params, init=init, seed=draw)
                    method.fit(one.take(support))
                    graphs = graphs or input_graphs(one, method.graph_inputs())
                    value = method.predict_graphs(one, graphs).value[rest, 0]
                    scores[f"{name}, {epochs} epochs"] = roc_auc_score(y[rest], value)
                for name, value in scores.items():
                    found.setdefault(name, {}).setdefault(f"{assay} {size}", []).append(round(float(value), 4))
            write(found)
            print(assay, size, flush=True)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(tempfile.gettempdir()) / "molgraph-meta")
