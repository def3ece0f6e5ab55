"""Measure how many test molecules of ZINC-250k decode to themselves, and how that grows while a model trains."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from rdkit import Chem

import molgraph
from molgraph.base.contracts import LatentGenerator
from molgraph.base.paths import data_dir
from molgraph.base.progress import bar
from molgraph.data.standardise import standardise

LOW = 0.1  # temperature at which the likeliest molecule of a mean is decoded


def test_molecules(model: Any, n: int) -> list[str]:
    """The first ``n`` of the JT-VAE's test molecules that are readable, as the model's training saw molecules."""
    folder = data_dir() / "zinc250k"
    table = molgraph.read_table(folder / "zinc250k_properties.csv.gz", smiles="smiles")
    rows = np.loadtxt(folder / "jtvae_test_idx.txt", dtype=np.int64)
    table = standardise(table.take(rows[:n]), model.standardiser)
    return [Chem.CanonSmiles(str(text)) for text in table.smiles[table.ok]]


def reconstruct(generator: LatentGenerator, smiles: list[str], encodings: int = 10, decodings: int = 10) -> dict:
    """Shares of decodings that are the molecule: by the paper's protocol, and of each posterior's mean.

    The paper's protocol draws ``encodings`` points of each posterior and decodes each of them ``decodings`` times; a
    molecule outside the vocabulary counts as missed.
    """
    points = generator.encode(molgraph.read_table(smiles))
    rows = np.flatnonzero(points.ok)
    flat = [_flat(text) for text in smiles]
    same = same_flat = 0
    with bar("decoding", encodings * decodings) as line:
        for draw in range(encodings):
            z = points.draw(draw)[rows]
            for again in range(decodings):
                texts = generator.decode(z, 100 * draw + again)
                same += sum(text == smiles[k] for text, k in zip(texts, rows, strict=True))
                same_flat += sum(_flat(text) == flat[k] for text, k in zip(texts, rows, strict=True))
                line.advance()
    before = generator.get_params()["temperature"]
    generator.set_params(temperature=LOW)
    of_mean = sum(text == smiles[k] for text, k in zip(generator.decode(points.mean[rows]), rows, strict=True))
    generator.set_params(temperature=before)
    total = encodings * decodings * len(smiles)
    return {
        "molecules": len(smiles),
        "in the vocabulary": len(rows),
        "same": round(same / total, 4),
        "same without stereochemistry": round(same_flat / total, 4),
        "same, of means": round(of_mean / len(smiles), 4),
    }


def reconstruction(path: str, n: int) -> dict[str, Any]:
    """What share of test molecules a model gives back."""
    model = molgraph.load(path, threads=1)
    params, epochs = model.method.get_params(), len(model.method.curves)
    settings = (
        f"{params['d_hidden']} wide, beta {params['beta']:g}, {epochs} epochs of {model.card.n_train:,} molecules"
    )
    return {"model": Path(path).stem, "settings": settings, **reconstruct(model.method, test_molecules(model, n))}


def curve(path: str, checkpoints: list[Path], n: int) -> dict[str, Any]:
    """The same for the weights of each checkpoint of a model's training, with the molecules that were seen by then."""
    model = molgraph.load(path, threads=1)
    generator, smiles = model.method, test_molecules(model, n)
    network = generator.ready().network
    rows = []
    for checkpoint in checkpoints:
        state = torch.load(checkpoint, weights_only=True)
        weights = {name.removeprefix("network."): value for name, value in state["learner"].items()}
        network.load_state_dict({name: weights[name] for name in network.state_dict()})
        network.eval()
        steps = max(int(each["step"]) for each in state["optimizer_0"]["state"].values())
        rows.append({"molecules seen": steps * generator.batch_size, **reconstruct(generator, smiles, 3, 3)})
    return {"model": Path(path).stem, "rows": rows}


def _flat(text: str) -> str:
    mol = Chem.MolFromSmiles(text)
    Chem.RemoveStereochemistry(mol)
    return Chem.CanonSmiles(Chem.MolToSmiles(mol))
