"""Positions of the atoms of a SMILES: embedded by RDKit's ETKDG, or those of a geometry of the same molecule."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from molgraph.chem.atom_order import counts_of
from molgraph.chem.conformer import make_conformers
from molgraph.chem.conformer_cache import conformer_file
from molgraph.chem.connectivity import bonded_pairs
from molgraph.chem.smiles import parse_smiles, quiet

SECONDS = 5.0  # for a molecule


def embedded_positions(smiles: Sequence[str], *, workers: int | None = None) -> list[np.ndarray | str]:
    """Positions float32 [n, 3], in angstrom, of the atoms of each SMILES in one conformer; or why there is none.

    The first of ``chem.conformer``, without a force field: a molecule has the same conformer in every table.

    Args:
        smiles: texts.
        workers: processes; None for one a core where that pays.

    Example:
        >>> made, none = embedded_positions(["CCO", "C("])
        >>> made.shape, none[:18]
        ((3, 3), 'SMILES Parse Error')
    """
    conformers = make_conformers(smiles, relax="none", seconds=SECONDS, workers=workers, cache=conformer_file())
    sizes = [0 if entry.reason else counts.atom for entry, counts in zip(conformers, counts_of(smiles), strict=True)]
    # added hydrogens stand behind the atoms of the text
    return [entry.reason or entry.positions[0][:n] for entry, n in zip(conformers, sizes, strict=True)]


def matched_positions(text: str, numbers: np.ndarray, positions: np.ndarray) -> np.ndarray | str:
    """Positions float32 [n, 3] of the atoms of a SMILES, taken from atoms in space; or why they are another molecule.

    Bonds of the geometry are told by distances; its heavy atoms are matched to those of the SMILES by element,
    hydrogens and bonds, or without hydrogens where they differ (a proton elsewhere). Explicit hydrogens of the SMILES
    have no position (NaN).

    Example:
        >>> at = np.array([[0, 0, 0], [1.43, 0, 0]], np.float32)
        >>> matched_positions("OC", np.array([6, 8]), at)[:, 0].tolist() == at[::-1, 0].tolist()
        True
    """
    mol, reason = parse_smiles(text)
    if mol is None:
        return reason
    heavy = np.array([atom.GetIdx() for atom in mol.GetAtoms() if atom.GetAtomicNum() > 1], dtype=np.int64)
    space, bonds = np.flatnonzero(np.asarray(numbers) > 1), bonded_pairs(numbers, positions)
    if sorted(np.asarray(numbers)[space].tolist()) != sorted(mol.GetAtomWithIdx(int(i)).GetAtomicNum() for i in heavy):
        return "the geometry has other atoms than the SMILES"
    drawn = np.array([(b.GetBeginAtomIdx(), b.GetEndAtomIdx()) for b in mol.GetBonds()], dtype=np.int64).reshape(-1, 2)
    of_text = np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()])
    hydrogens = np.array([atom.GetTotalNumHs(includeNeighbors=True) for atom in mol.GetAtoms()], dtype=np.int64)
    around = np.bincount(bonds[np.asarray(numbers)[bonds[:, ::-1]] == 1], minlength=len(numbers))
    with quiet():
        for counted in (True, False):
            one = _skeleton(of_text, drawn, heavy, hydrogens if counted else None)
            other = _skeleton(np.asarray(numbers), bonds, space, around if counted else None)
            match = other.GetSubstructMatch(one)  # two atoms of a cage may be near without a bond
            if len(match) == len(heavy):
                out = np.full((mol.GetNumAtoms(), 3), np.nan, dtype=np.float32)
                out[heavy] = positions[space[list(match)]]
                return out
    return "the geometry has other bonds than the SMILES"


def _skeleton(numbers: np.ndarray, bonds: np.ndarray, kept: np.ndarray, hydrogens: np.ndarray | None) -> Chem.Mol:
    """The kept atoms and the single bonds between them, with an isotope that stands for the number of hydrogens."""
    skeleton, place = Chem.RWMol(), {int(atom): i for i, atom in enumerate(kept)}
    for atom in kept:
        new = Chem.Atom(int(numbers[atom]))
        new.SetNoImplicit(True)
        new.SetIsotope(0 if hydrogens is None else 1 + int(hydrogens[atom]))
        skeleton.AddAtom(new)
    for a, b in bonds.tolist():
        if a in place and b in place:
            skeleton.AddBond(place[a], place[b], Chem.BondType.SINGLE)
    return skeleton.GetMol()
