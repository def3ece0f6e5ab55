"""Featurise SMILES through RDKit's Python interface: slower than C++, the same features bit for bit."""

from __future__ import annotations

import numpy as np
from rdkit import Chem
from rdkit.Chem.rdchem import Atom, Bond, BondType, HybridizationType, Mol

from molgraph.data.feature_layout import atom_keys_of, bond_keys_of
from molgraph.data.packing import PackedGraphs

_HYBRIDS = {
    getattr(HybridizationType, name): i for i, name in enumerate(("S", "SP", "SP2", "SP2D", "SP3", "SP3D", "SP3D2"))
}
_KINDS = {kind: i for i, kind in enumerate((BondType.SINGLE, BondType.DOUBLE, BondType.TRIPLE, BondType.AROMATIC))}


def pieces(smiles: list[str]) -> list[PackedGraphs]:
    """Packed graphs of the molecules, in order; what can't be read has no atoms."""
    mols = [_read(text) for text in smiles]
    n_atoms = np.array([mol.GetNumAtoms() for mol in mols], dtype=np.int64)
    n_bonds = np.array([mol.GetNumBonds() for mol in mols], dtype=np.int64)
    atoms = np.array([_atom(atom) for mol in mols for atom in mol.GetAtoms()], np.float64).reshape(-1, 8).T
    bonds = np.array([_bond(bond) for mol in mols for bond in mol.GetBonds()], np.int64).reshape(-1, 6).T
    ends = bonds[:2] + np.repeat(np.cumsum(n_atoms) - n_atoms, n_bonds)
    atom_keys = atom_keys_of(*[*atoms[:-1].astype(np.int64), atoms[-1]])
    return [PackedGraphs.from_bonds(n_atoms, atom_keys, bond_keys_of(*bonds[2:]), ends)]


def _atom(atom: Atom) -> tuple[float, ...]:
    return (
        atom.GetAtomicNum(),
        atom.GetTotalDegree(),
        atom.GetFormalCharge(),
        atom.GetChiralTag(),
        atom.GetTotalNumHs(),
        _HYBRIDS.get(atom.GetHybridization(), 7),
        atom.GetIsAromatic(),
        atom.GetMass(),
    )


def _bond(bond: Bond) -> tuple[int, ...]:
    return (
        bond.GetBeginAtomIdx(),
        bond.GetEndAtomIdx(),
        _KINDS.get(bond.GetBondType(), 4),
        bond.GetIsConjugated(),
        bond.IsInRing(),
        bond.GetStereo(),
    )


def _read(text: str) -> Mol:
    try:
        return Chem.MolFromSmiles(text) or Mol()
    except (RuntimeError, ValueError):  # RDKit throws a few parser errors instead of logging them
        return Mol()
