"""Tell the bonded graph of atoms in space from their distances, equal for all conformers of a molecule."""

from __future__ import annotations

from functools import cache

import numpy as np
from rdkit import Chem
from scipy.spatial import cKDTree

from molgraph.chem.smiles import parse_smiles

SLACK = 0.45  # angstrom beyond the sum of two covalent radii: O'Boyle et al. 2011, J. Cheminform. 3:33
MAX_ATOMS = 2_000  # of more none is told, since all of them may stand at one place
_ROUNDS = 8


def connectivity_key(numbers: np.ndarray, positions: np.ndarray) -> str:
    """A text that conformers and stereoisomers of a molecule share; empty where positions are not finite, or too many.

    Atoms are bonded where they are no further apart than their covalent radii and ``SLACK``; eight rounds of
    Weisfeiler-Leman colours over that graph are hashed, so few other molecules share it too.

    Args:
        numbers: atomic numbers [n].
        positions: float [n, 3], angstrom.

    Example:
        >>> water, turned = np.eye(3), np.eye(3)[:, ::-1] + 5.0
        >>> connectivity_key(np.array([8, 1, 1]), water) == connectivity_key(np.array([8, 1, 1]), turned)
        True
    """
    known = 0 < len(numbers) <= MAX_ATOMS and np.min(numbers) >= 0 and np.max(numbers) < len(_radii())
    if not known or np.shape(positions) != (len(numbers), 3) or not np.isfinite(positions).all():
        return ""
    one, other = bonded_pairs(numbers, positions).T
    colour = _mixed(np.asarray(numbers, np.uint64))
    for _ in range(_ROUNDS):
        around = np.zeros_like(colour)
        np.add.at(around, one, _mixed(colour[other]))
        np.add.at(around, other, _mixed(colour[one]))
        colour = _mixed(colour * np.uint64(3) + around)
    return f"{len(colour)}-{int(_mixed(colour).sum(dtype=np.uint64)):016x}"


def has_bonds(text: str) -> bool:
    """Whether a SMILES has any bond, those to implicit hydrogens among them.

    Example:
        >>> [has_bonds(text) for text in ("O", "[Na+].[Cl-]", "[Na+].CC(=O)[O-]")]
        [True, False, True]
    """
    mol = parse_smiles(text).mol
    return mol is not None and any(atom.GetDegree() + atom.GetTotalNumHs() for atom in mol.GetAtoms())


def bonded_pairs(numbers: np.ndarray, positions: np.ndarray) -> np.ndarray:
    """int64 [b, 2]: the atoms that are no further apart than their covalent radii and ``SLACK``, each pair once.

    Example:
        >>> bonded_pairs(np.array([8, 1, 1]), np.array([[0, 0, 0], [0.96, 0, 0], [-0.24, 0.93, 0]])).tolist()
        [[0, 1], [0, 2]]
    """
    radius = _radii()[np.asarray(numbers, np.int64)]
    pairs = cKDTree(positions).query_pairs(2 * float(radius.max()) + SLACK, output_type="ndarray").reshape(-1, 2)
    apart = np.linalg.norm(positions[pairs[:, 0]] - positions[pairs[:, 1]], axis=1)
    return pairs[apart <= radius[pairs].sum(axis=1) + SLACK]


@cache
def _radii() -> np.ndarray:
    table = Chem.GetPeriodicTable()
    return np.array([table.GetRcovalent(z) for z in range(119)])


def _mixed(x: np.ndarray) -> np.ndarray:
    """Spread whole numbers over 64 bits (the finaliser of splitmix64)."""
    x = (x + np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
