"""Compute a table of chemical properties for probes: heavy atoms, logP, polar surface, rings, functional groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from rdkit import Chem
from rdkit.Chem import Crippen, Descriptors, rdMolDescriptors

GROUPS = {
    "acid": "C(=O)[OH]",
    "amide": "[NX3]C(=O)[#6]",
    "basic amine": "[NX3;!$(N-C=[O,S,N]);!$(N-S=O);!$(N-[c,N,O])]([#6,#1])[CX4]",
    "nitro": "[N+](=O)[O-]",
    "halogen": "[F,Cl,Br,I]",
    "alcohol": "[OX2H][CX4]",
}
NUMBERS: Mapping[str, Any] = {
    "heavy atoms": lambda mol: mol.GetNumHeavyAtoms(),
    "weight": Descriptors.MolWt,
    "logP": Crippen.MolLogP,
    "TPSA": rdMolDescriptors.CalcTPSA,
    "rings": rdMolDescriptors.CalcNumRings,
    "aromatic rings": rdMolDescriptors.CalcNumAromaticRings,
    "H donors": rdMolDescriptors.CalcNumHBD,
    "rotatable bonds": rdMolDescriptors.CalcNumRotatableBonds,
    "fraction sp3": rdMolDescriptors.CalcFractionCSP3,
}


def concepts(mols: Sequence[Chem.Mol]) -> pd.DataFrame:
    """A column a concept: numbers of RDKit, and whether there are groups, of which 5 molecules have and lack one.

    Example:
        >>> concepts([Chem.MolFromSmiles(text) for text in ("CCO", "c1ccccc1")])["rings"].tolist()
        [0.0, 1.0]
    """
    columns = {name: [float(how(mol)) for mol in mols] for name, how in NUMBERS.items()}
    for name, smarts in GROUPS.items():
        query = Chem.MolFromSmarts(smarts)
        has = np.array([float(mol.HasSubstructMatch(query)) for mol in mols])
        if 5 <= has.sum() <= len(has) - 5:
            columns[name] = has.tolist()
    frame = pd.DataFrame(columns)
    return frame.loc[:, frame.std() > 0]
