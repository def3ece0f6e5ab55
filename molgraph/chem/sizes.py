"""Count the heavy atoms, rings and atoms of an element of molecules, and compute their weight and logP."""

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


def ring_counts(texts: Sequence[Any] | np.ndarray) -> np.ndarray:
    """int64 [n]: rings of each SMILES; 0 where it cannot be read.

    Example:
        >>> ring_counts(["C1CC1", "C("]).tolist()
        [1, 0]
    """
    mols = [parse_smiles(str(text)).mol for text in texts]
    return np.array([0 if mol is None else mol.GetRingInfo().NumRings() for mol in mols], dtype=np.int64)


def element_counts(texts: Sequence[Any] | np.ndarray, number: int) -> np.ndarray:
    """int64 [n]: atoms of the element of that number in each SMILES; 0 where it cannot be read.

    Example:
        >>> element_counts(["CCO", "C("], 6).tolist()
        [2, 0]
    """
    mols = [parse_smiles(str(text)).mol for text in texts]
    atoms = [[] if mol is None else [atom.GetAtomicNum() for atom in mol.GetAtoms()] for mol in mols]
    return np.array([each.count(number) for each in atoms], dtype=np.int64)


def weights_and_logp(texts: Sequence[Any] | np.ndarray) -> np.ndarray:
    """float64 [n, 2]: molecular weight and Crippen's logP of each SMILES; zeros where it cannot be read.

    Example:
        >>> weights_and_logp(["CCO"]).round(2).tolist()
        [[46.07, -0.0]]
    """
    mols = [parse_smiles(str(text)).mol for text in texts]
    rows = [(0.0, 0.0) if mol is None else (Descriptors.MolWt(mol), Crippen.MolLogP(mol)) for mol in mols]
    return np.array(rows, dtype=np.float64).reshape(-1, 2)
