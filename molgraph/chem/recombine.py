"""Swap scaffolds, substituents and elements between molecules, resize chains, and permute elements on a skeleton."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.bounded import is_hard
from molgraph.chem.smiles import parse_smiles, quiet

CHAIN = Chem.MolFromSmarts("[CH3;X4][#6]")  # its first atom can be taken off, or be lengthened
OPEN = Chem.MolFromSmarts("[#6;!H0]")  # where a chain can begin
MOST = 64  # atoms of a chain that is added
VALENCE = {6: 4, 7: 3, 8: 2, 16: 2, 9: 1, 17: 1, 35: 1, 53: 1}  # bonds of the neutral atoms that change places


class Apart(NamedTuple):
    """A molecule's core, its rings and what links them, and the groups on it.

    Args:
        core: SMILES with the open places ``[1*]``, ``[2*]``, ... in the order of ``groups``.
        groups: SMILES with the open place ``[*]`` each.
    """

    core: str
    groups: tuple[str, ...]


@lru_cache(maxsize=1 << 14)
def take_apart(text: str) -> Apart | None:
    """The core of a molecule and its groups, cut at single bonds (after Bemis and Murcko 1996, J. Med. Chem. 39:2887).

    What hangs on a core by a double bond belongs to it. None for an acyclic molecule, several fragments, and a text
    that RDKit cannot read or may need long for.

    Example:
        >>> take_apart("CCc1ccc(O)cc1")
        Apart(core='[1*]c1ccc([2*])cc1', groups=('*CC', '*O'))
        >>> take_apart("CCO") is None
        True
    """
    mol = parse_smiles(text).mol if text and "." not in text and not is_hard(text) else None
    if mol is None or not mol.GetRingInfo().NumRings():
        return None
    near = {atom.GetIdx(): {n.GetIdx() for n in atom.GetNeighbors()} for atom in mol.GetAtoms()}
    core = set(near)
    while ends := {i for i in core if len(near[i] & core) < 2}:
        core -= ends
    single = Chem.BondType.SINGLE
    while hanging := {b.GetOtherAtomIdx(i) for b in mol.GetBonds() if b.GetBondType() != single
                      for i in (b.GetBeginAtomIdx(), b.GetEndAtomIdx()) if i in core} - core:  # fmt: skip
        core |= hanging
    cut = [b.GetIdx() for b in mol.GetBonds() if (b.GetBeginAtomIdx() in core) != (b.GetEndAtomIdx() in core)]
    if not cut:
        return Apart(Chem.MolToSmiles(mol), ())
    with quiet():
        labels = [(k, k) for k in range(1, len(cut) + 1)]
        parts = Chem.GetMolFrags(Chem.FragmentOnBonds(mol, cut, dummyLabels=labels), asMols=True)
    groups: dict[int, str] = {}
    for part in parts:
        places = {atom.GetIsotope(): atom for atom in part.GetAtoms() if atom.GetAtomicNum() == 0}
        if part.GetRingInfo().NumRings():  # the core is in one piece
            whole = Chem.MolToSmiles(part)
            continue
        ((label, end),) = places.items()
        end.SetIsotope(0)
        groups[label] = Chem.MolToSmiles(part)
    return Apart(whole, tuple(groups[k] for k in sorted(groups)))


def put_together(core: str, groups: tuple[str, ...]) -> str:
    """The molecule of a core with as many groups as it has open places; empty where it is none.

    Example:
        >>> put_together("[1*]c1ccc([2*])cc1", ("*CC", "*O")), put_together(*take_apart("CCc1ccccc1"))
        ('CCc1ccc(O)cc1', 'CCc1ccccc1')
    """
    labelled = [f"[{k}*]".join(group.split("*", 1)) if group.startswith("*") else group.replace("*", f"[{k}*]", 1)
                for k, group in enumerate(groups, 1)]  # fmt: skip
    with quiet():
        parts = [Chem.MolFromSmiles(text) for text in (core, *labelled)]
        if any(part is None for part in parts):
            return ""
        how = Chem.MolzipParams()
        how.label = Chem.MolzipLabel.Isotope
        try:
            whole = parts[0]
            for part in parts[1:]:
                whole = Chem.CombineMols(whole, part)
            return Chem.MolToSmiles(Chem.MolFromSmiles(Chem.MolToSmiles(Chem.molzip(whole, how))))
        except (ValueError, RuntimeError, TypeError):
            return ""


def resize(text: str, n: int, rng: np.random.Generator) -> str:
    """The molecule with n heavy atoms: an alkyl chain of it is lengthened or shortened; empty where that cannot be.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> resize("CCc1ccccc1", 10, rng), resize("CCc1ccccc1", 7, rng), resize("CCc1ccccc1", 5, rng)
        ('CCCCc1ccccc1', 'Cc1ccccc1', '')
    """
    mol = parse_smiles(text).mol if text and not is_hard(text) else None
    if mol is None or n - mol.GetNumAtoms() > MOST:
        return ""
    copy = Chem.RWMol(mol)
    off = _chain_atoms(copy, mol.GetNumAtoms() - n, rng)
    if len(off) < mol.GetNumAtoms() - n:
        return ""
    copy.BeginBatchEdit()
    for i in off:
        for neighbour in copy.GetAtomWithIdx(i).GetNeighbors():
            _open(neighbour)
        copy.RemoveAtom(i)
    copy.CommitBatchEdit()
    if copy.GetNumAtoms() < n:
        ends = [i for i, _ in mol.GetSubstructMatches(CHAIN)] or [i for (i,) in mol.GetSubstructMatches(OPEN)]
        if not ends:
            return ""
        end = int(rng.choice(ends))
        _open(copy.GetAtomWithIdx(end))
        while copy.GetNumAtoms() < n:
            new = copy.AddAtom(Chem.Atom(6))
            copy.AddBond(end, new, Chem.BondType.SINGLE)
            end = new
    with quiet():
        try:
            again = Chem.MolFromSmiles(Chem.MolToSmiles(copy))
        except (ValueError, RuntimeError):
            return ""
    return "" if again is None or again.GetNumAtoms() != n else Chem.MolToSmiles(again)


def smallest(text: str) -> int:
    """Heavy atoms that are left when all alkyl chains are taken off, as ``resize`` does; 0 for what it cannot read.

    Example:
        >>> [smallest(text) for text in ("CCCc1ccccc1", "CC(C)O", "C(")]
        [6, 2, 0]
    """
    mol = parse_smiles(text).mol if text and not is_hard(text) else None
    return 0 if mol is None else mol.GetNumAtoms() - len(_chain_atoms(mol, mol.GetNumAtoms(), None))


def _chain_atoms(mol: Chem.Mol, n: int, rng: np.random.Generator | None) -> list[int]:
    """At most n atoms of alkyl chains, which can be taken off from the end of a chain inwards, one after another."""
    near = {atom.GetIdx(): {m.GetIdx() for m in atom.GetNeighbors()} for atom in mol.GetAtoms()}
    plain = {a.GetIdx() for a in mol.GetAtoms() if a.GetAtomicNum() == 6 and not a.GetFormalCharge()
             and not a.GetNumRadicalElectrons() and a.GetHybridization() == Chem.HybridizationType.SP3}  # fmt: skip
    carbons = {atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() == 6}
    off = list[int]()
    while len(off) < n:
        ends = sorted(i for i in plain if len(near[i]) == 1 and near[i] <= carbons)
        if not ends:
            break
        end = ends[-1 if rng is None else int(rng.integers(len(ends)))]
        (inner,) = near.pop(end)
        near[inner].discard(end)
        plain.discard(end)
        off.append(end)
    return off


def _open(atom: Chem.Atom) -> None:
    """Let RDKit count the hydrogens of an atom whose bonds change, which is no stereocentre any more."""
    atom.SetChiralTag(Chem.ChiralType.CHI_UNSPECIFIED)
    if not atom.GetIsAromatic():
        atom.SetNoImplicit(False)
    atom.SetNumExplicitHs(0)


def shuffle_elements(text: str, rng: np.random.Generator, *, rounds: int = 4) -> str:
    """The molecule with the elements of its neutral atoms in other places of the same skeleton of bonds.

    Two atoms change their elements where both have bonds few enough, ``rounds`` times the number of atoms. Aromatic
    rings are Kekule rings meanwhile, and stereo is lost. Empty where RDKit takes the product for no molecule.

    Example:
        >>> shuffle_elements("CCCO", np.random.default_rng(1)) in ("CCCO", "CCOC")
        True
    """
    mol = parse_smiles(text).mol if text and not is_hard(text) else None
    if mol is None:
        return ""
    copy, bonds, free = _recoloured(mol)
    if len(free) < 2:
        return ""
    element = {i: copy.GetAtomWithIdx(i).GetAtomicNum() for i in free}
    for _ in range(rounds * len(free)):
        a, b = (free[k] for k in rng.choice(len(free), 2, replace=False))
        if bonds[a] <= VALENCE[element[b]] and bonds[b] <= VALENCE[element[a]]:
            element[a], element[b] = element[b], element[a]
    return _with(copy, element)


def exchange_elements(text: str, donor: str, rng: np.random.Generator) -> str:
    """The skeleton of bonds of one molecule with the elements of another, in the other's shares, at random places.

    Neutral atoms of the skeleton become carbon; then as many of them as the donor's shares say get its elements, those
    of most bonds first, each at a place whose bonds are few enough. Aromatic rings are Kekule rings meanwhile, and
    stereo is lost. Empty where no place is left for an element, or RDKit takes the product for no molecule.

    Example:
        >>> exchange_elements("CCCCC", "CCCCO", np.random.default_rng(0)) in ("CCCCO", "CCCOC", "CCOCC")
        True
        >>> exchange_elements("c1ccncc1", "CCCCC", np.random.default_rng(0))
        'c1ccccc1'
    """
    mol, other = (parse_smiles(each).mol if each and not is_hard(each) else None for each in (text, donor))
    if mol is None or other is None:
        return ""
    made, bonds, free = _recoloured(mol)
    elements = [
        a.GetAtomicNum() for a in other.GetAtoms() if VALENCE.get(a.GetAtomicNum(), 0) and not a.GetFormalCharge()
    ]
    if len(free) < 2 or not elements:
        return ""
    element = dict.fromkeys(free, 6)
    wanted = [e for e in sorted(VALENCE, key=lambda e: -VALENCE[e]) if e != 6
              for _ in range(round(elements.count(e) / len(elements) * len(free)))]  # fmt: skip
    for number in wanted:
        places = [i for i in free if element[i] == 6 and bonds[i] <= VALENCE[number]]
        if not places:
            return ""
        element[int(rng.choice(places))] = number
    return _with(made, element)


def _recoloured(mol: Chem.Mol) -> tuple[Chem.RWMol, dict[int, int], list[int]]:
    """A Kekule copy without stereo, the bonds of each atom, and the neutral atoms whose element can be another."""
    made = Chem.RWMol(mol)
    Chem.RemoveStereochemistry(made)
    Chem.Kekulize(made, clearAromaticFlags=True)
    orders = {Chem.BondType.SINGLE: 1, Chem.BondType.DOUBLE: 2, Chem.BondType.TRIPLE: 3}
    bonds = {a.GetIdx(): sum(orders.get(b.GetBondType(), 9) for b in a.GetBonds()) for a in made.GetAtoms()}
    free = [a.GetIdx() for a in made.GetAtoms() if not a.GetFormalCharge() and not a.GetNumRadicalElectrons()
            and not a.GetIsotope() and bonds[a.GetIdx()] <= VALENCE.get(a.GetAtomicNum(), 0)]  # fmt: skip
    return made, bonds, free


def _with(made: Chem.RWMol, element: Mapping[int, int]) -> str:
    """Its SMILES with other elements; empty where RDKit takes it for no molecule."""
    for i, number in element.items():
        atom = made.GetAtomWithIdx(i)
        atom.SetAtomicNum(number)
        atom.SetNoImplicit(False)
        atom.SetNumExplicitHs(0)
    with quiet():
        try:
            Chem.SanitizeMol(made)
            return Chem.MolToSmiles(Chem.MolFromSmiles(Chem.MolToSmiles(made)))
        except (ValueError, RuntimeError, TypeError):
            return ""
