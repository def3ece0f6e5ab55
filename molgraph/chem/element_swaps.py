"""Put another element in the place of one atom of a molecule, where its bonds allow it."""

from __future__ import annotations

import json
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.smiles import quiet


class Swapped(NamedTuple):
    """A molecule in which one atom is of another element, and the place of that atom in its SMILES."""

    smiles: str
    atom: int


def swap_element(mol: Chem.Mol, atom: int, element: int) -> Swapped | None:
    """The molecule with another element at an atom, its hydrogens anew; None where its valence does not allow it.

    None too where a hydrogen is an atom of its own, which a reader of the SMILES may leave out.

    Args:
        mol: the molecule.
        atom: its number.
        element: atomic number.

    Example:
        >>> benzyl = Chem.MolFromSmiles("Clc1ccccc1")
        >>> swap_element(benzyl, 0, 8).smiles, swap_element(benzyl, 1, 9)
        ('Oc1ccccc1', None)
    """
    if any(each.GetAtomicNum() == 1 for each in mol.GetAtoms()):
        return None
    made = Chem.RWMol(mol)
    own = made.GetAtomWithIdx(atom)
    if own.GetAtomicNum() != element:
        own.SetAtomicNum(element)
        own.SetFormalCharge(0)
        own.SetNumExplicitHs(0)
        own.SetNoImplicit(False)
        own.SetIsotope(0)
        own.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
        try:
            with quiet():
                Chem.SanitizeMol(made)
        except ValueError:  # a valence or an aromatic ring that cannot be
            return None
    smiles = Chem.MolToSmiles(made)
    return Swapped(smiles, list(json.loads(made.GetProp("_smilesAtomOutputOrder"))).index(atom))
