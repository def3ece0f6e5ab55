"""Cross two molecules for a genetic algorithm: cut both graphs and join a piece of each."""

from __future__ import annotations

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
        for _ in range(TRIES):
            n_bonds = 1 + int(rng.integers(2))
            left, right = _piece(a, n_bonds, rng), _piece(b, n_bonds, rng)
            made = finished(_joined(left, right, rng), max_atoms) if left is not None and right is not None else ""
            if made and made not in (a, b):
                return made
    return ""


def _piece(smiles: str, n_bonds: int, rng: np.random.Generator) -> Chem.Mol | None:
    """One of the two pieces of a cut, whose ends have the properties end0 and end1; None where there is no such cut."""
    mol = editable(smiles)
    if mol is None:
        return None
    if n_bonds == 1:
        bonds = [b.GetIdx() for b in mol.GetBonds() if b.GetBondType() == SINGLE and not b.IsInRing()]
    else:
        rings = mol.GetRingInfo().BondRings()
        bonds = list(rings[rng.integers(len(rings))]) if rings else []
    if len(bonds) < n_bonds:
        return None
    cut = [mol.GetBondWithIdx(int(i)) for i in rng.choice(bonds, n_bonds, replace=False)]
    ends = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in cut]
    for pair in ends:
        mol.RemoveBond(*pair)
    parts = Chem.GetMolFrags(mol)
    if len(parts) != 2:
        return None
    kept = set(parts[rng.integers(2)])
    marks = [next(atom for atom in pair if atom in kept) for pair in ends if kept & {*pair}]
    if len(marks) < n_bonds or any({*pair} <= kept for pair in ends):
        return None
    for place, atom in enumerate(marks):
        mol.GetAtomWithIdx(atom).SetIntProp(f"end{place}", 1)
    for atom in sorted(set(range(mol.GetNumAtoms())) - kept, reverse=True):
        mol.RemoveAtom(atom)
    return mol


def _joined(left: Chem.Mol, right: Chem.Mol, rng: np.random.Generator) -> Chem.RWMol:
    """The two pieces in one graph, each end of one bound to an end of the other."""
    mol = Chem.RWMol(Chem.CombineMols(left, right))
    ends: list[list[int]] = [[], []]
    for name in ("end0", "end1"):
        own = [atom.GetIdx() for atom in mol.GetAtoms() if atom.HasProp(name)]
        for side, atom in zip(ends, own, strict=False):
            side.append(atom)
    if len(ends[1]) == 2 and rng.random() < 0.5:
        ends[1].reverse()
    orders = [SINGLE] if len(ends[0]) == 1 else [(SINGLE, DOUBLE)[k] for k in rng.integers(2, size=2)]
    for a, b, order in zip(*ends, orders, strict=True):
        if mol.GetBondBetweenAtoms(a, b) is None:
            mol.AddBond(a, b, order)
    return mol
