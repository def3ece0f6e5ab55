"""Number the atoms of a molecule by its constitution alone, the same however it was written."""

from __future__ import annotations

from rdkit import Chem

from molgraph.chem.fragments.atom_types import ORDERS
from molgraph.chem.fragments.cluster_label import ranks, refined


def canonical_order(mol: Chem.Mol) -> list[int]:
    """The atoms of a molecule without stereochemistry, sorted by their surroundings.

    Colour refinement sorts them, so that the order does not depend on how RDKit numbers atoms; it decides between
    atoms that refinement cannot tell apart, which nearly always are mirror images.

    Example:
        >>> canonical_order(Chem.MolFromSmiles("OCC")), canonical_order(Chem.MolFromSmiles("CCO"))
        ([2, 0, 1], [0, 2, 1])
    """
    near: list[list[tuple[int, int]]] = [[] for _ in range(mol.GetNumAtoms())]
    for bond in mol.GetBonds():
        i, j = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        order = 4 if bond.GetIsAromatic() else ORDERS.get(bond.GetBondType(), 5)
        near[i].append((order, j))
        near[j].append((order, i))
    kinds: list[tuple[int, ...]] = [
        (len(near[k]), a.GetAtomicNum(), a.GetFormalCharge(), a.GetTotalNumHs(), a.GetIsotope())
        for k, a in enumerate(mol.GetAtoms())
    ]
    colour = refined(ranks(kinds), near)
    bare = Chem.Mol(mol)
    Chem.RemoveStereochemistry(bare)
    ties = Chem.CanonicalRankAtoms(bare)
    return sorted(range(len(colour)), key=lambda k: (colour[k], ties[k]))
