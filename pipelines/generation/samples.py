"""Samples, references and training molecules on which metrics of generators are compared with public functions."""

from __future__ import annotations

import numpy as np

from molgraph.chem.add_carbon import add_carbon
from molgraph.data.datasets import load_dataset
from molgraph.data.sources import builtin

SAMPLES = ("series", "carbons", "moses", "zinc")
OF_DATA = ("moses", "zinc")  # need MOLGRAPH_DATA
BAD = ["C1CC", "not a molecule", "c1ccc1C(", "CN(C)(C)C"]


def samples_of(name: str) -> tuple[list[str], list[str], list[str]]:
    """Draws with invalid and repeated ones, reference and training molecules; all canonical, without stereo."""
    if name in OF_DATA:
        table = load_dataset({"moses": "moses@sample", "zinc": "zinc250k"}[name]).table
        step = 50 if name == "moses" else 1_250
        texts = _flat(table.smiles.tolist()[::step])
    else:
        texts = _flat(builtin.chembl2321810().smiles.tolist()[:240])
    train, reference, drawn = texts[:80], texts[80:160], texts[160:240]
    if name == "carbons":
        drawn = add_carbon(train, {*_flat(train)}, 70, np.random.default_rng(0))
    return [*drawn[:30], *BAD, *drawn[30:], *drawn[:9], *train[:15]], reference, train


def _flat(smiles: list[str]) -> list[str]:
    from molgraph.chem.identity import molecule_keys

    return [key for key in dict.fromkeys(molecule_keys(smiles, stereo=False).values) if key]
