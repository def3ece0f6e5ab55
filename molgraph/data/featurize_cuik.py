"""SMILES in, packed keys out, through the C++ library cuik-molmaker: the only module that imports it."""

from __future__ import annotations

from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from molgraph.data.features import D_BOND, atom_keys
from molgraph.data.packing import Piece

_ATOM_CHOICES = [
    "atomic-number-common", "total-degree", "formal-charge", "chirality", "num-hydrogens", "hybridization-expanded",
]  # fmt: skip
_ATOM_FLOATS = ["aromatic", "mass"]
_BOND_COLUMNS = ["is-null", "bond-type-onehot", "conjugated", "in-ring", "stereo", "bond-type-float"]
# the weight of the last column puts twice the bond order above the 14 bits of the layout
_BOND_WEIGHTS = (2.0 ** np.array([*range(D_BOND), D_BOND + 1])).astype(np.float32)
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

    return (
        library,
        library.atom_onehot_feature_names_to_array(_ATOM_CHOICES),
        library.atom_float_feature_names_to_array(_ATOM_FLOATS),
        library.bond_feature_names_to_array(_BOND_COLUMNS),
    )


def pieces(smiles: list[str]) -> list[Piece]:
    """Packed graphs of the molecules, in order, in one or more pieces; what can't be read has no atoms.

    The library raises for a whole batch where one molecule does not sanitise: such a batch is halved
    until that molecule stands alone, and what was read before is kept.
    """
    try:
        return [_piece(smiles)]
    except RuntimeError:
        if len(smiles) == 1:
            return [Piece.empty(1)]
    middle = len(smiles) // 2
    return pieces(smiles[:middle]) + pieces(smiles[middle:])


def _piece(smiles: list[str]) -> Piece:
    library, choices, floats, columns = _library()
    atoms, bonds, ends, reverse, graph_of = library.batch_mol_featurizer(
        smiles, choices, floats, columns, False, False, True, False
    )
    # a molecule that can't be read leaves a gap in graph_of, so counting gives it no atoms
    n_atoms = np.bincount(graph_of, minlength=len(smiles))
    return Piece.from_global(n_atoms, atom_keys(atoms), _bond_keys(bonds), ends[0], ends[1], reverse)


def _bond_keys(rows: np.ndarray) -> np.ndarray:
    """int64 [n]: keys of rows [n, 15].

    The library puts every bond that is neither single, double, triple nor aromatic (dative, quadruple,
    unspecified) into the aromatic column; the bond order, 1.5 for aromatic bonds alone, tells them apart.
    """
    keys = (rows @ _BOND_WEIGHTS).astype(np.int64)
    wrong = ((keys & _AROMATIC_BIT) != 0) & (keys >> D_BOND != _AROMATIC_ORDER)
    return (keys & ((1 << D_BOND) - 1)) - wrong * _AROMATIC_BIT
