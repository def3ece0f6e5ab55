"""Tell whether atoms in space are those of a SMILES: whether both have the same heavy atoms."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from molgraph.chem.smiles import parse_smiles


def heavy_atoms(texts: Sequence[str]) -> list[Counter[int] | None]:
    """How many atoms of each element but hydrogen each SMILES has; None where it cannot be read."""
    mols = [parse_smiles(text).mol for text in texts]
    return [None if mol is None else _counts([atom.GetAtomicNum() for atom in mol.GetAtoms()]) for mol in mols]


def why_other_molecule(expected: Counter[int] | None, numbers: np.ndarray) -> str:
    """Why atoms in space are not the molecule whose heavy atoms are ``expected``; empty where they may be it.

    Hydrogens do not count: structures of experiments lack them, and charges move them.

    Example:
        >>> why_other_molecule(heavy_atoms(["CCO"])[0], np.array([6, 8, 1, 1, 1, 1]))
        'its atoms in space are CO and its SMILES says C2O (hydrogens aside)'
    """
    found = _counts(numbers.tolist())
    if expected is None or found == expected:
        return ""
    return f"its atoms in space are {_formula(found)} and its SMILES says {_formula(expected)} (hydrogens aside)"


def _counts(numbers: Sequence[int]) -> Counter[int]:
    return Counter(z for z in numbers if z > 1)


def _formula(counts: Counter[int]) -> str:
    symbol = Chem.GetPeriodicTable().GetElementSymbol
    order = sorted(counts, key=lambda z: (z != 6, symbol(z)))
    return "".join(f"{symbol(z)}{counts[z] if counts[z] > 1 else ''}" for z in order)[:80] or "no heavy atom"
