"""Pack graphs with integer feature keys side by side into one graph store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields

import numpy as np
import pandas as pd

from molgraph.base.packed import offsets_of
from molgraph.data.graph_store import BOND_INDEX, GraphStore, Level


@dataclass(frozen=True)
class PackedGraphs:
    """Packed graphs of some molecules."""

    n_atoms: np.ndarray  # int64 [g], rows of each graph (directed bonds)
    n_bonds: np.ndarray  # int64 [g], rows of each graph (directed bonds)
    atom_key: np.ndarray  # int64 [n]; bond_key: int64 [e], the features of each row
    bond_key: np.ndarray
    source: np.ndarray  # [e], atom numbers within the graph; sorted by graph, then target
    target: np.ndarray  # [e], atom numbers within the graph; sorted by graph, then target
    reverse: np.ndarray  # [e], number of the opposite bond within the graph

    @classmethod
    def from_bonds(
        cls, n_atoms: np.ndarray, atom_key: np.ndarray, bond_key: np.ndarray, ends: np.ndarray
    ) -> PackedGraphs:
        """Two directed bonds for each chemical bond, sorted by target atom, counted from the start of their graph.

        Args:
            n_atoms: int64 [g].
            atom_key: int64 [n].
            bond_key: int64 [b], for chemical bonds in any order that keeps graphs together.
            ends: int [2, b], their atoms as rows of the whole piece.
        """
        n = len(atom_key)
        small = n <= 1 << 16  # numpy sorts 16-bit numbers by radix
        source: np.ndarray = ends.T.astype(np.uint16 if small else np.int64, order="C").ravel()
        target = source.reshape(-1, 2)[:, ::-1].ravel()  # the bond in row i has its opposite in row i ^ 1
        order = np.argsort(target, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        atoms, bonds_to = offsets_of(n_atoms), offsets_of(np.bincount(target, minlength=n))
        n_bonds = np.diff(bonds_to[atoms])
        narrow = smallest(int(max(n_atoms.max(initial=0), n_bonds.max(initial=0))))
        first_atom = np.repeat(atoms[:-1].astype(np.int32), n_bonds)
        first_bond = np.repeat(bonds_to[atoms[:-1]].astype(np.int32), n_bonds)
        return cls(
            n_atoms, n_bonds, atom_key, bond_key[order >> 1],
            (source[order] - first_atom).astype(narrow), (target[order] - first_atom).astype(narrow),
            (place[order ^ 1] - first_bond).astype(narrow),
        )  # fmt: skip


def smallest(highest: int) -> np.dtype:
    """The smallest signed integer type that torch knows and that holds ``highest``."""
    for kind in (np.int16, np.int32):
        if highest <= np.iinfo(kind).max:
            return np.dtype(kind)
    return np.dtype(np.int64)


def pack(
    pieces: Sequence[PackedGraphs], status: np.ndarray, reason: np.ndarray, featuriser: str,
    atom_rows: Callable[[np.ndarray], np.ndarray], bond_rows: Callable[[np.ndarray], np.ndarray],
) -> GraphStore:  # fmt: skip
    """One store of all pieces; equal inputs give equal stores however they were cut."""
    whole = {f.name: np.concatenate([getattr(p, f.name) for p in pieces]) for f in fields(PackedGraphs)}
    n_atoms, n_bonds = whole["n_atoms"], whole["n_bonds"]
    atom_code, atom_keys = pd.factorize(whole["atom_key"], sort=True)
    bond_code, bond_keys = pd.factorize(whole["bond_key"], sort=True)
    local = smallest(int(max(n_atoms.max(initial=0), n_bonds.max(initial=0))))
    bonds = {name: whole[name].astype(local, copy=False) for name in BOND_INDEX}
    bonds["code"] = bond_code.astype(smallest(len(bond_keys)))
    return GraphStore(
        levels={
            "atom": Level(offsets_of(n_atoms), {"code": atom_code.astype(smallest(len(atom_keys)))}),
            "bond": Level(offsets_of(n_bonds), bonds, BOND_INDEX),
        },
        tables={"atom": atom_rows(atom_keys), "bond": bond_rows(bond_keys)},
        status=status,
        reason=reason,
        featuriser=featuriser,
    )
