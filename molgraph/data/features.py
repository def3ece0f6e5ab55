"""The feature layout ``v2``: exact integer keys of atoms and bonds in, the float rows that they stand for out.

The layout is chemprop's (Heid et al. 2024, J. Chem. Inf. Model. 64:9): 72 columns an atom, 14 a bond.
A key holds all that a row holds, in one int64, so that rows are compared, counted and merged as integers.
"""

from __future__ import annotations

import numpy as np

FEATURISER = "v2.1"
"""Name and version of the features; it is part of every cache key and model file."""

ATOM_BLOCKS = (38, 7, 6, 5, 6, 8, 2)
"""Choices for atomic number, total degree, formal charge, chiral tag, hydrogens, hybridisation, aromatic.

Each but the last ends with "something else". Beside them stands one float column, mass / 100.
"""
D_ATOM = sum(ATOM_BLOCKS[:-1]) + 2
D_BOND = 14
"""Bond columns: null; single, double, triple, aromatic; conjugated; in ring; stereo (6 and "something else")."""

_BITS = (6, 3, 3, 3, 3, 4, 1)
_SHIFTS = tuple(int(s) for s in np.cumsum((0, *_BITS))[:-1])
_ELEMENTS = {z: i for i, z in enumerate((*range(1, 37), 53))}
_CHARGES = {q: i for i, q in enumerate((-1, -2, 1, 2, 0))}


def atom_key(
    atomic_number: int, degree: int, charge: int, chiral: int, hydrogens: int, hybrid: int, aromatic: bool, mass: float
) -> int:
    """The key of one atom.

    Args:
        atomic_number: 0 for a dummy atom.
        degree: neighbours, hydrogens included.
        charge: formal charge.
        chiral: RDKit's chiral tag as an integer.
        hydrogens: number of hydrogens that are no atoms of their own.
        hybrid: 0 to 6 for S, SP, SP2, SP2D, SP3, SP3D, SP3D2; 7 for anything else.
        aromatic: whether it is.
        mass: in daltons; follows the isotope.

    Example:
        >>> row = atom_rows(np.array([atom_key(6, 4, 0, 0, 3, 4, False, 12.011)]))[0]
        >>> np.flatnonzero(row).tolist()
        [5, 42, 49, 51, 59, 66, 71]
    """
    choices = (
        _ELEMENTS.get(atomic_number, 37), min(degree, 6), _CHARGES.get(charge, 5), min(chiral, 4),
        min(hydrogens, 5), hybrid, int(aromatic),
    )  # fmt: skip
    low = sum(c << s for c, s in zip(choices, _SHIFTS, strict=True))
    # single precision before the division: this is how the C++ library rounds
    return low | int((np.float32(mass) / np.float32(100)).view(np.uint32)) << 32


def bond_key(kind: int, conjugated: bool, ring: bool, stereo: int) -> int:
    """The key of one bond.

    Args:
        kind: 0 to 3 for single, double, triple, aromatic; anything else has no column.
        conjugated, ring: whether it is.
        stereo: RDKit's bond stereo as an integer.

    Example:
        >>> np.flatnonzero(bond_rows(np.array([bond_key(3, True, True, 0)]))[0]).tolist()
        [4, 5, 6, 7]
    """
    columns = [5] * conjugated + [6] * ring + [7 + min(stereo, 6)] + ([1 + kind] if 0 <= kind < 4 else [])
    return sum(1 << c for c in columns)


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


def _atom_weights() -> np.ndarray:
    """float32 [72, 2]: a row times the first column is its key's low half, times the second the ones a block has.

    Both are integers under 2^24, so that single precision is exact in any order of summation.
    """
    weights = np.zeros((D_ATOM, 2), dtype=np.float32)
    start = 0
    for block, (width, shift) in enumerate(zip(ATOM_BLOCKS[:-1], _SHIFTS, strict=False)):
        weights[start : start + width, 0] = np.arange(width) * 2**shift
        weights[start : start + width, 1] = 16**block
        start += width
    weights[start, 0] = 2 ** _SHIFTS[-1]
    return weights


_ATOM_WEIGHTS = _atom_weights()
_ONE_EACH = float(sum(16**block for block in range(6)))


def atom_keys(rows: np.ndarray) -> np.ndarray:
    """int64 [n]: the keys of float32 rows [n, 72]; the inverse of ``atom_rows``.

    Raises:
        ValueError: a row that is not of this layout.
    """
    product = rows @ _ATOM_WEIGHTS
    if not (product[:, 1] == _ONE_EACH).all():
        raise ValueError("atom features are not of the layout v2")
    mass = np.ascontiguousarray(rows[:, -1]).view(np.uint32)
    return product[:, 0].astype(np.int64) | mass.astype(np.int64) << 32
