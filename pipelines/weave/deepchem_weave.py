"""Train DeepChem's Keras WeaveModel on a folder's rows.csv and write its scores to found.json; run by tox21.py."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import deepchem
import numpy as np
import tensorflow as tf
from rdkit import RDLogger
from sklearn.metrics import roc_auc_score

STARTS = 4  # where one ends in numbers that are not finite another begins, and the best on the validation part counts


def mean_auc(model: deepchem.models.WeaveModel, data: deepchem.data.NumpyDataset) -> float:
    """ROC AUC, mean over the targets; missing labels weigh nothing."""
    p = model.predict(data)[:, :, 1]
    known = [(data.y[w > 0, j], p[w > 0, j]) for j, w in enumerate(data.w.T)]
    return float(np.mean([roc_auc_score(y, each) for y, each in known]))


def read(path: Path) -> dict[str, deepchem.data.NumpyDataset]:
    """The parts of a table: SMILES, a column for each target, and each row's part."""
    with path.open() as file:
        rows = list(csv.DictReader(file))
    targets = [name for name in rows[0] if name not in ("id", "smiles", "part")]
    x = deepchem.feat.WeaveFeaturizer(max_pair_distance=2).featurize([row["smiles"] for row in rows])
    y = np.array([[float(row[name] or "nan") for name in targets] for row in rows])
    found = {}
    for part in ("train", "valid", "test"):
        own = [i for i, row in enumerate(rows) if row["part"] == part and not isinstance(x[i], np.ndarray)]
        print(f"{part}: {len(own)} of {sum(row['part'] == part for row in rows)} molecules", flush=True)
        found[part] = deepchem.data.NumpyDataset(x[own], np.nan_to_num(y[own]), 1.0 * ~np.isnan(y[own]))
    return found


def train(parts: dict[str, deepchem.data.NumpyDataset], folder: Path, seed: int) -> dict[str, float]:
    """The scores of the epoch that does best on the validation part, and the epoch at which predictions are no numbers.

    Its Gaussian histogram divides 0 by 0 where a state is far from all bins.
    """
    epochs, batch, rate = int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
    tf.random.set_seed(seed)
    np.random.seed(seed)  # noqa: NPY002 - DeepChem shuffles by it
    sizes = {"batch_size": batch, "learning_rate": rate, "model_dir": str(folder / f"model-{seed}")}
    model = deepchem.models.WeaveModel(n_tasks=parts["train"].y.shape[1], mode="classification", **sizes)
    best: dict[str, float] = {"valid": -1.0}
    for epoch in range(1, epochs + 1):
        model.fit(parts["train"], nb_epoch=1, checkpoint_interval=0)
        if not np.isfinite(model.predict(parts["valid"])).all():
            print(f"start {seed}, epoch {epoch}: predictions are not finite", flush=True)
            return {**best, "diverged": epoch}
        valid = mean_auc(model, parts["valid"])
        print(f"start {seed}, epoch {epoch}: validation {valid:.4f}", flush=True)
        if valid > best["valid"]:
            best = {"valid": valid, "auc": mean_auc(model, parts["test"]), "epoch": epoch}
    return best


def main() -> None:
    folder = Path(sys.argv[1])
    RDLogger.DisableLog("rdApp.*")
    tf.get_logger().setLevel("ERROR")
    tf.config.threading.set_intra_op_parallelism_threads(1)
    tf.config.threading.set_inter_op_parallelism_threads(1)
    parts, found = read(folder / "rows.csv"), []
    for seed in range(STARTS):
        found.append(train(parts, folder, seed))
        if "diverged" not in found[-1]:
            break
    ended = [each["diverged"] for each in found if "diverged" in each]
    best = max(found, key=lambda each: each["valid"])
    (folder / "found.json").write_text(json.dumps({**best, "diverged": ended}))


if __name__ == "__main__":
    main()
