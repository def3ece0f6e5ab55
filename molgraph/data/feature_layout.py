"""Define the feature layout ``v2``: integer keys of atoms and bonds, and the float rows that they stand for.

The layout is chemprop's (Heid et al. 2024, J. Chem. Inf. Model. 64:9): 72 columns an atom, 14 a bond.
A key holds all that a row holds, in one int64, so that rows are compared, counted and merged as integers.
"""

from __future__ import annotations

import numpy as np

from molgraph.data.graph_store import BOND_INDEX, InputSpec

FEATURISER, OLDER = "v2.2", "v2.1"
"""Name and version of the features; it is part of every cache key and model file.

The older version holds RDKit's chiral tags, which depend on the order of an atom's neighbours in the SMILES; the newer
one those of ``molgraph.chem.handedness``, and reads no atom maps. All else is the same.
"""

ATOM_BLOCKS = (38, 7, 6, 5, 6, 8, 2)
"""Choices for atomic number, total degree, formal charge, chiral tag, hydrogens, hybridisation, aromatic.

Each but the last ends with "something else". Beside them stands one float column, mass / 100.
"""
D_ATOM = sum(ATOM_BLOCKS[:-1]) + 2
D_BOND = 14
"""Bond columns: null; single, double, triple, aromatic; conjugated; in ring; stereo (6 and "something else")."""

MOLECULE_SPEC = InputSpec(FEATURISER, {"atom": D_ATOM, "bond": D_BOND}, {f"bond.{name}": () for name in BOND_INDEX})
"""What a store of molecules holds."""

_BITS = (6, 3, 3, 3, 3, 4, 1)
_SHIFTS = tuple(int(s) for s in np.cumsum((0, *_BITS))[:-1])
CHIRAL = 3  # place of the chiral tag among the blocks
_ELEMENT = np.full(256, 37)
_ELEMENT[[*range(1, 37), 53]] = np.arange(37)
_CHARGE = np.full(256, 5)  # by charge + 128
_CHARGE[np.array([-1, -2, 1, 2, 0]) + 128] = np.arange(5)


def atom_keys_of(
    atomic_number: np.ndarray, degree: np.ndarray, charge: np.ndarray, chiral: np.ndarray, hydrogens: np.ndarray,
    hybrid: np.ndarray, aromatic: np.ndarray, mass: np.ndarray,
) -> np.ndarray:  # fmt: skip
    """The keys of atoms from what is known of them.

    Args:
        atomic_number: int [n], 0 for a dummy atom.
        degree: int [n], neighbours, hydrogens included.
        charge: int [n], formal charge.
        chiral: int [n], RDKit's chiral tag, or that of ``handedness``.
        hydrogens: int [n], number of hydrogens that are no atoms of their own.
        hybrid: int [n], 0 to 6 for S, SP, SP2, SP2D, SP3, SP3D, SP3D2; 7 for anything else.
        aromatic: bool [n].
        mass: float [n], in daltons; follows the isotope.

    Returns:
        int64 [n].

    Example:
        >>> key = atom_keys_of(*np.array([[6], [4], [0], [0], [3], [4], [0]]), np.array([12.011]))
        >>> np.flatnonzero(atom_rows(key)[0]).tolist()
        [5, 42, 49, 51, 59, 66, 71]
    """
    choices = (
        _ELEMENT[atomic_number], np.minimum(degree, 6), _CHARGE[np.clip(charge, -128, 127) + 128],
        np.minimum(chiral, 4), np.minimum(hydrogens, 5), hybrid, aromatic,
    )  # fmt: skip
    keys = np.zeros(len(mass), dtype=np.int64)
    for choice, shift in zip(choices, _SHIFTS, strict=True):
        keys |= choice.astype(np.int64) << shift
    # single precision before the division: this is how the C++ library rounds
    return keys | (mass.astype(np.float32) / np.float32(100)).view(np.uint32).astype(np.int64) << 32


def chiral_tags(keys: np.ndarray) -> np.ndarray:
    """int64 [n]: the chiral tags of int64 keys."""
    return (keys >> _SHIFTS[CHIRAL]) & ((1 << _BITS[CHIRAL]) - 1)


