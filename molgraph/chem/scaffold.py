"""Write the stereo-free parents and the Murcko scaffolds of SMILES, by which splits group molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdqueries
from rdkit.Chem.MolStandardize import rdMolStandardize
from rdkit.Chem.Scaffolds import MurckoScaffold

from molgraph.chem.bounded import ALONE
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles, precheck, quiet

#: alkali and alkaline earth: never part of a drug
LIGHT_METALS = frozenset({3, 11, 19, 37, 55, 12, 20, 38, 56})
#: atoms that a stereo-free parent changes or drops: charges but those of nitro groups, isotopes, hydrogens, metals
_CHANGED = Chem.MolFromSmarts(
    "[!+0&!$([N+](=O)[O-])&!$([O-][N+]=O),!0*,#1," + ",".join(f"#{n}" for n in sorted(LIGHT_METALS)) + "]"
)
_MAPPED = rdqueries.HasPropQueryAtom("molAtomMapNumber")
#: an end that a scaffold may not have: of a single bond, or of a group that hangs on by its end alone; a molecule
#: without one is its own scaffold, which spares RDKit the taking apart
_SIDE = Chem.MolFromSmarts("[D0,$([D1]-,:,#*),$([D1]=[!R;D1,D2]),$([!R;D3](=[D1])=[D1]),$([!R;D4](=[D1])(=[D1])=[D1])]")


@dataclass(frozen=True)
class Keys:
    """One text for each molecule asked about.

    Args:
        values: object array [n]; ``""`` where there is none: an acyclic molecule's scaffold, or an unreadable row.
        reasons: object array [n]; RDKit's words where the molecule could not be read, else ``""``.
    """

    values: np.ndarray
    reasons: np.ndarray


def stereo_free_parent(mol: Chem.Mol) -> str:
    """Canonical SMILES of the largest fragment, neutral, without stereo, isotopes, atom maps or explicit hydrogens.

    Two molecules with the same stereo-free parent are duplicates, salt forms, isotopologues or stereoisomers of each
    other. Salts drawn with a covalent bond to a light metal are taken apart first. The largest fragment is the one of
    most heavy atoms, then the heaviest, then the first by its text, so that the order of fragments does not matter.
    Charges are removed by protons alone; a betaine and its hydrochloride get the same (protonated) parent.

    Args:
        mol: a sanitised molecule; it is not changed.

    Returns:
        Canonical SMILES; ``""`` for a molecule of no atoms.

    Example:
        >>> stereo_free_parent(Chem.MolFromSmiles("C[C@H](N)C(=O)[O-].[Na+]"))
        'CC(N)C(=O)O'
    """
    return _parent(mol, isotopes=False, stereo=False)


def murcko(mol: Chem.Mol, generic: bool = False) -> str:
    """Canonical SMILES of the Murcko scaffold, without stereo; ``""`` for an acyclic molecule.

    Bemis and Murcko 1996, J. Med. Chem. 39:2887. The scaffold is RDKit's: rings and linkers with the atoms that
    hang on them by a double bond. The generic one is the paper's graph framework: rings and linkers alone, every
    atom a carbon and every bond single.

    Args:
        mol: a sanitised molecule; it is not changed.
        generic: whether to forget elements, bond orders and hanging atoms.

    Example:
        >>> phenone = Chem.MolFromSmiles("Cc1ccccc1C(=O)c1ccncc1")
        >>> murcko(phenone)
        'O=C(c1ccccc1)c1ccncc1'
        >>> murcko(phenone, generic=True)
        'C1CCC(CC2CCCCC2)CC1'
    """
    if generic:
        return _framework(mol)
    if not mol.GetRingInfo().NumRings():
        return ""
    if mol.HasSubstructMatch(_SIDE):
        mol = Chem.MurckoDecompose(mol)
    return Chem.MolToSmiles(mol, isomericSmiles=False)


def stereo_free_parents(smiles: Sequence[str] | np.ndarray, *, workers: int | None = None) -> Keys:
    """``stereo_free_parent`` of each SMILES; unreadable ones get a reason.

    Example:
        >>> keys = stereo_free_parents(["OCC", "CCO.Cl", "C1CC"])
        >>> list(keys.values)
        ['CCO', 'CCO', '']
        >>> keys.reasons[2] != ""
        True
    """
    return _each(stereo_free_parent, smiles, "parents", workers)


def scaffolds(
    smiles: Sequence[str] | np.ndarray,
    *,
    generic: bool = False,
    unmap: bool = False,
    chiral: bool = False,
    workers: int | None = None,
) -> Keys:
    """``murcko`` of each SMILES; unreadable ones get a reason.

    Args:
        smiles: the molecules.
        generic: whether to forget elements, bond orders and hanging atoms.
        unmap: whether to take atom maps off first; RDKit writes them into the scaffold.
        chiral: whether to keep the stereo of the scaffold's own atoms and bonds.
        workers: processes; None is one for few molecules, all cores for many.

    Example:
        >>> list(scaffolds(["Cc1ccccc1", "CCO"]).values)
        ['c1ccccc1', '']
    """
    function = _generic if generic else _unmapped if unmap else _chiral if chiral else murcko
    return _each(function, smiles, "scaffolds", workers)


def relate(first: str, second: str) -> str:
    """How two molecules of one parent differ: ``duplicate``, ``salt form``, ``isotopologue`` or ``stereoisomer``.

    The first that holds: the same canonical SMILES; the same parent, stereo and isotopes; the same parent and stereo.

    Example:
        >>> relate("C[C@H](N)C(=O)O", "C[C@H](N)C(=O)[O-].[Na+]"), relate("C[C@H](O)F", "C[C@@H](O)F")
        ('salt form', 'stereoisomer')
    """
    with quiet():
        one, two = parse_smiles(first).mol, parse_smiles(second).mol
        if one is None or two is None:
            raise ValueError(f"cannot be read: {first if one is None else second!r}")
        if Chem.MolToSmiles(one) == Chem.MolToSmiles(two):
            return "duplicate"
        if _parent(one, isotopes=True, stereo=True) == _parent(two, isotopes=True, stereo=True):
            return "salt form"
        same = _parent(one, isotopes=False, stereo=True) == _parent(two, isotopes=False, stereo=True)
    return "isotopologue" if same else "stereoisomer"


def _each(
    function: Callable[[Chem.Mol], str], smiles: Sequence[str] | np.ndarray, label: str, workers: int | None
) -> Keys:
    made = map_molecules(partial(_key, function), smiles, _refused, seconds=ALONE, label=label, workers=workers)
    columns = np.array(made, dtype=object).reshape(-1, 2)
    return Keys(columns[:, 0], columns[:, 1])


def _refused(_: str, reason: str) -> tuple[str, str]:
    return "", f"{reason} to find its scaffold"


def _key(function: Callable[[Chem.Mol], str], text: str) -> tuple[str, str]:
    # parse_smiles captures RDKit's messages, which takes a third of reading: only where there are some
    mol = None if precheck(text) else Chem.MolFromSmiles(text)
    readable = mol is not None and mol.GetNumAtoms()
    return (function(mol), "") if readable else ("", parse_smiles(text).reason)


def _generic(mol: Chem.Mol) -> str:
    return murcko(mol, generic=True)


def _chiral(mol: Chem.Mol) -> str:
    """RDKit's own scaffold with chirality, as the recipes that ask for one call it."""
    if not mol.GetRingInfo().NumRings():
        return ""
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=True))


