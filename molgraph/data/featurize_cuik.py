"""Featurise SMILES through the C++ library cuik-molmaker: the only module that imports it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.data.feature_layout import ATOM_WEIGHTS, D_ATOM, D_BOND, check_layout, join_halves
from molgraph.data.packing import PackedGraphs

CALL = 24
"""Molecules that the library is given at a time: feature rows stay in the cache, and little is read twice."""
_TRIAL = ["C[C@H]([NH3+])C(=O)[O-]", "F/C=C/[13CH2]Cl", "c1ccsc1", "[Na+].[Cl-]", "C#N", "FS(F)(F)(F)(F)F", "*[U]"]
_ATOM_CHOICES = [
    "atomic-number-common", "total-degree", "formal-charge", "chirality", "num-hydrogens", "hybridization-expanded",
]  # fmt: skip
_ATOM_FLOATS = ["aromatic", "mass"]
_BOND_COLUMNS = ["is-null", "bond-type-onehot", "conjugated", "in-ring", "stereo", "bond-type-float"]
# rows times these: the low half of an atom's key and its mass; a bond's key and twice its order. Whole numbers under
# 2^24, exact in any order; for products of so few columns a BLAS does not wake its threads
_ATOM_SUMS = np.stack([ATOM_WEIGHTS, np.arange(D_ATOM) == D_ATOM - 1], 1).astype(np.float32)
_BOND_SUMS = np.zeros((D_BOND + 1, 2), np.float32)
_BOND_SUMS[:-1, 0], _BOND_SUMS[-1, 1] = 2.0 ** np.arange(D_BOND), 2
_AROMATIC_BIT, _AROMATIC_ORDER = 1 << 4, 3


@cache
def missing() -> str:
    """Why this backend can't be used, or an empty text where it can.

    The library carries a part of RDKit compiled in, and is made for one version of it.
    """
    try:
        ours = version("cuik-molmaker-pin")
    except PackageNotFoundError:
        return "cuik-molmaker-pin is not installed"
    try:
        from rdkit import rdBase

        if ours.split(".")[:3] != [str(int(part)) for part in rdBase.rdkitVersion.split(".")[:3]]:
            return f"cuik-molmaker-pin {ours} is made for another version than rdkit {rdBase.rdkitVersion}"
        _library()
    except (ImportError, OSError, ValueError, RuntimeError) as error:
        return f"cuik-molmaker does not load: {error}"
    return ""


@cache
def _library() -> tuple[Any, np.ndarray, np.ndarray, np.ndarray]:
    import cuik_molmaker as library

    choices = library.atom_onehot_feature_names_to_array(_ATOM_CHOICES)
    floats = library.atom_float_feature_names_to_array(_ATOM_FLOATS)
    columns = library.bond_feature_names_to_array(_BOND_COLUMNS)
    # the layout is looked at once, here: the keys trust it
    atoms, bonds, *_ = library.batch_mol_featurizer(_TRIAL, choices, floats, columns, False, False, False, False)
    check_layout(atoms, bonds[:, :D_BOND])
    return library, choices, floats, columns


def pieces(smiles: list[str]) -> list[PackedGraphs]:
    """Packed graphs of the molecules, in order; what can't be read has no atoms."""
    reads = [read for start in range(0, len(smiles), CALL) for read in _reads(smiles[start : start + CALL])]
    n_atoms, atoms, bonds, ends = zip(*reads, strict=True)
    shift = np.repeat(offsets_of([len(part) for part in atoms])[:-1], [len(part) for part in bonds])
    low, mass = np.concatenate(atoms).T
    bond_keys, order = np.concatenate(bonds).astype(np.int64).T
    # the library puts every bond that is neither single, double, triple nor aromatic (dative, quadruple, unspecified)
    # into the aromatic column; the bond order, 1.5 for aromatic bonds alone, tells them apart
    bond_keys &= ~((order != _AROMATIC_ORDER) * np.int64(_AROMATIC_BIT))
    atom_keys = join_halves(low, np.ascontiguousarray(mass))
    return [
        PackedGraphs.from_bonds(np.concatenate(n_atoms), atom_keys, bond_keys, np.concatenate(ends, axis=1) + shift)
    ]


def _reads(smiles: list[str]) -> list[tuple[np.ndarray, ...]]:
    """For each call of the library: atoms a molecule; of atoms and of bonds two sums a row; the two ends of each bond.

    The library raises for all molecules of a call where one of them does not sanitise. Such a call is repeated in
    pieces of an eighth, until that molecule stands alone: most are read again but once.
    """
    library, choices, floats, columns = _library()
    try:
        atoms, bonds, ends, _, graph_of = library.batch_mol_featurizer(
            smiles, choices, floats, columns, False, False, False, False
        )
    except RuntimeError:
        if len(smiles) == 1:
            none = np.zeros((0, 2), np.float32)
            return [(np.zeros(1, np.int64), none, none, np.zeros((2, 0), np.int64))]
        size = -(-len(smiles) // 8)
        return [read for start in range(0, len(smiles), size) for read in _reads(smiles[start : start + size])]
    # a molecule that can't be read leaves a gap in graph_of, so counting gives it no atoms
    return [(np.bincount(graph_of, minlength=len(smiles)), atoms @ _ATOM_SUMS, bonds @ _BOND_SUMS, ends)]
