"""Write the Murcko scaffolds of SMILES, by which splits group molecules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache, partial

import numpy as np
from rdkit import Chem
from rdkit.Chem.Scaffolds import MurckoScaffold

from molgraph.chem.bounded import ALONE
from molgraph.chem.identity import Keys
from molgraph.chem.parallel import KEPT, map_molecules
from molgraph.chem.smiles import parse_smiles, precheck, unmapped

#: an end that a scaffold may not have: of a single bond, or of a group that hangs on by its end alone; a molecule
#: without one is its own scaffold, which spares RDKit the taking apart
_SIDE = Chem.MolFromSmarts("[D0,$([D1]-,:,#*),$([D1]=[!R;D1,D2]),$([!R;D3](=[D1])=[D1]),$([!R;D4](=[D1])(=[D1])=[D1])]")


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


def scaffolds(
    smiles: Sequence[str] | np.ndarray, *, generic: bool = False, unmap: bool = False, chiral: bool = False
) -> Keys:
    """``murcko`` of each SMILES; unreadable ones get a reason.

    Args:
        smiles: the molecules.
        generic: whether to forget elements, bond orders and hanging atoms.
        unmap: whether to take atom maps off first; RDKit writes them into the scaffold.
        chiral: whether to keep the stereo of the scaffold's own atoms and bonds.

    Example:
        >>> list(scaffolds(["Cc1ccccc1", "CCO"]).values)
        ['c1ccccc1', '']
    """
    function = _generic if generic else _unmapped if unmap else _chiral if chiral else murcko
    return Keys.of(map_molecules(partial(_key, function), smiles, _refused, seconds=ALONE, label="scaffolds"))


def _refused(_: str, reason: str) -> tuple[str, str]:
    return "", f"{reason} to find its scaffold"


@lru_cache(KEPT)
def _key(function: Callable[[Chem.Mol], str], text: str) -> tuple[str, str]:
    # parse_smiles captures RDKit's messages, which takes a third of reading: only where there are some
    mol = None if precheck(text) else Chem.MolFromSmiles(text)
    readable = mol is not None and mol.GetNumAtoms()
    return (function(mol), "") if readable else ("", parse_smiles(text).reason)


def _generic(mol: Chem.Mol) -> str:
    return murcko(mol, generic=True)


def _chiral(mol: Chem.Mol) -> str:
    """RDKit's own scaffold with chirality, as the splitters that ask for one call it."""
    if not mol.GetRingInfo().NumRings():
        return ""
    return str(MurckoScaffold.MurckoScaffoldSmiles(mol=mol, includeChirality=True))


def _unmapped(mol: Chem.Mol) -> str:
    return murcko(unmapped(mol))


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