def _unmapped(mol: Chem.Mol) -> str:
    if any(a.GetAtomMapNum() for a in mol.GetAtoms()):
        mol = Chem.Mol(mol)
        for atom in mol.GetAtoms():
            atom.SetAtomMapNum(0)
    return murcko(mol)


def _parent(mol: Chem.Mol, *, isotopes: bool, stereo: bool) -> str:
    if not (stereo or isotopes or mol.HasSubstructMatch(_CHANGED) or mol.GetAtomsMatchingQuery(_MAPPED)):
        text = _stereo_free_text(mol)
        if "." not in text:
            return text
    atoms = list(mol.GetAtoms())
    charged = any(a.GetFormalCharge() for a in atoms)
    metal = any(a.GetAtomicNum() in LIGHT_METALS and a.GetDegree() for a in atoms)
    if any(a.GetIsotope() or a.GetAtomMapNum() or a.GetAtomicNum() == 1 for a in atoms):
        mol = _unmarked(mol, isotopes)
    if metal:
        mol = rdMolStandardize.MetalDisconnector().Disconnect(mol)
    fragments = Chem.GetMolFrags(mol, asMols=True) if metal or len(Chem.GetMolFrags(mol)) > 1 else (mol,)
    if len(fragments) > 1:
        most = max(f.GetNumHeavyAtoms() for f in fragments)
        fragments = tuple(f for f in fragments if f.GetNumHeavyAtoms() == most)
    if charged or metal:
        fragments = tuple(_neutral(f) for f in fragments)
    keyed = [(-sum(a.GetAtomicNum() for a in f.GetAtoms()), _stereo_free_text(f), f) for f in fragments]
    if not keyed:
        return ""
    best = min(keyed, key=lambda k: k[:2])
    return Chem.MolToSmiles(best[2]) if stereo or isotopes else best[1]


def _unmarked(mol: Chem.Mol, isotopes: bool) -> Chem.Mol:
    mol = Chem.Mol(mol)
    for atom in mol.GetAtoms():
        atom.SetAtomMapNum(0)
        if not isotopes:
            atom.SetIsotope(0)
    return Chem.RemoveHs(mol)


def _neutral(mol: Chem.Mol) -> Chem.Mol:
    mol = rdMolStandardize.Uncharger(canonicalOrder=True, force=True).uncharge(mol)
    # Aromaticity and hydrogen counts are those of the charged molecule until the text is read again.
    again = parse_smiles(Chem.MolToSmiles(mol)).mol
    return mol if again is None else again


def _stereo_free_text(mol: Chem.Mol) -> str:
    return Chem.MolToSmiles(mol, isomericSmiles=False)


def _framework(mol: Chem.Mol) -> str:
    """The 2-core of the bond graph as carbons: what is left when ends are taken off until there are none."""
    degree = [a.GetDegree() for a in mol.GetAtoms()]
    ends = [i for i, d in enumerate(degree) if d <= 1]
    gone = set(ends)
    while ends:
        i = ends.pop()
        for neighbour in mol.GetAtomWithIdx(i).GetNeighbors():
            j = neighbour.GetIdx()
            degree[j] -= 1
            if degree[j] <= 1 and j not in gone:
                gone.add(j)
                ends.append(j)
    core = Chem.RWMol()
    index = {i: core.AddAtom(Chem.Atom(6)) for i in range(len(degree)) if i not in gone}
    for bond in mol.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        if a in index and b in index:
            core.AddBond(index[a], index[b], Chem.BondType.SINGLE)
    return Chem.MolToSmiles(core)
