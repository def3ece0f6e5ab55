"""Featurise SMILES through RDKit's Python interface: slower than C++, the same features bit for bit.

A call from Python to RDKit costs more than what it asks for, so this module asks as little as it can:
what the text rules out (stereo without ``/``, isotopes without ``[1``) is not asked of each atom, and
everything that can be counted from the bonds is counted by numpy.
"""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, compress
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdchem import Atom, Bond, BondType, HybridizationType, Mol

from molgraph.data.feature_layout import atom_keys_of, bond_keys_of
from molgraph.data.packing import PackedGraphs

_HYBRIDS = ("S", "SP", "SP2", "SP2D", "SP3", "SP3D", "SP3D2")
_HYBRID = np.full(max(map(int, HybridizationType.values)) + 1, 7)
_HYBRID[[int(HybridizationType.names[name]) for name in _HYBRIDS]] = np.arange(7)
_KINDS = {kind: i for i, kind in enumerate((BondType.SINGLE, BondType.DOUBLE, BondType.TRIPLE, BondType.AROMATIC))}
_AROMATIC = 3
_KIND_OF_TWICE_ORDER = np.array([4, 4, 0, 3, 1, 4, 2])
_WEIGHT = np.array([Chem.GetPeriodicTable().GetAtomicWeight(z) for z in range(119)])
# a bond whose order is 1 may be a dative one, but only where a metal or the text says so
_MAY_BE_DATIVE = np.ones(119, dtype=bool)
_MAY_BE_DATIVE[[1, 5, 6, 7, 8, 9, 14, 15, 16, 17, 34, 35, 53]] = False
_ISOTOPE = re.compile(r"\[\d")


def pieces(smiles: list[str]) -> list[PackedGraphs]:
    """Packed graphs of the molecules, in order; what can't be read has no atoms."""
    # thousands of short-lived atoms and bonds would start Python's cycle collector again and again (a third
    # of the time); none of them is part of a cycle
    collecting = gc.isenabled()
    gc.disable()
    try:
        return [pack_molecules([_read(text) for text in smiles], smiles)]
    finally:
        if collecting:
            gc.enable()


def pack_molecules(mols: Sequence[Mol], smiles: Sequence[str]) -> PackedGraphs:
    """Packed graphs of RDKit's molecules that were read from those texts; one of no atoms stays empty."""
    n_atoms = np.array([mol.GetNumAtoms() for mol in mols], dtype=np.int64)
    n_bonds = np.array([mol.GetNumBonds() for mol in mols], dtype=np.int64)
    # by index, since RDKit's own iterators cost twice as much
    atoms = list(chain.from_iterable(map(m.GetAtomWithIdx, range(n)) for m, n in zip(mols, n_atoms, strict=True)))
    bonds = list(chain.from_iterable(map(m.GetBondWithIdx, range(n)) for m, n in zip(mols, n_bonds, strict=True)))
    rich = np.array(["|" in text for text in smiles], dtype=bool)  # CXSMILES may say anything
    of_atom, of_bond = np.arange(len(mols)).repeat(n_atoms), np.arange(len(mols)).repeat(n_bonds)

    first = np.repeat(np.cumsum(n_atoms) - n_atoms, n_bonds)
    begin, end = _ask(Bond.GetBeginAtomIdx, bonds) + first, _ask(Bond.GetEndAtomIdx, bonds) + first
    ends = np.stack([begin, end])

    number, hydrogens = _ask(Atom.GetAtomicNum, atoms), _ask(Atom.GetTotalNumHs, atoms)
    twice = 2 * np.fromiter(map(Bond.GetBondTypeAsDouble, bonds), np.float64, len(bonds))
    kind = _KIND_OF_TWICE_ORDER[np.minimum(twice, 5 + (twice == 6)).astype(np.int64)]
    arrows = rich | _has(smiles, lambda text: "->" in text or "<-" in text)
    dative = _MAY_BE_DATIVE[number]
    _where(dative[begin] | dative[end] | arrows[of_bond], _kind, bonds, kind)
    # RDKit's aromatic bonds are conjugated, in a ring, and end at aromatic atoms, which all have such a bond;
    # not so those that a text writes out itself, as in C:C
    written = rich | _has(smiles, lambda text: ":" in text)
    arom_bond = (kind == _AROMATIC) & ~written[of_bond]
    aromatic = np.zeros(len(atoms), dtype=bool)
    aromatic[begin[arom_bond]] = aromatic[end[arom_bond]] = True
    _where(written[of_atom], Atom.GetIsAromatic, atoms, aromatic)
    conjugated, ring, stereo = arom_bond.copy(), arom_bond.copy(), np.zeros(len(bonds), dtype=np.int64)
    others = list(compress(bonds, ~arom_bond))
    conjugated[~arom_bond], ring[~arom_bond] = _ask(Bond.GetIsConjugated, others), _ask(Bond.IsInRing, others)
    _where((rich | _has(smiles, lambda text: "/" in text or "\\" in text))[of_bond], Bond.GetStereo, bonds, stereo)
    bond_keys = bond_keys_of(kind, conjugated, ring, stereo)

    mass, chiral = _WEIGHT[number], np.zeros(len(atoms), dtype=np.int64)
    _where(_has(smiles, _ISOTOPE.search)[of_atom], Atom.GetMass, atoms, mass)
    _where((rich | _has(smiles, lambda text: "@" in text))[of_atom], Atom.GetChiralTag, atoms, chiral)
    atom_keys = atom_keys_of(
        number, np.bincount(ends.ravel(), minlength=len(atoms)) + hydrogens, _ask(Atom.GetFormalCharge, atoms), chiral,
        hydrogens, _HYBRID[_ask(Atom.GetHybridization, atoms)], aromatic, mass,
    )  # fmt: skip

    return PackedGraphs.from_bonds(n_atoms, atom_keys, bond_keys, ends)


def _read(text: str) -> Mol:
    try:
        return Chem.MolFromSmiles(text) or Mol()
    except (RuntimeError, ValueError):  # RDKit throws a few parser errors instead of logging them
        return Mol()


def _kind(bond: Bond) -> int:
    return _KINDS.get(bond.GetBondType(), 4)


def _ask(question: Callable[[Any], int], things: list[Any]) -> np.ndarray:
    return np.fromiter(map(question, things), np.int64, len(things))


def _where(mask: np.ndarray, question: Callable[[Any], Any], things: list[Any], answers: np.ndarray) -> None:
    """Ask only those things that the mask names, and put what they say into ``answers``."""
    for i in np.flatnonzero(mask):
        answers[i] = question(things[i])


def _has(smiles: Iterable[str], test: Callable[[str], Any]) -> np.ndarray:
    return np.array([bool(test(text)) for text in smiles], dtype=bool)
