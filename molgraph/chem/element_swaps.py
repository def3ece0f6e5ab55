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
    if any(other.GetAtomicNum() == 1 for other in mol.GetAtoms()):
        return None
    product = Chem.RWMol(mol)
    centre = product.GetAtomWithIdx(atom)
    if centre.GetAtomicNum() != element:
        centre.SetAtomicNum(element)
        centre.SetFormalCharge(0)
        centre.SetNumExplicitHs(0)
        centre.SetNoImplicit(False)
        centre.SetIsotope(0)
        centre.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
        try:
            with quiet():
                Chem.SanitizeMol(product)
        except ValueError:  # a valence or an aromatic ring that cannot be
            return None
    smiles = Chem.MolToSmiles(product)
    return Swapped(smiles, list(json.loads(product.GetProp("_smilesAtomOutputOrder"))).index(atom))
