"""Count the heavy atoms of molecules, and compute their weight and logP."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rdkit.Chem import Crippen, Descriptors

from molgraph.chem.smiles import parse_smiles


def heavy_atoms(texts: Sequence[Any] | np.ndarray) -> np.ndarray:
    """int64 [n]: heavy atoms of each SMILES; 0 where it cannot be read.

    Example:
        >>> heavy_atoms(["CCO", "C("]).tolist()
        [3, 0]
    """
    mols = [parse_smiles(str(text)).mol for text in texts]
    return np.array([0 if mol is None else mol.GetNumHeavyAtoms() for mol in mols], dtype=np.int64)


def weights_and_logp(texts: Sequence[Any] | np.ndarray) -> np.ndarray:
    """float64 [n, 2]: molecular weight and Crippen's logP of each SMILES; zeros where it cannot be read.

    Example:
        >>> weights_and_logp(["CCO"]).round(2).tolist()
        [[46.07, -0.0]]
    """
    mols = [parse_smiles(str(text)).mol for text in texts]
    rows = [(0.0, 0.0) if mol is None else (Descriptors.MolWt(mol), Crippen.MolLogP(mol)) for mol in mols]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)
