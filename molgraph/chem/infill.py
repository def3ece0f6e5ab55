"""Replace fragments of a molecule by draws from those that stand in the same surroundings in a library of molecules."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.smiles import parse_smiles, quiet

FEW = 5  # different fragments in a surrounding; where the library has fewer, surroundings are left out of account
# ring to anything, and carbon to a hetero atom that is no end: acids, nitro groups and alcohols stay whole
_CUT = Chem.MolFromSmarts("[$([*;R]-!@[*;!#1]),$([#6]-!@[#7,#8,#16;!D1])]-!@[!#1]")


class Pieces(NamedTuple):
    """A molecule cut at acyclic single bonds.

    Args:
        fragments: each with a dummy atom at a cut, whose atom map number is that of the bond, from 1.
        atoms: the numbers of each fragment's atoms in the molecule.
        ends: of each bond the two fragments that it joins.
    """

    fragments: tuple[Chem.Mol, ...]
    atoms: tuple[tuple[int, ...], ...]
    ends: tuple[tuple[int, int], ...]


def cut(mol: Chem.Mol) -> Pieces:
    """Cut a molecule between rings and what hangs on them, and between carbon and linking hetero atoms.

    Example:
        >>> [len(atoms) for atoms in cut(Chem.MolFromSmiles("CC(=O)Nc1ccc(C(=O)O)cc1")).atoms]
        [3, 1, 6, 3]
    """
    mol, n = Chem.Mol(mol), mol.GetNumAtoms()
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
    pairs = mol.GetSubstructMatches(_CUT, maxMatches=10_000)
    bonds = sorted({mol.GetBondBetweenAtoms(*pair).GetIdx() for pair in pairs if _cuts(mol, *pair)})
    if not bonds:
        return Pieces((mol,), (tuple(range(n)),), ())
    labels = [(i, i) for i in range(1, len(bonds) + 1)]
    places: list[tuple[int, ...]] = []
    whole = Chem.FragmentOnBonds(mol, bonds, dummyLabels=labels)
    fragments = Chem.GetMolFrags(whole, asMols=True, sanitizeFrags=True, fragsMolAtomMapping=places)
    ends: dict[int, list[int]] = defaultdict(list)
    for number, (fragment, members) in enumerate(zip(fragments, places, strict=True)):
        for atom, place in zip(fragment.GetAtoms(), members, strict=True):
            if place >= n:
                ends[atom.GetIsotope()].append(number)
                atom.SetAtomMapNum(atom.GetIsotope()), atom.SetIsotope(0)
    atoms = tuple(tuple(place for place in members if place < n) for members in places)
    return Pieces(tuple(fragments), atoms, tuple((ends[i][0], ends[i][-1]) for i, _ in labels))


def _cuts(mol: Chem.Mol, a: int, b: int) -> bool:
    one, two = mol.GetAtomWithIdx(a), mol.GetAtomWithIdx(b)
    linker = {one.GetAtomicNum(), two.GetAtomicNum()} & {7, 8, 16} and 6 in (one.GetAtomicNum(), two.GetAtomicNum())
    hetero = one if one.GetAtomicNum() in (7, 8, 16) else two
    return one.IsInRing() or two.IsInRing() or bool(linker and hetero.GetDegree() > 1)


def _surrounding(atom: Chem.Atom) -> int:
    """What a fragment is joined to: the element, and whether it is aromatic, in a ring, or has a multiple bond."""
    multiple = any(bond.GetBondTypeAsDouble() > 1 for bond in atom.GetBonds())
    return 1 + atom.GetAtomicNum() * 8 + atom.GetIsAromatic() * 4 + atom.IsInRing() * 2 + multiple


def _dummies(fragment: Chem.Mol) -> dict[int, Chem.Atom]:
    """The dummy atom of each bond."""
    return {atom.GetAtomMapNum(): atom for atom in fragment.GetAtoms() if atom.GetAtomMapNum()}


class FragmentLibrary:
    """``p(fragment | surroundings)`` by counts in molecules, for each multiset of atoms that a fragment is joined to.

    Args:
        smiles: molecules; those that cannot be read are passed over.
    """

    def __init__(self, smiles: Iterable[str]) -> None:
        counts: dict[tuple[int, ...], Counter[str]] = defaultdict(Counter)
        for text in smiles:
            mol, _ = parse_smiles(str(text))
            if mol is not None and mol.GetNumAtoms() <= 60:
                for around, fragment in _described(cut(mol)):
                    counts[around][fragment] += 1
        by_number: dict[int, Counter[str]] = defaultdict(Counter)
        for around, counter in counts.items():
            by_number[len(around)].update(counter)
        self.by_surroundings = {key: _shares(counter) for key, counter in counts.items() if len(counter) >= FEW}
        self.by_number = {key: _shares(counter) for key, counter in by_number.items()}

    def draw(self, around: Sequence[int], rng: np.random.Generator) -> Chem.Mol | None:
        """A fragment for these surroundings, its dummies' isotopes saying which; None where none has as many."""
        entry = self.by_surroundings.get(tuple(sorted(around))) or self.by_number.get(len(around))
        if entry is None:
            return None
        texts, upto = entry
        return _read(texts[int(np.searchsorted(upto, rng.random() * upto[-1], side="right"))])


