"""Build condensed graphs of reaction from the graphs of reactants and products."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from molgraph.base.packed import offsets_of
from molgraph.data.packing import PackedGraphs

NO_BOND = 1  # the key of a bond that a side does not have: the column "null"
_ELEMENT = (1 << 6) - 1  # the bits of a key that say the element


@dataclass(frozen=True)
class CondensedGraphs:
    """Packed condensed graphs; a row holds the keys of the reactants' side and of the products'."""

    n_atoms: np.ndarray  # int64 [reactions]
    atom_keys: np.ndarray  # int64 [n, 2]
    bond_keys: np.ndarray  # int64 [b, 2]
    ends: np.ndarray  # int64 [2, b], the atoms of each bond, counted over all graphs

    @classmethod
    def joined(cls, parts: Sequence[CondensedGraphs]) -> CondensedGraphs:
        """Those of several parts, one after the other."""
        first = offsets_of([len(part.atom_keys) for part in parts])
        return cls(
            np.concatenate([np.zeros(0, np.int64), *(part.n_atoms for part in parts)]),
            np.concatenate([np.zeros((0, 2), np.int64), *(part.atom_keys for part in parts)]),
            np.concatenate([np.zeros((0, 2), np.int64), *(part.bond_keys for part in parts)]),
            np.concatenate(
                [np.zeros((2, 0), np.int64), *(p.ends + at for p, at in zip(parts, first, strict=False))], 1
            ),
        )


def alone(keys: np.ndarray) -> np.ndarray:
    """The keys of atoms on the side that they are not on: below 0, and of the element nothing but its number.

    Example:
        >>> alone(np.array([5, 64 + 5])).tolist()
        [-6, -6]
    """
    return -1 - (keys & _ELEMENT)


def condense(sides: PackedGraphs, product_of: Sequence[np.ndarray], *, balance: bool) -> CondensedGraphs:
    """The condensed graph of each reaction: atoms of the reactants, then those of the products alone.

    Args:
        sides: the graphs of the reactants and the products of each reaction in turn.
        product_of: for each reaction the atom of the products that each atom of the reactants is, or -1.
        balance: whether an atom, and a bond between two atoms, without a partner have on the other side what they have
            on their own.
    """
    offsets, n = offsets_of(sides.n_atoms), len(sides.atom_key)
    graph_of = np.arange(len(sides.n_atoms)).repeat(sides.n_atoms)
    before = graph_of % 2 == 0
    partner = np.full(n, -1)  # atoms of all graphs are counted through
    for start, end, places in zip(offsets[:-1:2], offsets[1::2], product_of, strict=True):
        partner[start:end] = np.where(places < 0, -1, places + end)
    matched = partner >= 0
    absent = np.ones(n, dtype=bool)  # atoms of the products without a partner, and all of the reactants
    absent[partner[matched]] = False
    kept = np.flatnonzero(before | absent)
    place = np.empty(n, np.int64)
    place[kept] = np.arange(len(kept))
    place[partner[matched]] = place[np.flatnonzero(matched)]

    keys = sides.atom_key
    other = keys if balance else alone(keys)
    reactants = np.where(before, keys, other)[kept]
    products = np.where(before, np.where(matched, keys[partner], other), keys)[kept]

    first = offsets[:-1].repeat(sides.n_bonds)
    ends = place[np.stack([sides.source + first, sides.target + first])]
    once = ends[0] < ends[1]  # one of the two directions
    from_reactants = (np.arange(len(sides.n_bonds)) % 2 == 0).repeat(sides.n_bonds)[once]
    pair, bond = np.unique(ends[0, once] * len(kept) + ends[1, once], return_inverse=True)
    bond_keys = np.full((len(pair), 2), NO_BOND, np.int64)
    bond_keys[bond[from_reactants], 0] = sides.bond_key[once][from_reactants]
    bond_keys[bond[~from_reactants], 1] = sides.bond_key[once][~from_reactants]
    joined = np.stack([pair // max(len(kept), 1), pair % max(len(kept), 1)])
    if balance:
        single = np.where(matched, 0, np.where(before, 1, 2))[kept]  # of which side an atom is alone
        for side in (1, 2):
            both = (single[joined] == side).all(axis=0)
            bond_keys[both, 2 - side] = bond_keys[both, side - 1]
    n_atoms = np.bincount(graph_of[kept] // 2, minlength=len(product_of))
    return CondensedGraphs(n_atoms, np.stack([reactants, products], axis=1), bond_keys, joined)
