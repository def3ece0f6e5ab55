"""Find which atoms of molecules match a vocabulary of SMARTS: elements, rings, branching, and RDKit's 85 groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import Fragments

from molgraph.chem.functional_groups import GROUPS, WORDS

#: environments of one atom, beside the groups of ``rdkit.Chem.Fragments``
ATOMS = {
    "carbon": "[#6]",
    "nitrogen": "[#7]",
    "oxygen": "[#8]",
    "sulfur": "[#16]",
    "phosphorus": "[#15]",
    "fluorine": "[F]",
    "chlorine": "[Cl]",
    "bromine": "[Br]",
    "iodine": "[I]",
    "sp3 carbon": "[CX4]",
    "methyl": "[CH3]",
    "methylene": "[CH2]",
    "aromatic atom": "a",
    "aromatic carbon": "c",
    "aromatic CH": "[cH]",
    "aromatic nitrogen": "n",
    "substituted aromatic C": "[cH0]",
    "ring atom": "[R]",
    "ring fusion": "[R2]",
    "aliphatic ring": "[R;A]",
    "ring of five": "[r5]",
    "ring of six": "[r6]",
    "end of a chain": "[D1]",
    "branch": "[D3]",
    "quaternary": "[D4]",
    "cation": "[+]",
    "anion": "[-]",
    "H donor": "[N,O,S;!H0]",
    "double-bonded oxygen": "[OX1]=*",
    "atom beside a ring": "[!R]-[R]",
}
LEAST = 3  # molecules that a label needs


class AtomLabels(NamedTuple):
    """Which labels of the vocabulary are true of n atoms.

    Args:
        has: bool [n, m].
        names, smarts, words: of the m labels: a short name, the pattern, and what it stands for.
        start: int64 [molecules], the first atom of each.
    """

    has: np.ndarray
    names: tuple[str, ...]
    smarts: tuple[str, ...]
    words: tuple[str, ...]
    start: np.ndarray

    @property
    def of_molecules(self) -> np.ndarray:
        """bool [molecules, m]: whether any atom of a molecule has the label."""
        return np.logical_or.reduceat(self.has, self.start, axis=0)


def vocabulary() -> list[tuple[str, str, Chem.Mol]]:
    """Name, words and query of each label: environments of atoms, then the groups of ``rdkit.Chem.Fragments``."""
    atoms = [(name, name, Chem.MolFromSmarts(text)) for name, text in ATOMS.items()]
    groups = [
        (name, words, getattr(Fragments, name).__defaults__[-1]) for name, words in zip(GROUPS, WORDS, strict=True)
    ]
    return [*atoms, *groups]


def atom_labels(mols: Sequence[Chem.Mol]) -> AtomLabels:
    """The labels of the atoms of molecules, in order; every atom of a match has its label.

    Labels that fewer than three molecules have are left out, as are those of all atoms; of several that the same atoms
    have, the first is kept.

    Args:
        mols: each of one atom or more.

    Example:
        >>> acid = Chem.MolFromSmiles("CCC(=O)O")
        >>> found = atom_labels([acid, acid, acid])
        >>> [name for name, there in zip(found.names, found.has[0]) if there]
        ['carbon', 'sp3 carbon', 'methyl', 'end of a chain']
    """
    start = np.cumsum([0, *(mol.GetNumAtoms() for mol in mols)])
    kept: dict[bytes, tuple[np.ndarray, str, str, str]] = {}
    for name, words, query in vocabulary():
        has, n = np.zeros(start[-1], dtype=bool), 0
        for first, mol in zip(start[:-1], mols, strict=True):
            if atoms := {atom for match in mol.GetSubstructMatches(query) for atom in match}:
                has[first + np.array(sorted(atoms))] = True
                n += 1
        if n >= LEAST and not has.all():
            kept.setdefault(has.tobytes(), (has, name, Chem.MolToSmarts(query), words))
    columns = [*kept.values()]
    has = np.array([column[0] for column in columns], dtype=bool).reshape(len(columns), start[-1]).T
    names, smarts, phrases = (tuple(str(column[i]) for column in columns) for i in (1, 2, 3))
    return AtomLabels(np.ascontiguousarray(has), names, smarts, phrases, start[:-1])
