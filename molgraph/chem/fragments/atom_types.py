"""Types of atoms in a junction tree: element, charge, hydrogens, isotope; and how many bonds each can have."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.smiles import quiet

MOST_BONDS = 8
ORDERS = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3}


class AtomType(NamedTuple):
    """An atom without its neighbours.

    Args:
        number: of its element.
        charge: formal charge.
        hydrogens: how many it has; -1 where they fill its valence, as RDKit does for an atom without brackets.
        isotope: 0 if not named.
    """

    number: int
    charge: int = 0
    hydrogens: int = -1
    isotope: int = 0


def atom_types(mol: Chem.Mol) -> list[AtomType]:
    """The type of each atom of a kekulised molecule."""
    filled = Chem.Mol(mol)
    for atom in filled.GetAtoms():
        atom.SetNoImplicit(False)
        atom.SetNumExplicitHs(0)
        atom.SetNumRadicalElectrons(0)
    filled.UpdatePropertyCache(strict=False)
    out = []
    for atom, default in zip(mol.GetAtoms(), filled.GetAtoms(), strict=True):
        hydrogens = atom.GetTotalNumHs()
        usual = hydrogens == default.GetTotalNumHs() and not atom.GetNumRadicalElectrons()
        kind = (atom.GetAtomicNum(), atom.GetFormalCharge(), -1 if usual else hydrogens, atom.GetIsotope())
        out.append(AtomType(*kind))
    return out


def make_atom(kind: AtomType) -> Chem.Atom:
    """RDKit's atom of a type."""
    atom = Chem.Atom(kind.number)
    atom.SetFormalCharge(kind.charge)
    atom.SetIsotope(kind.isotope)
    if kind.hydrogens >= 0:
        atom.SetNoImplicit(True)
        atom.SetNumExplicitHs(kind.hydrogens)
    return atom


@cache
def most_bonds(kind: AtomType) -> int:
    """The largest sum of bond orders, hydrogens left out, with which RDKit takes an atom of a type.

    Example:
        >>> most_bonds(AtomType(6)), most_bonds(AtomType(7, 1)), most_bonds(AtomType(16)), most_bonds(AtomType(7, 0, 1))
        (4, 4, 6, 2)
    """
    best = 0
    with quiet():
        for n in range(1, MOST_BONDS + 1):
            mol = Chem.RWMol()
            mol.AddAtom(make_atom(kind))
            for k in range(n):
                mol.AddAtom(Chem.Atom(9))
                mol.AddBond(0, k + 1, Chem.BondType.SINGLE)
            if Chem.SanitizeMol(mol, catchErrors=True) == Chem.SanitizeFlags.SANITIZE_NONE:
                best = n
    return best
