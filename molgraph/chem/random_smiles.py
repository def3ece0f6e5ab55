"""Write a molecule's SMILES anew, its atoms in a random order."""

from __future__ import annotations

import numpy as np
from rdkit import Chem

from molgraph.chem.handedness import without_maps
from molgraph.chem.smiles import captured, parse_smiles


def random_smiles(text: str, rng: np.random.Generator) -> str:
    """Another SMILES of the same molecule, without atom maps; the text itself where RDKit cannot read or write it.

    Example:
        >>> random_smiles("CCO", np.random.default_rng(0)) in ("CCO", "OCC", "C(C)O", "C(O)C")
        True
    """
    mol = parse_smiles(without_maps(text)).mol
    if mol is None:
        return text
    with captured():
        try:
            shuffled = Chem.RenumberAtoms(mol, rng.permutation(mol.GetNumAtoms()).tolist())
            return Chem.MolToSmiles(shuffled, canonical=False) or text
        except (RuntimeError, ValueError):
            return text
