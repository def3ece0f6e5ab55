"""Compute eight physicochemical properties of molecules, such as heavy atoms, logP and polar surface."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from rdkit.Chem import Crippen, Mol
from rdkit.Chem import rdMolDescriptors as rd

from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

_PROPERTIES = (
    Mol.GetNumHeavyAtoms, Crippen.MolLogP, rd.CalcTPSA, rd.CalcNumHBD, rd.CalcNumHBA, rd.CalcNumRotatableBonds,
    rd.CalcNumRings, rd.CalcFractionCSP3,
)  # fmt: skip


def properties(smiles: Sequence[Any] | np.ndarray) -> np.ndarray:
    """float64 [n, 8]: heavy atoms, logP, polar surface, donors, acceptors, rotatable bonds, rings and sp3 carbons.

    The last is a share. NaN where there is no molecule.
    """
    return np.array(map_molecules(_properties, [str(text) for text in smiles], _none, label="properties")).reshape(
        -1, len(_PROPERTIES)
    )


def _properties(text: str) -> list[float]:
    mol = parse_smiles(text).mol
    return _none() if mol is None else [float(function(mol)) for function in _PROPERTIES]


def _none(*_: Any) -> list[float]:
    return [np.nan] * len(_PROPERTIES)
