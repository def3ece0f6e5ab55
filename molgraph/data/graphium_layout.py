"""Define the feature columns of atoms and bonds of the library Graphium, which MiniMol reads."""

from __future__ import annotations

import numpy as np

from molgraph.chem.elements import SYMBOLS

VERSION = "graphium.1"
_SYMBOLS = (
    "C N O S F Si P Cl Br Mg Na Ca Fe As Al I B V K Tl Yb Sb Sn Ag Pd Co Se Ti Zn H Li Ge Cu Au Ni Cd In Mn Zr Cr Pt "
    "Hg Pb"
)
ELEMENTS = (*_SYMBOLS.split(" "), "an element of no column of its own")
"""Of the first one-hot block."""
N_FLOATS, N_GROUPS, N_PERIODS, N_VALENCES, N_TAGS = 5, 20, 8, 8, 4
ELEMENT = N_FLOATS
GROUP = ELEMENT + len(ELEMENTS)
PERIOD = GROUP + N_GROUPS
VALENCE = PERIOD + N_PERIODS
GRAPHIUM = VALENCE + N_VALENCES
"""Columns that Graphium has: total degree less 2, formal charge, radical electrons, aromatic, in a ring; then one-hot
element, group, period and total valence, each but group and period with a last column for anything else."""
D_ATOM = GRAPHIUM + N_TAGS
D_BOND = 13
"""Bond columns, one-hot: single, double, triple, aromatic, other; stereo (6 and other); and whether in a ring."""

_ELEMENT_OF = np.array([ELEMENTS.index(each) if each in ELEMENTS else len(ELEMENTS) - 1 for each in SYMBOLS])
_SHORT, _MIDDLE, _LONG = [1, 2, *range(13, 19)], [*range(1, 19)], [1, 2, 3, *[19] * 14, *range(4, 19)]
# by atomic number: 19 for lanthanides and actinides; a dummy atom has the row of element 118
_GROUP_OF = np.array([18, 1, 18, *_SHORT * 2, *_MIDDLE * 2, *_LONG * 2])
_PERIOD_OF = np.array([7, *np.repeat(np.arange(1, 8), [2, 8, 8, 18, 18, 32, 32])])
# what a key holds, lowest bits first: largest value of each
_MOST = {"number": 127, "valence": 7, "degree": 31, "charge": 255, "radicals": 15, "aromatic": 1, "ring": 1, "tag": 7}
_BITS = [most.bit_length() for most in _MOST.values()]
_SHIFTS = np.cumsum([0, *_BITS[:-1]])


def atom_keys(found: np.ndarray) -> np.ndarray:
    """int64 [n]: a key for each atom.

    Args:
        found: int64 [n, 8]: atomic number, total valence, total degree, formal charge, radical electrons, aromatic, in
            a ring, and the chiral tag that ``handedness`` gives.

    Example:
        >>> rows = atom_rows(atom_keys(np.array([[6, 4, 3, 0, 0, 0, 0, 0], [8, 2, 1, 0, 0, 0, 0, 0]])))
        >>> [np.flatnonzero(row).tolist() for row in rows], rows[:, 0].tolist()
        ([[0, 5, 62, 70, 81], [0, 7, 64, 70, 79]], [1.0, -1.0])
    """
    columns = found.copy()
    columns[:, 3] += 128
    columns[:, 7] = np.minimum(columns[:, 7], N_TAGS)
    return (np.clip(columns, 0, [*_MOST.values()]) << _SHIFTS).sum(axis=1)


def atom_rows(keys: np.ndarray) -> np.ndarray:
    """float32 [n, 89]: the rows that int64 keys stand for."""
    fields = dict(zip(_MOST, ((keys[:, None] >> _SHIFTS) & [*_MOST.values()]).T, strict=True))
    rows = np.zeros((len(keys), D_ATOM), dtype=np.float32)
    rows[:, 0], rows[:, 1], rows[:, 2] = fields["degree"] - 2, fields["charge"] - 128, fields["radicals"]
    rows[:, 3], rows[:, 4] = fields["aromatic"], fields["ring"]
    number, index = fields["number"], np.arange(len(keys))
    rows[index, ELEMENT + _ELEMENT_OF[number]] = 1
    rows[index, GROUP + _GROUP_OF[number] - 1] = 1
    rows[index, PERIOD + _PERIOD_OF[number] - 1] = 1
    rows[index, VALENCE + fields["valence"]] = 1
    handed = np.flatnonzero(fields["tag"])
    rows[handed, GRAPHIUM + fields["tag"][handed] - 1] = 1
    return rows


def bond_keys(found: np.ndarray) -> np.ndarray:
    """int64 [b]: a key for each bond; bit i stands for column i.

    Args:
        found: int64 [b, 3]: 0 to 3 for single, double, triple, aromatic and 4 for anything else; RDKit's bond stereo;
            and whether it is in a ring.

    Example:
        >>> np.flatnonzero(bond_rows(bond_keys(np.array([[1, 3, 0]])))[0]).tolist()
        [1, 8]
    """
    kind, stereo, ring = found.T
    return (1 << kind) | (1 << (np.minimum(stereo, 6) + 5)) | (ring << 12)


def bond_rows(keys: np.ndarray) -> np.ndarray:
    """float32 [b, 13]: the rows that int64 keys stand for."""
    return ((keys[:, None] >> np.arange(D_BOND)) & 1).astype(np.float32)
