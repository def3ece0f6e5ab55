"""Pack graphs with integer feature keys side by side into one graph store."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from molgraph.base.packed import offsets_of
from molgraph.data.graph_store import BOND_INDEX, GraphStore, Level


@dataclass(frozen=True)
class PackedGraphs:
    """Packed graphs of some molecules; feature rows are named by code into short lists of keys.

    Args:
        n_atoms, n_bonds: int64 [g], rows of each graph (directed bonds).
        atom_code: int32 [n], into ``atom_keys``; bond_code: int32 [e], into ``bond_keys``.
        source, target: [e], atom numbers within the graph; sorted by graph, then target.
        reverse: [e], number of the opposite bond within the graph.
    """

    n_atoms: np.ndarray
    n_bonds: np.ndarray
    atom_keys: np.ndarray
    bond_keys: np.ndarray
    atom_code: np.ndarray
    bond_code: np.ndarray
    source: np.ndarray
    target: np.ndarray
    reverse: np.ndarray

    @classmethod
    def empty(cls, n_graphs: int) -> PackedGraphs:
        """Graphs without a single atom: molecules that could not be read."""
        none, counts = np.zeros(0, np.int64), np.zeros(n_graphs, np.int64)
        return cls(counts, counts, none, none, none, none, none, none, none)

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
        source = ends.T.astype(np.uint16 if small else np.int64, order="C").ravel()
        target = source.reshape(-1, 2)[:, ::-1].ravel()  # the bond in row i has its opposite in row i ^ 1
        order = np.argsort(target, kind="stable")
        place = np.empty(len(order), np.int32)
        place[order] = np.arange(len(order), dtype=np.int32)
        degree = np.bincount(target, minlength=n)
        last_atom, bonds_to = np.cumsum(n_atoms), np.append(0, np.cumsum(degree))
        n_bonds = np.diff(bonds_to[last_atom], prepend=0)
        narrow = smallest(int(max(n_atoms.max(initial=0), n_bonds.max(initial=0))))
        first_atom = np.repeat((last_atom - n_atoms).astype(np.int32), n_bonds)
        first_bond = np.repeat((np.cumsum(n_bonds) - n_bonds).astype(np.int32), n_bonds)
        atom_code, atom_keys = pd.factorize(atom_key)
        bond_code, bond_keys = pd.factorize(bond_key)
        return cls(
            n_atoms, n_bonds, atom_keys, bond_keys,
            atom_code.astype(np.int32), bond_code.astype(np.int32)[order >> 1],
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
    """One store of all pieces; equal inputs give equal stores however they were cut.

    Args:
        pieces: graphs in order.
        status, reason: object [g], of all graphs.
        featuriser: name and version of the features.
        atom_rows, bond_rows: from int64 keys to the float32 rows of the tables.
    """
    n_atoms = _joined([p.n_atoms for p in pieces], np.dtype(np.int64))
    n_bonds = _joined([p.n_bonds for p in pieces], np.dtype(np.int64))
    atom_keys, atom_code = _merge([p.atom_keys for p in pieces], [p.atom_code for p in pieces])
    bond_keys, bond_code = _merge([p.bond_keys for p in pieces], [p.bond_code for p in pieces])
    local = smallest(int(max(n_atoms.max(initial=0), n_bonds.max(initial=0))))
    bonds = {name: _joined([getattr(p, name) for p in pieces], local) for name in ("source", "target", "reverse")}
    return GraphStore(
        levels={
            "atom": Level(offsets_of(n_atoms), {"code": atom_code}),
            "bond": Level(offsets_of(n_bonds), bonds | {"code": bond_code}, BOND_INDEX),
        },
        tables={"atom": atom_rows(atom_keys), "bond": bond_rows(bond_keys)},
        status=status,
        reason=reason,
        featuriser=featuriser,
    )


def _merge(keys: list[np.ndarray], codes: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Sorted distinct keys of all pieces, and every code counted in them."""
    distinct = np.unique(np.concatenate(keys)) if keys else np.zeros(0, np.int64)
    kind = smallest(len(distinct))
    parts = [np.searchsorted(distinct, k).astype(kind)[c] if len(k) else c for k, c in zip(keys, codes, strict=True)]
    return distinct, _joined(parts, kind)


def _joined(parts: list[np.ndarray], kind: np.dtype) -> np.ndarray:
    out = np.empty(sum(map(len, parts)), kind)
    start = 0
    for part in parts:
        out[start : start + len(part)] = part
        start += len(part)
    return out
