"""Read the stereochemistry of a molecule as labels of its atoms and bonds, and write labels back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.fragments.atom_ranks import canonical_order
from molgraph.chem.smiles import parse_smiles

NONE, FIRST, SECOND = 0, 1, 2
CLOCKWISE, COUNTER = Chem.ChiralType.CHI_TETRAHEDRAL_CW, Chem.ChiralType.CHI_TETRAHEDRAL_CCW
CIS = (Chem.BondStereo.STEREOCIS, Chem.BondStereo.STEREOZ)
TRANS = (Chem.BondStereo.STEREOTRANS, Chem.BondStereo.STEREOE)


class Site(NamedTuple):
    """A place where a constitution leaves two ways open.

    Args:
        begin, end: the atoms of a double bond; the same atom twice for a tetrahedral centre.
        label: which way; ``NONE`` where it is not told. It is counted by the canonical order of the constitution's
            atoms, so it means the same however the molecule is written.
    """

    begin: int
    end: int
    label: int


class Constitution(NamedTuple):
    """A molecule without stereochemistry, and the sites where it had some, by the atoms of its SMILES."""

    smiles: str
    sites: tuple[Site, ...]


def stereo_sites(mol: Chem.Mol) -> list[Site]:
    """The sites of a molecule, its atoms numbered as they are.

    Example:
        >>> stereo_sites(Chem.MolFromSmiles("C[C@H](N)O")) != stereo_sites(Chem.MolFromSmiles("C[C@@H](N)O"))
        True
    """
    bare = Chem.Mol(mol)
    Chem.RemoveStereochemistry(bare)
    rank = _ranks(bare)
    out = []
    for info in Chem.FindPotentialStereo(bare, cleanIt=False, flagPossible=True):
        if info.type == Chem.StereoType.Atom_Tetrahedral:
            out.append(Site(info.centeredOn, info.centeredOn, _parity(mol.GetAtomWithIdx(info.centeredOn), rank)))
        elif info.type == Chem.StereoType.Bond_Double:
            bond = mol.GetBondWithIdx(info.centeredOn)
            ends = sorted((bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()), key=rank.__getitem__)
            if all(mol.GetAtomWithIdx(atom).GetDegree() > 1 for atom in ends):  # the way of an imine's H is not kept
                out.append(Site(ends[0], ends[1], _side(bond, rank)))
    return out


def constitution_of(text: str) -> Constitution:
    """The constitution of a SMILES that can be read.

    Example:
        >>> constitution_of("C[C@H](N)O").smiles
        'CC(N)O'
    """
    mol = parse_smiles(text).mol
    if mol is None:
        raise ValueError(f"no molecule: {text!r}")
    sites = stereo_sites(mol)
    bare = Chem.Mol(mol)
    Chem.RemoveStereochemistry(bare)
    for atom in bare.GetAtoms():
        atom.SetAtomMapNum(0)
    written = Chem.MolToSmiles(bare)
    place = {atom: k for k, atom in enumerate(bare.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])}
    return Constitution(written, tuple(Site(place[i], place[j], label) for i, j, label in sites))


def write_stereo(smiles: str, sites: Sequence[Site]) -> str:
    """The canonical SMILES of a constitution with the labels of sites."""
    mol = parse_smiles(smiles).mol
    if mol is None:
        raise ValueError(f"no molecule: {smiles!r}")
    return str(Chem.MolToSmiles(with_stereo(mol, sites)))


def with_stereo(mol: Chem.Mol, sites: Sequence[Site]) -> Chem.Mol:
    """A constitution with the labels of sites put on it; RDKit leaves out those that make no difference."""
    copy = Chem.RWMol(mol)
    rank = _ranks(mol)
    for begin, end, label in sites:
        if label == NONE:
            continue
        if begin == end:
            atom = copy.GetAtomWithIdx(begin)
            atom.SetChiralTag(CLOCKWISE)
            if _parity(atom, rank) != label:
                atom.SetChiralTag(COUNTER)
        elif (bond := copy.GetBondBetweenAtoms(begin, end)) is not None:
            bond.SetStereoAtoms(_first(copy, bond.GetBeginAtomIdx(), bond.GetEndAtomIdx(), rank),
                                _first(copy, bond.GetEndAtomIdx(), bond.GetBeginAtomIdx(), rank))  # fmt: skip
            bond.SetStereo(CIS[0] if label == FIRST else TRANS[0])
    Chem.SetDoubleBondNeighborDirections(copy)
    Chem.AssignStereochemistry(copy, cleanIt=True, force=True)
    return copy.GetMol()


def _ranks(mol: Chem.Mol) -> list[int]:
    rank = [0] * mol.GetNumAtoms()
    for k, atom in enumerate(canonical_order(mol)):
        rank[atom] = k
    return rank


def _parity(atom: Chem.Atom, rank: list[int]) -> int:
    """A centre's tag as it would be if its neighbours came in canonical order."""
    tag = atom.GetChiralTag()
    if tag not in (CLOCKWISE, COUNTER):
        return NONE
    near = [rank[bond.GetOtherAtomIdx(atom.GetIdx())] for bond in atom.GetBonds()]
    odd = sum(near[i] > near[j] for i in range(len(near)) for j in range(i + 1, len(near))) % 2
    return FIRST if (tag == CLOCKWISE) != bool(odd) else SECOND


def _side(bond: Chem.Bond, rank: list[int]) -> int:
    """Whether the first neighbours, in canonical order, of a double bond's two ends are on the same side of it."""
    stereo, mol = bond.GetStereo(), bond.GetOwningMol()
    if stereo not in (*CIS, *TRANS) or len(held := [*bond.GetStereoAtoms()]) != 2:
        return NONE
    begin, end = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
    other = [_first(mol, begin, end, rank) != held[0], _first(mol, end, begin, rank) != held[1]]
    return FIRST if (stereo in CIS) == (sum(other) != 1) else SECOND


def _first(mol: Chem.Mol, atom: int, away_from: int, rank: list[int]) -> int:
    """The first neighbour of an atom in canonical order, one atom left out."""
    near = (neighbour.GetIdx() for neighbour in mol.GetAtomWithIdx(atom).GetNeighbors())
    return min((k for k in near if k != away_from), key=rank.__getitem__)
