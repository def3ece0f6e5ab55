"""Weave beside DeepChem's WeaveModel on Tox21: the same random splits, epochs, batches and learning rate.

    MOLGRAPH_DATA=... python pipelines/weave/tox21.py --deepchem ENVIRONMENT/bin/python

DeepChem's network on torch does not train its Weave layers (their weights are no parameters, version 2.8.0), so its
Keras form is run, in an environment of its own: pip install tensorflow-cpu==2.15.1 tensorflow-probability==0.23.0
deepchem==2.8.0 rdkit==2023.9.6. Without --deepchem molgraph's cells alone are run. Each cell is kept in tox21.json when
it is done, so the same command goes on after a stop; TOX21.md is written from it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pandas as pd

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.table import Table  # noqa: E402
from pipelines.common.cells import Cells, spread, write  # noqa: E402

SHARES = (0.8, 0.1, 0.1)
EPOCHS, BATCH, RATE = 40, 64, 1e-3  # DeepChem's settings for Weave on Tox21 in MoleculeNet
METHODS = ("weave", "random_forest", "deepchem")
MARGIN = 0.02


def divided(table: Table, seed: int) -> Table:
    """The rows in random order, each in the training, validation or test part."""
    order = np.random.default_rng(seed).permutation(np.flatnonzero(table.ok))
    ends = np.cumsum([int(share * len(order)) for share in SHARES[:-1]])
    parts = np.repeat(["train", "valid", "test"], np.diff([0, *ends, len(order)]))
    return replace(table.take(order), split=parts.astype(object))


def ours(table: Table) -> dict[str, dict[str, Any]]:
    """Test ROC AUC of molgraph's weave and of the forest that is trained beside it, mean over the targets."""
    how: dict[str, Any] = {"epochs": EPOCHS, "batch_size": BATCH, "learning_rate": RATE, "patience": None, "threads": 1}
    result = molgraph.train(table, model="weave", split="column", seed=0, **how)
    scores = result.scores.xs("roc_auc", axis=1, level="metric").mean(axis=1)
    found = {name: {"auc": float(scores[name])} for name in ("weave", "random_forest")}
    found["weave"]["epoch"] = result.model.method.best_epoch
    return found


def deepchems(table: Table, python: str) -> dict[str, Any]:
    """Test ROC AUC of DeepChem's network, at the epoch that does best on the validation part as well."""
    with TemporaryDirectory() as folder:
        labels = pd.DataFrame(table.y, columns=[target.name for target in table.row_targets])
        labels.assign(smiles=table.smiles, part=table.split).to_csv(Path(folder) / "rows.csv", index=False)
        script = [str(HERE / "deepchem_weave.py"), folder, *map(str, (EPOCHS, BATCH, RATE))]
        subprocess.run([python, *script], check=True)
        return dict(json.loads((Path(folder) / "found.json").read_text()))


def page(cells: Cells) -> list[str]:
    """The results as markdown."""
    seeds = sorted({cell["seed"] for cell in cells.all})
    lines = ["# Weave on Tox21 beside DeepChem's", "", "Written by `python pipelines/weave/tox21.py`. ROC AUC of the"]
    lines += [f"test part, mean over 12 targets, on random splits ({' / '.join(f'{s:.0%}' for s in SHARES)}): {EPOCHS}"]
    lines += [
        f"epochs in batches of {BATCH} at a learning rate of {RATE:g}, weights of the epoch that does best on the"
    ]
    lines += ["validation part. DeepChem is 2.8.0's Keras WeaveModel (W2N2) at its own sizes.", ""]
    lines += [f"| method | {' | '.join(f'split {s}' for s in seeds)} | mean |", "|---" * (len(seeds) + 2) + "|"]
    for method in METHODS:
        auc = {cell["seed"]: cell["auc"] for cell in cells.of(method=method)}
        each = [f"{auc[s]:.3f}" if s in auc else "" for s in seeds]
        lines.append(f"| {method} | {' | '.join(each)} | {spread(list(auc.values()), 3) if auc else ''} |")
    both = {m: {c["seed"]: c["auc"] for c in cells.of(method=m)} for m in METHODS}
    apart = [both["weave"][s] - both["deepchem"][s] for s in seeds if s in both["weave"] and s in both["deepchem"]]
    for cell in cells.of(method="deepchem"):
        if cell["diverged"]:
            where = ", ".join(map(str, cell["diverged"]))
            lines += [
                "",
                f"DeepChem on split {cell['seed']}: predictions were not finite from epoch {where} on, and another",
            ]
            lines += ["start was made; the best epoch on the validation part counts."]
    if apart:
        words = "within" if abs(np.mean(apart)) <= MARGIN else "not within"
        lines += ["", f"molgraph's less DeepChem's: {spread(apart, 3)} over {len(apart)} splits, {words} {MARGIN}."]
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deepchem", metavar="PYTHON", help="an interpreter that has DeepChem and TensorFlow")
    parser.add_argument("--seeds", type=int, default=2)
    asked = parser.parse_args()
    cells, table = Cells(HERE / "tox21.json"), load_dataset("tox21").table
    for seed in range(asked.seeds):
        rows = divided(table, seed)
        if not cells.of(method="weave", seed=seed):
            for method, found in ours(rows).items():
                cells.once({"method": method, "seed": seed}, partial(dict, found))
        if asked.deepchem:
            cells.once({"method": "deepchem", "seed": seed}, partial(deepchems, rows, asked.deepchem))
        write(HERE / "TOX21.md", page(cells))


if __name__ == "__main__":
    main()
