"""Test whether the norm of RFM's edge states finds the bonds that decide a planted label.

    MOLGRAPH_DATA=... python pipelines/rfm/salience.py

Tacchetti et al. 2019 (ICLR) read the norm of an edge's activation as its salience. Here the label of a molecule of the
Lipophilicity set is its number of bonds of one pattern, so the deciding bonds are known: ``aryl``, from an aromatic
carbon to N or O, among all bonds; and ``anilide``, from an aromatic carbon to the N of an amide, among the bonds of the
first pattern, which only their surroundings tell apart. For each trained network and a fresh one: the ROC AUC with
which a bond's norm (the larger of both directions) tells deciding bonds from the others of all test molecules; beside
it an ablation, the change of the prediction when the decoder's state of the bond is set to zero.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rdkit import Chem
from sklearn.metrics import roc_auc_score
from torch import Tensor

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parents[1]))

import molgraph  # noqa: E402
from molgraph.base.contracts import Target  # noqa: E402
from molgraph.data.batch import GraphBatch, collate  # noqa: E402
from molgraph.data.datasets import load_dataset  # noqa: E402
from molgraph.data.table import Table  # noqa: E402
from molgraph.models.rfm import RFM  # noqa: E402
from molgraph.nn import relations  # noqa: E402
from pipelines.common.cells import Cells, spread, write  # noqa: E402

PLANTED = {"aryl": ("c-[#7,#8]", "*~*"), "anilide": ("c-[#7]-C=O", "c-[#7,#8]")}  # deciding bonds, and among which
TRAIN, VALID, TEST, EPOCHS, SEEDS = 1500, 200, 300, 30, 3
ROUNDS = (1, 3)
READ = ("encoder", "core", "decoder", "ablation")


Bonds = list[set[frozenset[int]]]  # of each molecule, as pairs of atoms


def matches(smiles: Sequence[str], smarts: str) -> Bonds:
    """The bonds between the first two atoms of a pattern."""
    pattern = Chem.MolFromSmarts(smarts)
    mols = [Chem.MolFromSmiles(text) for text in smiles]
    return [{frozenset(found[:2]) for found in mol.GetSubstructMatches(pattern, maxMatches=10_000)} for mol in mols]


def planted(task: str) -> Table:
    """Molecules with their number of deciding bonds."""
    table = load_dataset("lipo").table
    rows = np.random.default_rng(0).permutation(np.flatnonzero(table.ok))[: TRAIN + VALID + TEST]
    table = table.take(rows)
    parts = np.repeat(["train", "valid", "test"], [TRAIN, VALID, TEST]).astype(object)
    y = np.array([[len(each)] for each in matches(list(table.smiles), PLANTED[task][0])], dtype=np.float64)
    return replace(table, y=y, targets=(Target("deciding bonds", "regression"),), split=parts)


def readings(network: Any, batch: GraphBatch) -> dict[str, Tensor]:
    """A number for each directed bond, float [p], by each way to read it."""
    with torch.no_grad():
        blocks = {name: state.edges.norm(dim=1) for name, state in network.encoder.states(batch).items()}
        plain = network.head(network.encoder(batch).graphs)
    return {**blocks, "ablation": ablation(network, batch, plain)}


def ablation(network: Any, batch: GraphBatch, plain: Tensor) -> Tensor:
    """float [p]: how far the prediction moves when the decoder's states of a bond and its reverse are zero."""
    offsets, reverse = relations.members(batch, "bond").offsets, batch["bond"].arrays["reverse"]
    keep, out = torch.ones(len(reverse), 1), torch.zeros(len(reverse))
    hook = network.encoder.decode.edge.register_forward_hook(lambda _, __, states: states * keep)
    counts = offsets.diff()
    for k in range(int(counts.max())):  # the k-th directed bond of every molecule at once
        rows = (offsets[:-1] + k)[counts > k]
        keep[rows], keep[reverse[rows]] = 0.0, 0.0
        with torch.no_grad():
            moved = network.head(network.encoder(batch).graphs) - plain
        out[rows] = moved.abs().sum(1)[counts > k]
        keep.fill_(1.0)
    hook.remove()
    return out


def auc(read: Tensor, batch: GraphBatch, deciding: Bonds, among: Bonds) -> float:
    """ROC AUC of the deciding bonds among the bonds of all molecules."""
    first = batch["atom"].offsets[batch.graph_of("bond")]
    ends = torch.stack([batch.source - first, batch.target - first], dim=1).tolist()
    known: dict[tuple[int, frozenset[int]], float] = {}
    for graph, pair, value in zip(batch.graph_of("bond").tolist(), ends, read.tolist(), strict=True):
        if (bond := frozenset(pair)) in among[graph]:
            known[graph, bond] = max(value, known.get((graph, bond), -1.0))
    return float(roc_auc_score([bond in deciding[graph] for graph, bond in known], list(known.values())))


def run(task: str, rounds: int, seed: int) -> dict[str, Any]:
    """One cell: the AUC by each reading, before and after training, and the error of the prediction."""
    how: dict[str, Any] = {"epochs": EPOCHS, "patience": None, "threads": 1, "baseline": False}
    table = planted(task)
    result = molgraph.train(table, model="rfm", split="column", seed=seed, params={"rounds": rounds}, **how)
    network = result.model.method.ready().network
    smiles = list(table.smiles[table.split == "test"])
    store = result.model.method.graph_inputs()[0].featuriser.featurise(smiles)
    batch, bonds = collate(store, np.arange(len(smiles))), [matches(smiles, smarts) for smarts in PLANTED[task]]
    after = {name: auc(each, batch, *bonds) for name, each in readings(network, batch).items()}
    torch.manual_seed(seed)
    network.encoder = RFM(store.spec, rounds=rounds).eval()
    before = {name: auc(each, batch, *bonds) for name, each in readings(network, batch).items()}
    return {"mae": float(result.scores.loc["rfm", "mae"]), "after": after, "before": before}


def page(cells: Cells) -> list[str]:
    """The results as markdown."""
    lines = ["# Edge norms of RFM as salience", ""]
    lines += [
        "Written by `python pipelines/rfm/salience.py`. ROC AUC with which each reading tells the deciding bonds from"
    ]
    lines += [
        "the others, mean and standard deviation over seeds; 0.5 is chance. `aryl`: a bond's own two atoms decide;"
    ]
    lines += [
        "`anilide`: its surroundings do. Norms of the states after each block, and an ablation of the decoder's.",
        "",
    ]
    lines += [f"| bonds | rounds | trained | MAE | {' | '.join(READ)} |", "|---" * (len(READ) + 4) + "|"]
    for task, rounds in dict.fromkeys((cell["task"], cell["rounds"]) for cell in cells.all):
        own = cells.of(task=task, rounds=rounds)
        for when in ("before", "after"):
            each = [spread([cell[when][name] for cell in own], 2) for name in READ]
            mae = spread([cell["mae"] for cell in own], 2) if when == "after" else ""
            lines.append(f"| {task} | {rounds} | {'yes' if when == 'after' else 'no'} | {mae} | {' | '.join(each)} |")
    return lines


def main() -> None:
    cells = Cells(HERE / "salience.json")
    for seed in range(SEEDS):
        for task in PLANTED:
            for rounds in ROUNDS:
                cells.once({"task": task, "rounds": rounds, "seed": seed}, partial(run, task, rounds, seed))
        write(HERE / "SALIENCE.md", page(cells))


if __name__ == "__main__":
    main()
