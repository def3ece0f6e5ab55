"""Find the edit between a molecule and its product: atoms and bonds that are removed, added or changed."""

from __future__ import annotations

from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import rdFMCS

from molgraph.chem.reaction import sides_of
from molgraph.chem.smiles import parse_smiles, quiet

SECONDS = 10  # for the common part of two molecules, which takes milliseconds where they are alike
MATCHES = 200  # of that part in the product, among which the one with the fewest changes is chosen
ORDERS = ("removed", "single", "double", "triple", "aromatic")  # what a changed bond becomes


class Edit(NamedTuple):
    """A molecule and its edit, of which nothing but elements and bonds is known.

    Args:
        mol: the molecule before.
        elements: atomic number of each of its atoms after the edit, then of the added atoms; -1 of removed ones.
        orders: for each atom, added ones too, the change of the sum of the orders of its bonds.
        bonds: for each changed bond its two atoms, the lower first, and the place in ``ORDERS`` of what it becomes.
    """

    mol: Chem.Mol
    elements: list[int]
    orders: list[int]
    bonds: dict[tuple[int, int], int]


def read_edit(text: str) -> Edit | str:
    """The edit that ``MOLECULE>>PRODUCT`` stands for, or the reason why there is none; nothing is raised.

    Atoms with the same map number on both sides are the same atom, of any element; without map numbers atoms of the
    largest common subgraph are. Of the product elements and bonds are read, and neither hydrogens nor
    valences are checked. Where one side writes an aromatic bond and the other a single or double one, it is unchanged.

    Example:
        >>> edit = read_edit("Cc1ccccc1>>Fc1ccccc1")
        >>> edit.elements, edit.bonds
        ([9, 6, 6, 6, 6, 6, 6], {})
        >>> read_edit("[CH3:1][CH3:2]>>[CH3:2][OH:3]").bonds
        {(0, 1): 0, (1, 2): 1}
        >>> read_edit("CC")
        'no reaction: REACTANTS>>PRODUCTS or REACTANTS>AGENTS>PRODUCTS is expected'
    """
    try:
        before, after = sides_of(text)
    except ValueError as error:
        return str(error)
    parsed = parse_smiles(before)
    if parsed.mol is None:
        return f"reactants: {parsed.reason}"
    mol = parsed.mol
    with quiet():
        product = _product(after)
        if product is None:
            return f"products: RDKit reads no molecule in {after[:60]!r}"
        partner = _by_numbers(mol, product) if ":" in before and ":" in after else {}
        pairs = [partner] if partner else _by_structure(mol, product)
        if not pairs:
            return "the molecule and the product are too unlike to be one edit apart: map their atoms"
        return min((_difference(mol, product, pair) for pair in pairs), key=_size)


def _product(text: str) -> Chem.Mol | None:
    """A graph of elements and bonds; it is sanitised only where aromatic bonds are written."""
    product = Chem.MolFromSmiles(text, sanitize=False)
    if product is None or not product.GetNumAtoms():
        return None
    if any(bond.GetIsAromatic() for bond in product.GetBonds()):
        product = Chem.MolFromSmiles(text)
    return product


def _by_numbers(mol: Chem.Mol, product: Chem.Mol) -> dict[int, int]:
    """The product's atom of each atom that has the same map number there."""
    places = {atom.GetAtomMapNum(): atom.GetIdx() for atom in product.GetAtoms() if atom.GetAtomMapNum()}
    return {a.GetIdx(): places[a.GetAtomMapNum()] for a in mol.GetAtoms() if a.GetAtomMapNum() in places}


def _by_structure(mol: Chem.Mol, product: Chem.Mol) -> list[dict[int, int]]:
    """Ways to lay the largest common subgraph, whose elements and orders may differ, over both."""
    how = {"atomCompare": rdFMCS.AtomCompare.CompareAny, "bondCompare": rdFMCS.BondCompare.CompareAny}
    mcs = rdFMCS.FindMCS([mol, product], timeout=SECONDS, **how)
    if mcs.canceled or not mcs.numAtoms:
        return []
    first = mol.GetSubstructMatch(mcs.queryMol)
    others = product.GetSubstructMatches(mcs.queryMol, uniquify=False, maxMatches=MATCHES)
    return [dict(zip(first, other, strict=True)) for other in others] if first else []


def _difference(mol: Chem.Mol, product: Chem.Mol, partner: dict[int, int]) -> Edit:
    n = mol.GetNumAtoms()
    place = {j: i for i, j in partner.items()}
    for atom in product.GetAtoms():
        place.setdefault(atom.GetIdx(), n + atom.GetIdx() - sum(j < atom.GetIdx() for j in partner.values()))
    elements = [-1] * (n + product.GetNumAtoms() - len(partner))
    for atom in product.GetAtoms():
        elements[place[atom.GetIdx()]] = atom.GetAtomicNum()
    sums = [0.0] * len(elements)
    for sign, side, numbers in ((-1, mol, {i: i for i in range(n)}), (1, product, place)):
        for i, total in enumerate(_sums(side)):
            sums[numbers[i]] += sign * total
    before = {_ends(bond, None): bond.GetBondTypeAsDouble() for bond in mol.GetBonds()}
    after = {_ends(bond, place): bond.GetBondTypeAsDouble() for bond in product.GetBonds()}
    changed = dict.fromkeys(before.keys() - after.keys(), 0)
    for ends, order in after.items():
        old = before.get(ends)
        if old is None or (old != order and not (1.5 in (old, order) and max(old, order) <= 2)):
            changed[ends] = {1.0: 1, 2.0: 2, 3.0: 3}.get(order, 4)
    return Edit(mol, elements, [round(value) for value in sums], dict(sorted(changed.items())))


def _sums(mol: Chem.Mol) -> list[float]:
    """The sum of the orders of each atom's bonds; of aromatic ones in a Kekule form."""
    if any(bond.GetIsAromatic() for bond in mol.GetBonds()):
        mol = Chem.RWMol(mol)
        Chem.Kekulize(mol, clearAromaticFlags=True)
    return [sum(bond.GetBondTypeAsDouble() for bond in atom.GetBonds()) for atom in mol.GetAtoms()]


def _ends(bond: Chem.Bond, place: dict[int, int] | None) -> tuple[int, int]:
    ends = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    one, other = ends if place is None else (place[ends[0]], place[ends[1]])
    return min(one, other), max(one, other)


def _size(edit: Edit) -> int:
    """Changed atoms and bonds."""
    same = sum(atom.GetAtomicNum() == edit.elements[atom.GetIdx()] for atom in edit.mol.GetAtoms())
    return len(edit.elements) - same + len(edit.bonds) + sum(map(bool, edit.orders))
