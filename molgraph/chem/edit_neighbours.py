"""Enumerate all molecules that are one edit away from another: one atom, bond or ring added, removed or changed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rdkit import Chem

from molgraph.chem.graph_edits import MAX_RING, ORDERS, SINGLE, editable, finished
from molgraph.chem.smiles import quiet

NUMBER = {order: n for n, order in ORDERS.items()}


def edit_neighbours(smiles: str, elements: Sequence[int], *, max_atoms: int = 50) -> dict[str, Chem.Mol]:
    """The sensible molecules that are one edit away, by canonical SMILES, in the order of the edits.

    The kinds of edits of ``graph_edits.mutate``, each at every place of the Kekule graph: an atom appended, inserted
    into a single bond, taken out or changed, a bond's order changed, a ring opened or closed at a single bond. Each
    has its inverse among them.

    Args:
        smiles: of the molecule.
        elements: atomic numbers that may be added or changed to.
        max_atoms: heavy atoms that a neighbour may have.

    Returns:
        Canonical SMILES -> the sanitised molecule; without the molecule itself, empty where it cannot be read.

    Example:
        >>> sorted(edit_neighbours("CC", [6, 8]))
        ['C', 'C#C', 'C#CC', 'C=C', 'C=CC', 'CC=O', 'CCC', 'CCO', 'CO', 'COC']
    """
    found: dict[str, Chem.Mol] = {}
    with quiet():
        start = editable(smiles)
        if start is not None:
            for mol in _edits(start, elements):
                if (text := finished(mol, max_atoms)) and text != smiles:
                    found.setdefault(text, mol)
    return found


def _edits(start: Chem.RWMol, elements: Sequence[int]) -> Iterator[Chem.RWMol]:
    """Graphs after one edit, not yet checked."""
    free = [atom.GetTotalNumHs() for atom in start.GetAtoms()]
    for place, room in enumerate(free):
        for number in elements:
            for n, order in ORDERS.items():
                if n <= room:
                    mol = Chem.RWMol(start)
                    mol.AddBond(place, mol.AddAtom(Chem.Atom(number)), order)
                    yield mol
            if number != start.GetAtomWithIdx(place).GetAtomicNum() and not _charge(start, place):
                mol = Chem.RWMol(start)
                mol.GetAtomWithIdx(place).SetAtomicNum(number)
                yield mol
        yield from _without(start, place)
    for bond in start.GetBonds():
        if bond.GetBondType() in NUMBER:
            yield from _bond_edits(start, bond, elements)
    distance = Chem.GetDistanceMatrix(start)
    for a in range(len(free)):
        for b in range(a):
            if free[a] and free[b] and 2 <= distance[a, b] < MAX_RING:
                mol = Chem.RWMol(start)
                mol.AddBond(a, b, SINGLE)
                yield mol


def _charge(mol: Chem.RWMol, place: int) -> int:
    return int(mol.GetAtomWithIdx(place).GetFormalCharge())


def _without(start: Chem.RWMol, place: int) -> Iterator[Chem.RWMol]:
    """Without an atom at an end, or one between two single bonds whose neighbours are then joined."""
    bonds = start.GetAtomWithIdx(place).GetBonds()
    around = [bond.GetOtherAtomIdx(place) for bond in bonds]
    between = len(around) == 2 and all(bond.GetBondType() == SINGLE for bond in bonds)
    if len(around) == 1 or (between and start.GetBondBetweenAtoms(*around) is None):
        mol = Chem.RWMol(start)
        if len(around) == 2:
            mol.AddBond(*around, SINGLE)
        mol.RemoveAtom(place)
        yield mol


def _bond_edits(start: Chem.RWMol, bond: Chem.Bond, elements: Sequence[int]) -> Iterator[Chem.RWMol]:
    """Another order of a bond, an atom in it, and a ring opened at it."""
    ends, order = (bond.GetBeginAtom(), bond.GetEndAtom()), NUMBER[bond.GetBondType()]
    (a, b), room = (each.GetIdx() for each in ends), min(each.GetTotalNumHs() for each in ends)
    for n in ORDERS:
        if n != order and n - order <= room:
            mol = Chem.RWMol(start)
            mol.GetBondBetweenAtoms(a, b).SetStereo(Chem.BondStereo.STEREONONE)
            mol.GetBondBetweenAtoms(a, b).SetBondType(ORDERS[n])
            yield mol
    if order == 1:
        for number in elements:
            mol = Chem.RWMol(start)
            mol.RemoveBond(a, b)
            new = mol.AddAtom(Chem.Atom(number))
            mol.AddBond(a, new, SINGLE)
            mol.AddBond(new, b, SINGLE)
            yield mol
    if order == 1 and bond.IsInRing():
        mol = Chem.RWMol(start)
        mol.RemoveBond(a, b)
        yield mol
