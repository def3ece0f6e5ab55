"""Cross two molecules for a genetic algorithm: cut both graphs and join a piece of each."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.graph_edits import DOUBLE, SINGLE, TRIES, editable, finished
from molgraph.chem.smiles import quiet


def cross(a: str, b: str, rng: np.random.Generator, *, max_atoms: int = 50) -> str:
    """A child of two molecules: a piece of each, joined where they were cut.

    Both are cut at a single bond outside rings, or at two bonds of a ring, with equal chances (Jensen 2019, Chem. Sci.
    10:3567); pieces of rings are joined by single or double bonds.

    Args:
        a, b: SMILES of the parents.
        rng: of the cuts.
        max_atoms: heavy atoms that the child may have.

    Returns:
        Canonical SMILES, of neither parent; empty where no cut of some tries gives a sensible molecule.

    Example:
        >>> cross("CCCCO", "c1ccccc1N", np.random.default_rng(0)) not in ("", "CCCCO", "Nc1ccccc1")
        True
    """
    with quiet():
        parents = [_parent(text) for text in (a, b)]
        for _ in range(TRIES):
            n_bonds = 1 + int(rng.integers(2))
            left, right = (None if parent is None else parent.cut(n_bonds, rng) for parent in parents)
            child = finished(_joined(left, right, rng), max_atoms) if left is not None and right is not None else ""
            if child and child not in (a, b):
                return child
    return ""


class _Piece(NamedTuple):
    """A part of a molecule, and its atoms at which it was cut off."""

    mol: Chem.RWMol
    ends: list[int]


class _Parent(NamedTuple):
    """A molecule, its single bonds outside rings and the bonds of its rings."""

    mol: Chem.RWMol
    chain: list[int]
    rings: list[list[int]]

    def cut(self, n_bonds: int, rng: np.random.Generator) -> _Piece | None:
        """One of the two pieces of a cut; None where there is no such cut."""
        bonds = self.chain
        if n_bonds == 2:
            bonds = self.rings[rng.integers(len(self.rings))] if self.rings else []
        if len(bonds) < n_bonds:
            return None
        mol = Chem.RWMol(self.mol)
        cut = [mol.GetBondWithIdx(int(i)) for i in rng.choice(bonds, n_bonds, replace=False)]
        pairs = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in cut]
        for pair in pairs:
            mol.RemoveBond(*pair)
        parts = Chem.GetMolFrags(mol)
        if len(parts) != 2:
            return None
        kept = set(parts[rng.integers(2)])
        ends = [next(atom for atom in pair if atom in kept) for pair in pairs if kept & {*pair}]
        if len(ends) < n_bonds or any({*pair} <= kept for pair in pairs):
            return None
        mol.BeginBatchEdit()
        for atom in range(mol.GetNumAtoms()):
            if atom not in kept:
                mol.RemoveAtom(atom)
        mol.CommitBatchEdit()
        return _Piece(mol, [sum(atom < end for atom in kept) for end in ends])


@lru_cache(maxsize=1024)  # those of a population are cut again and again
def _parent(smiles: str) -> _Parent | None:
    """None of a text that cannot be read."""
    mol = editable(smiles)
    if mol is None:
        return None
    chain = [b.GetIdx() for b in mol.GetBonds() if b.GetBondType() == SINGLE and not b.IsInRing()]
    return _Parent(mol, chain, [list(ring) for ring in mol.GetRingInfo().BondRings()])


def _joined(left: _Piece, right: _Piece, rng: np.random.Generator) -> Chem.RWMol:
    """The two pieces in one graph, each end of one bound to an end of the other."""
    mol = Chem.RWMol(Chem.CombineMols(left.mol, right.mol))
    ends = [atom + left.mol.GetNumAtoms() for atom in right.ends]
    if len(ends) == 2 and rng.random() < 0.5:
        ends.reverse()
    orders = [SINGLE] if len(ends) == 1 else [(SINGLE, DOUBLE)[k] for k in rng.integers(2, size=2)]
    for a, b, order in zip(left.ends, ends, orders, strict=True):
        if mol.GetBondBetweenAtoms(a, b) is None:
            mol.AddBond(a, b, order)
    return mol
