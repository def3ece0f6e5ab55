"""Read two conformers of one molecule: positions of the same atoms in the same order, and the bonds."""

from __future__ import annotations

from itertools import permutations
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Geometry import Point3D

from molgraph.chem.molfile import MAX_RECORD
from molgraph.chem.smiles import captured, one_line, quiet
from molgraph.chem.superpose import superpose

MATCHES = 500  # ways to lay the heavy atoms of one over those of the other that are tried


class ConformerPair(NamedTuple):
    """Two conformers.

    Args:
        mol: the first one.
        a, b: float64 [n, 3], positions in the order of its atoms, in angstrom.
        bonds: int64 [m, 2].
        stiff: bool [m], bonds that do not turn: multiple, aromatic and conjugated ones.
    """

    mol: Chem.Mol
    a: np.ndarray
    b: np.ndarray
    bonds: np.ndarray
    stiff: np.ndarray


def pair_of(a: Chem.Mol, b: Chem.Mol) -> ConformerPair:
    """Two conformers of one molecule with their atoms matched.

    Of the ways to lay heavy atoms over one another that with the smallest deviation is taken; hydrogens of an atom,
    which have no names, are matched so that their neighbourhood is not mirrored.

    Raises:
        ValueError: they are no conformers of one molecule, or not in space.
    """
    if not all(mol.GetNumConformers() and mol.GetConformer().Is3D() for mol in (a, b)):
        raise ValueError("a structure that is not in space")
    x, y = (np.asarray(mol.GetConformer().GetPositions()) for mol in (a, b))
    heavy_a, heavy_b = ([at.GetIdx() for at in mol.GetAtoms() if at.GetAtomicNum() > 1] for mol in (a, b))
    with quiet():
        bare = [Chem.RemoveAllHs(mol) for mol in (a, b)]
        matches = bare[1].GetSubstructMatches(bare[0], uniquify=False, maxMatches=MATCHES)
    if a.GetNumAtoms() != b.GetNumAtoms() or len(heavy_a) != len(heavy_b) or not matches:
        raise ValueError("the two structures are no conformers of one molecule")
    held = [[heavy_b[k] for k in match] for match in matches]
    best = min(held, key=lambda own: superpose(y[own], x[heavy_a])[1])
    place = dict(zip(heavy_a, best, strict=True))
    for one, other in list(place.items()):
        place |= _hydrogens(a, b, one, other, x, y, place)
    if len(place) != a.GetNumAtoms():
        raise ValueError("the two structures have their hydrogens at other atoms")
    bonds = np.array([(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in a.GetBonds()], dtype=np.int64)
    stiff = [bond.GetIsConjugated() or bond.GetBondTypeAsDouble() > 1 for bond in a.GetBonds()]
    order = [place[i] for i in range(a.GetNumAtoms())]
    return ConformerPair(a, x, y[order], bonds.reshape(-1, 2), np.array(stiff, dtype=bool))


def first_structure(path: str) -> Chem.Mol:
    """The first structure of an SD file, with its hydrogens.

    Raises:
        ValueError: RDKit reads none there. OSError: the file cannot be read.
    """
    with open(path, encoding="utf-8", errors="replace") as file:
        block = file.read(MAX_RECORD).partition("$$$$")[0]
    with captured() as log:
        try:
            mol = Chem.MolFromMolBlock(block, removeHs=False)
        except (RuntimeError, ValueError) as error:
            raise ValueError(one_line(str(error)) or "a structure that RDKit cannot read") from None
    if mol is None or not mol.GetNumAtoms():
        raise ValueError(one_line(log.messages) or "a structure that RDKit cannot read")
    return mol


def structure_block(mol: Chem.Mol, positions: np.ndarray) -> str:
    """The block of an SD file: a molecule's atoms at positions float [n, 3]."""
    copy = Chem.Mol(mol)
    conformer = copy.GetConformer()
    for i, (x, y, z) in enumerate(positions.tolist()):
        conformer.SetAtomPosition(i, Point3D(x, y, z))
    return Chem.MolToMolBlock(copy)


def _hydrogens(
    a: Chem.Mol, b: Chem.Mol, one: int, other: int, x: np.ndarray, y: np.ndarray, place: dict[int, int]
) -> dict[int, int]:
    """The hydrogens of an atom of ``a`` with those of its partner in ``b``."""
    (hydrogens, rest), (theirs, _) = (_around(mol, atom) for mol, atom in ((a, one), (b, other)))
    if not hydrogens or len(hydrogens) != len(theirs):
        return {}
    first = x[[one, *rest, *hydrogens]]

    ways = list(permutations(theirs))
    left = [superpose(y[[other, *(place[k] for k in rest), *order]], first)[1] for order in ways]
    return dict(zip(hydrogens, ways[int(np.argmin(left))], strict=True))


def _around(mol: Chem.Mol, atom: int) -> tuple[list[int], list[int]]:
    """The hydrogens of an atom, and its other neighbours."""
    near = [neighbour.GetIdx() for neighbour in mol.GetAtomWithIdx(atom).GetNeighbors()]
    light = [k for k in near if mol.GetAtomWithIdx(k).GetAtomicNum() == 1]
    return light, [k for k in near if k not in light]