def with_chiral_tags(keys: np.ndarray, tags: np.ndarray) -> np.ndarray:
    """int64 [n]: the keys with other chiral tags.

    Example:
        >>> chiral_tags(with_chiral_tags(np.array([2**40 + 1, 7]), np.array([2, 0]))).tolist()
        [2, 0]
    """
    return keys ^ ((chiral_tags(keys) ^ tags) << _SHIFTS[CHIRAL])


def element_counts(rows: np.ndarray) -> np.ndarray:
    """float32 [n, 38]: atoms of each element that rows [n, 72] stand for: the atom, and hydrogens that are no rows.

    Columns are those of the atomic number; five hydrogens stand for more, too.

    Example:
        >>> methane = atom_keys_of(*np.array([[6], [4], [0], [0], [4], [4], [0]]), np.array([12.011]))
        >>> element_counts(atom_rows(methane))[0, :6].tolist()
        [4.0, 0.0, 0.0, 0.0, 0.0, 1.0]
    """
    counts = rows[:, : ATOM_BLOCKS[0]].copy()
    first, n = sum(ATOM_BLOCKS[:4]), ATOM_BLOCKS[4]
    counts[:, 0] += rows[:, first : first + n] @ np.arange(n, dtype=rows.dtype)
    return counts


def bond_keys_of(kind: np.ndarray, conjugated: np.ndarray, ring: np.ndarray, stereo: np.ndarray) -> np.ndarray:
    """The keys of bonds from what is known of them.

    Args:
        kind: int [n], 0 to 3 for single, double, triple, aromatic; 4 for anything else, which has no column.
        conjugated, ring: bool [n].
        stereo: int [n], RDKit's bond stereo.

    Returns:
        int64 [n]; bit i stands for column i.

    Example:
        >>> np.flatnonzero(bond_rows(bond_keys_of(*np.array([[3], [1], [1], [0]])))[0]).tolist()
        [4, 5, 6, 7]
    """
    flags = conjugated.astype(np.int64) << 5 | ring.astype(np.int64) << 6
    return np.array([2, 4, 8, 16, 0])[kind] | flags | np.int64(128) << np.minimum(stereo, 6)


def atom_rows(keys: np.ndarray) -> np.ndarray:
    """float32 [n, 72]: the rows of int64 keys."""
    rows = np.zeros((len(keys), D_ATOM), dtype=np.float32)
    start = 0
    for width, shift, bits in zip(ATOM_BLOCKS[:-1], _SHIFTS, _BITS, strict=False):
        rows[np.arange(len(keys)), start + ((keys >> shift) & ((1 << bits) - 1))] = 1
        start += width
    rows[:, start] = (keys >> _SHIFTS[-1]) & 1
    rows[:, start + 1] = (keys >> 32).astype(np.uint32).view(np.float32)
    return rows


def bond_rows(keys: np.ndarray) -> np.ndarray:
    """float32 [n, 14]: the rows of int64 keys."""
    return ((keys[:, None] >> np.arange(D_BOND)) & 1).astype(np.float32)


ATOM_WEIGHTS = np.array(
    [i << shift for width, shift in zip(ATOM_BLOCKS[:-1], _SHIFTS, strict=False) for i in range(width)]
    + [1 << _SHIFTS[-1], 0],
    dtype=np.float32,
)
"""A row times these is its key's low half: integers under 2^24, exact in single precision in any order of summation."""


def join_halves(low: np.ndarray, mass: np.ndarray) -> np.ndarray:
    """int64 [n]: keys from their low halves and from the mass column, both float32 [n]."""
    return low.astype(np.int64) | mass.view(np.uint32).astype(np.int64) << 32


def atom_keys(rows: np.ndarray) -> np.ndarray:
    """int64 [n]: the keys of float32 rows [n, 72] of this layout; the inverse of ``atom_rows``."""
    low = np.einsum("ij,j->i", rows, ATOM_WEIGHTS)  # a BLAS would wake its threads for so little
    return join_halves(low, rows[:, -1])


def check_layout(atoms: np.ndarray, bonds: np.ndarray) -> None:
    """Raise ``ValueError`` where rows that somebody else made are not of this layout."""
    if atoms.shape[1:] != (D_ATOM,) or not np.array_equal(atom_rows(atom_keys(atoms)), atoms):
        raise ValueError("atom features are not of the layout v2")
    if bonds.shape[1:] != (D_BOND,) or not np.isin(bonds, (0, 1)).all():
        raise ValueError("bond features are not of the layout v2")
