"""Objectives that match two columns: the graph of a molecule with its conformers, a pocket with its ligand."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import molgraph
from molgraph.chem.conformer import make_conformers
from molgraph.data.graph_values import Geometry
from molgraph.data.sources.graph_files import plain_table
from molgraph.data.table import Table
from molgraph.nn.encoder import Encoded
from molgraph.train.inputs import graph_of_rows, input_graphs
from molgraph.train.objectives.views import view_vectors
from molgraph.train.samples import Samples
from tests.systems.effect import Effect

DATA = Path(os.environ.get("MOLGRAPH_DATA", "/none"))
HELD = 200


def encode(model: molgraph.Model, table: Table) -> tuple[Any, list[Encoded]]:
    """The network of a model and what it gives for each column of a table."""
    fitted = model.method.ready()
    graphs = input_graphs(table, fitted.inputs)
    sample = Samples(tuple(made.store for made in graphs), graph_of_rows(graphs)).sample(np.arange(len(table)))
    fitted.network.prepare(sample)
    with torch.no_grad():
        encoded = fitted.network.eval().encode(sample, rows=True)
    for part, each in zip(sample.parts, encoded, strict=True):  # each distinct entity once, in the order of the rows
        assert part.of_row is None or len(each.graphs) == len(table)
    return fitted.network, encoded


@cache
def conformers() -> tuple[list[str], list[np.ndarray], list[np.ndarray]]:
    """SMILES of ESOL with the atomic numbers and two conformers of each."""
    smiles = pd.read_csv(DATA / "esol" / "delaney-processed.csv").smiles.drop_duplicates().tolist()
    smiles = [smiles[i] for i in np.random.default_rng(0).permutation(len(smiles))[:720]]
    made = make_conformers(smiles, n=2, relax="none", workers=1)
    kept = [i for i, each in enumerate(made) if len(each.positions) == 2 and len(each.numbers) > 3]
    return [smiles[i] for i in kept], [made[i].numbers for i in kept], [made[i].positions for i in kept]


def rows(places: np.ndarray, n: int, shift: int = 0) -> Table:
    """A row for each of n conformers of molecules; with a shift each beside the conformer of another molecule."""
    smiles, numbers, positions = conformers()
    beside = np.roll(places, shift)
    texts = [smiles[i] for i in places for _ in range(n)]
    values = [Geometry(numbers[i], positions[i][k]) for i in beside for k in range(n)]
    return plain_table({"molecule": texts, "geometry": values}, (), np.zeros((len(texts), 0)))


@pytest.mark.skipif(not DATA.is_dir(), reason="needs MOLGRAPH_DATA")
@pytest.mark.system("vatt", rung="works")
def test_a_graph_finds_its_conformer(off: str, effect: Effect) -> None:
    """Among those of 200 held-out molecules of ESOL; pairs that are shuffled in training stay at chance."""
    places = np.arange(len(conformers()[0]))
    train, held = rows(places[HELD:], 2, 7 if off else 0), rows(places[:HELD], 1)
    how: dict[str, Any] = {"gin.d_hidden": 32, "schnet.d_hidden": 32, "schnet.depth": 2, "schnet.cutoff_angstrom": 4.0}
    top = []
    for seed in range(1 if off else 2):
        model = molgraph.pretrain(
            train, model="gin+schnet", params=how, objective="views", epochs=8, batch_size=64,
            learning_rate=2e-3, patience=None, threads=1, seed=seed,
        )  # fmt: skip
        one, two = view_vectors(*encode(model, held))
        top.append(float(((one @ two.T).argmax(dim=1) == torch.arange(HELD)).float().mean()))
    effect("top-1 of 200", top, at_least=10 / HELD, beside={"chance": [1 / HELD]})


@pytest.mark.skipif(not DATA.is_dir(), reason="needs MOLGRAPH_DATA")
@pytest.mark.system(
    "attngan-damsm", rung="works", null="a thousand pairs teach nothing of pockets that were not seen: it is at chance"
)
def test_a_pocket_finds_its_ligand(off: str, effect: Effect) -> None:
    """Among 64 ligands of pockets that training has not seen."""
    columns = ["smiles_repaired", "pocket"]
    frame = pd.read_csv(DATA / "pdbbind_dta" / "train.csv.gz")[columns].dropna()
    frame = frame[frame.pocket.str.len() < 80].drop_duplicates("smiles_repaired").reset_index(drop=True)
    pockets = np.random.default_rng(0).permutation(frame.pocket.unique())
    held = frame[frame.pocket.isin(pockets[:512])].drop_duplicates("pocket")[:256]
    train = frame[~frame.pocket.isin(pockets[:512])][:1000]
    params = {"dmpnn.d_hidden": 32, "dmpnn.depth": 2, "tokens.d_hidden": 32, "tokens.d_embed": 16}
    model = molgraph.pretrain(
        train, model="dmpnn+tokens", smiles="smiles_repaired", sequence="pocket", objective="match",
        params={**params, "tokens.sequence": "convolution", "objective.width": 32}, epochs=6, batch_size=32,
        learning_rate=2e-3, patience=None, threads=1,
    )  # fmt: skip
    recalls = dict[str, list[float]](rows=[], graphs=[])
    for first in range(0, 256, 64):
        part = held[first : first + 64]
        table = plain_table(
            {"molecule": part.smiles_repaired.tolist(), "sequence": part.pocket.tolist()}, (), np.zeros((64, 0))
        )
        network, encoded = encode(model, table)
        with torch.no_grad():
            scores = network.parts["match"](encoded, 1)
        for name, each in zip(recalls, scores, strict=True):
            recalls[name].append(float((each.argmax(dim=1) == torch.arange(64)).float().mean()))
    bound = max(10 / 64, float(np.mean(recalls["graphs"])))
    effect("recall@1 of 64", recalls["rows"], at_least=bound, beside={"pooled": recalls["graphs"], "chance": [1 / 64]})
