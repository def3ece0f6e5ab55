"""Number the environments of atoms: two atoms have one number where they look alike within some bonds."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from rdkit import Chem


def environment_keys(mols: Sequence[Chem.Mol], radius: int) -> np.ndarray:
    """int64 [radius + 1, atoms]: the number of each atom's environment of 0 to ``radius`` bonds, over all molecules.

    Colour refinement (Weisfeiler and Leman 1968): an atom's colour is its element, charge, hydrogens, degree and
    aromaticity, then its colour with those of its neighbours and the bonds to them, once for each bond of the radius.

    Example:
        >>> environment_keys([Chem.MolFromSmiles("CCCO"), Chem.MolFromSmiles("CC")], 1).tolist()
        [[0, 1, 1, 2, 0, 0], [0, 1, 2, 3, 4, 4]]
    """
    atoms = [atom for mol in mols for atom in mol.GetAtoms()]
    first = np.cumsum([0, *(mol.GetNumAtoms() for mol in mols)])
    bonds = [
        [(int(first[m]) + bond.GetOtherAtomIdx(atom.GetIdx()), str(bond.GetBondType())) for bond in atom.GetBonds()]
        for m, mol in enumerate(mols)
        for atom in mol.GetAtoms()
    ]
    own: list[Hashable] = [
        (atom.GetAtomicNum(), atom.GetFormalCharge(), atom.GetTotalNumHs(), atom.GetDegree(), atom.GetIsAromatic())
        for atom in atoms
    ]
    found = [_numbers(own)]
    for _ in range(radius):
        last = found[-1]
        found.append(_numbers([(last[i], *sorted((last[j], kind) for j, kind in bonds[i])) for i in range(len(atoms))]))
    return np.array(found, dtype=np.int64).reshape(radius + 1, len(atoms))


def _numbers(values: Sequence[Hashable]) -> list[int]:
    """The number of each value, in the order in which they first occur."""
    known: dict[Hashable, int] = {}
    return [known.setdefault(value, len(known)) for value in values]