def _shares(counts: Counter[str]) -> tuple[list[str], np.ndarray]:
    items = sorted(counts.items())
    return [text for text, _ in items], np.cumsum([n for _, n in items])


@lru_cache(maxsize=20_000)
def _read(text: str) -> Chem.Mol:
    return Chem.MolFromSmiles(text)


def _described(pieces: Pieces) -> Iterable[tuple[tuple[int, ...], str]]:
    """Each fragment's surroundings, and its SMILES with them as the isotopes of its dummies."""
    of = [_dummies(fragment) for fragment in pieces.fragments]
    for number, fragment in enumerate(pieces.fragments):
        copy, around = Chem.Mol(fragment), []
        for bond, dummy in of[number].items():
            atom = copy.GetAtomWithIdx(dummy.GetIdx())
            atom.SetIsotope(_outer(pieces, of, bond, number)), atom.SetAtomMapNum(0)
            around.append(atom.GetIsotope())
        yield tuple(sorted(around)), Chem.MolToSmiles(copy)


def _outer(pieces: Pieces, of: Sequence[dict[int, Chem.Atom]], bond: int, number: int) -> int:
    a, b = pieces.ends[bond - 1]
    return _surrounding(of[b if a == number else a][bond].GetNeighbors()[0])


def infill(pieces: Pieces, dropped: Sequence[bool], library: FragmentLibrary, rng: np.random.Generator) -> str | None:
    """The SMILES of the molecule with each dropped fragment drawn anew given its neighbours, in random order.

    One sweep of Gibbs sampling from the molecule itself. A fragment with more bonds than any of the library stays.

    Returns:
        None where the parts make no molecule.

    Example:
        >>> acid = cut(Chem.MolFromSmiles("OC(=O)c1ccccc1"))
        >>> some = FragmentLibrary(f"{x}c1ccccc1" for x in ("F", "Cl", "Br", "C", "N", "OC(=O)"))
        >>> sorted({infill(acid, [True, False], some, np.random.default_rng(i)) for i in range(30)})[:3]
        ['Brc1ccccc1', 'Cc1ccccc1', 'Clc1ccccc1']
    """
    now, of = [*pieces.fragments], [_dummies(fragment) for fragment in pieces.fragments]
    for number in rng.permutation(np.flatnonzero(dropped)):
        around = {bond: _outer(pieces, of, bond, int(number)) for bond in of[number]}
        drawn = library.draw([*around.values()], rng)
        if drawn is None:
            continue
        piece = Chem.Mol(drawn)
        open_ = [atom for atom in piece.GetAtoms() if atom.GetAtomicNum() == 0 and atom.GetIsotope()]
        open_ = [open_[i] for i in rng.permutation(len(open_))]
        for bond, kind in around.items():
            atom = next((dummy for dummy in open_ if dummy.GetIsotope() == kind), open_[0])
            open_ = [dummy for dummy in open_ if dummy.GetIdx() != atom.GetIdx()]
            atom.SetIsotope(0), atom.SetAtomMapNum(bond)
        now[number], of[number] = piece, _dummies(piece)
    return _joined(now)


def _joined(fragments: Sequence[Chem.Mol]) -> str | None:
    whole = fragments[0]
    for fragment in fragments[1:]:
        whole = Chem.CombineMols(whole, fragment)
    with quiet():
        try:
            mol = Chem.molzip(whole) if len(fragments) > 1 else Chem.Mol(whole)
            Chem.SanitizeMol(mol)
            text: str = Chem.MolToSmiles(mol)
        except (ValueError, RuntimeError):  # a valence that RDKit refuses
            return None
    return text


def carbon(mol: Chem.Mol, atoms: Iterable[int]) -> str | None:
    """The SMILES of a molecule with these atoms as carbon, their bonds single but aromatic ones; None if impossible.

    Example:
        >>> carbon(Chem.MolFromSmiles("OC(=O)c1ccncc1"), [0, 1, 2])
        'CC(C)c1ccncc1'
    """
    copy, chosen = Chem.RWMol(mol), {*atoms}
    for i in chosen:
        atom = copy.GetAtomWithIdx(i)
        atom.SetAtomicNum(6), atom.SetFormalCharge(0), atom.SetNumExplicitHs(0), atom.SetNumRadicalElectrons(0)
        atom.SetNoImplicit(False), atom.SetIsotope(0), atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    for bond in copy.GetBonds():
        if not bond.GetIsAromatic() and chosen & {bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()}:
            bond.SetBondType(Chem.BondType.SINGLE), bond.SetStereo(Chem.BondStereo.STEREONONE)
    with quiet():
        try:
            Chem.SanitizeMol(copy)
            text: str = Chem.MolToSmiles(copy)
        except (ValueError, RuntimeError):
            return None
    return text


def canonical(mol: Chem.Mol) -> tuple[str, list[int]]:
    """The canonical SMILES of a molecule, and the number in the molecule of each of its atoms.

    Example:
        >>> canonical(Chem.MolFromSmiles("OCC"))
        ('CCO', [2, 1, 0])
    """
    text = Chem.MolToSmiles(mol)
    return text, [*mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"]]


def name_of(mol: Chem.Mol, atoms: Sequence[int]) -> str:
    """The SMILES of some atoms of a molecule."""
    return str(Chem.MolFragmentToSmiles(mol, [*atoms]))
