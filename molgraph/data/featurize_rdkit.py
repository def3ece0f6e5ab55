"""SMILES in, packed keys out, through RDKit's Python interface: slower than C++, the same features bit for bit."""

from __future__ import annotations

from itertools import chain

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdchem import Atom, Bond, BondType, HybridizationType

from molgraph.data.features import atom_key, bond_key
from molgraph.data.packing import Piece

_HYBRIDS = {
    kind: i
    for i, kind in enumerate(
        (
            HybridizationType.S, HybridizationType.SP, HybridizationType.SP2, HybridizationType.SP2D,
            HybridizationType.SP3, HybridizationType.SP3D, HybridizationType.SP3D2,
        )
    )
}  # fmt: skip
_KINDS = {kind: i for i, kind in enumerate((BondType.SINGLE, BondType.DOUBLE, BondType.TRIPLE, BondType.AROMATIC))}


class _AtomKeys(dict):
    """Keys by what RDKit says of an atom; each distinct atom is worked out once."""

    def __missing__(self, said: tuple) -> int:
        number, degree, charge, chiral, hydrogens, hybrid, aromatic, mass = said
        key = atom_key(number, degree, charge, int(chiral), hydrogens, _HYBRIDS.get(hybrid, 7), aromatic, mass)
        self[said] = key
        return key


class _BondKeys(dict):
    """Keys by what RDKit says of a bond."""

    def __missing__(self, said: tuple) -> int:
        kind, conjugated, ring, stereo = said
        key = bond_key(_KINDS.get(kind, 4), conjugated, ring, int(stereo))
        self[said] = key
        return key


_atom_keys, _bond_keys = _AtomKeys(), _BondKeys()


def pieces(smiles: list[str]) -> list[Piece]:
    """Packed graphs of the molecules, in order; what can't be read has no atoms."""
    read = Chem.MolFromSmiles
    empty = Chem.Mol()
    mols = [read(text) or empty for text in smiles]
    atoms_of = [list(mol.GetAtoms()) for mol in mols]
    bonds_of = [list(mol.GetBonds()) for mol in mols]
    atoms, bonds = list(chain.from_iterable(atoms_of)), list(chain.from_iterable(bonds_of))
    # zip over map keeps the loops in C; what it gives is hashed once an atom
    said = zip(
        map(Atom.GetAtomicNum, atoms), map(Atom.GetTotalDegree, atoms), map(Atom.GetFormalCharge, atoms),
        map(Atom.GetChiralTag, atoms), map(Atom.GetTotalNumHs, atoms), map(Atom.GetHybridization, atoms),
        map(Atom.GetIsAromatic, atoms), map(Atom.GetMass, atoms), strict=True,
    )  # fmt: skip
    atom_keys = np.fromiter(map(_atom_keys.__getitem__, said), np.int64, len(atoms))
    told = zip(
        map(Bond.GetBondType, bonds), map(Bond.GetIsConjugated, bonds), map(Bond.IsInRing, bonds),
        map(Bond.GetStereo, bonds), strict=True,
    )  # fmt: skip
    bond_keys = np.fromiter(map(_bond_keys.__getitem__, told), np.int64, len(bonds))
    n_atoms = np.fromiter(map(len, atoms_of), np.int64, len(mols))
    n_bonds = np.fromiter(map(len, bonds_of), np.int64, len(mols))
    shift = np.repeat(np.cumsum(n_atoms) - n_atoms, n_bonds)
    begin = np.fromiter(map(Bond.GetBeginAtomIdx, bonds), np.int64, len(bonds)) + shift
    end = np.fromiter(map(Bond.GetEndAtomIdx, bonds), np.int64, len(bonds)) + shift
    source, target = np.stack([begin, end], 1).ravel(), np.stack([end, begin], 1).ravel()
    reverse = np.arange(len(source)) ^ 1
    return [Piece.from_global(n_atoms, atom_keys, np.repeat(bond_keys, 2), source, target, reverse)]
