"""Check whether a geometry, or the ligand of a complex, is the molecule of the SMILES in its row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from molgraph.chem import smiles
from molgraph.chem.bounded import is_hard
from molgraph.chem.complexes import parted
from molgraph.chem.smiles import parse_smiles


def heavy_atoms(texts: Sequence[str]) -> list[Counter[int] | None]:
    """How many atoms of each element but hydrogen each SMILES has; None where it cannot be read."""
    mols = [parse_smiles(text).mol for text in texts]
    return [None if mol is None else _counts([atom.GetAtomicNum() for atom in mol.GetAtoms()]) for mol in mols]


def why_other_molecule(expected: Counter[int] | None, numbers: np.ndarray) -> str:
    """Why atoms in space are not the molecule whose heavy atoms are ``expected``; empty where they may be it.

    Hydrogens do not count: structures of experiments lack them, and charges move them.

    Example:
        >>> why_other_molecule(heavy_atoms(["CCO"])[0], np.array([6, 8, 1, 1, 1, 1]))
        'its atoms in space are CO and its SMILES says C2O (hydrogens aside)'
    """
    counts = _counts(numbers.tolist())
    if expected is None or counts == expected:
        return ""
    return f"its atoms in space are {_formula(counts)} and its SMILES says {_formula(expected)} (hydrogens aside)"


def why_other_ligand(text: str, molecule: str) -> str:
    """Why the ligand of a complex is not the molecule of a SMILES; empty where it is, or where either is unreadable.

    Heavy atoms and which of them are bonded are compared, not bond orders, charges or hydrogens, which programs write
    differently. Of a SMILES of several parts the largest may be the ligand.

    Example:
        >>> why_other_ligand("", "CCO")
        ''
    """
    block, rest = parted(text)
    if not block or not rest or is_hard(molecule):
        return ""
    with smiles.quiet():
        pose, named = Chem.MolFromMolBlock(block, sanitize=False), parse_smiles(molecule).mol
        if pose is None or named is None:
            return ""
        parts = [named, max(Chem.GetMolFrags(named, asMols=True), key=lambda part: part.GetNumHeavyAtoms())]
        here, there = _skeleton(pose), [_skeleton(part) for part in parts]
    if here in there:
        return ""
    atoms = [sorted(_heavy(mol)) for mol in (pose, parts[-1])]
    if atoms[0] == atoms[1]:
        return "the pose has the atoms of the SMILES with other bonds"
    return f"the pose has {len(atoms[0])} heavy atoms, and they are not the {len(atoms[1])} of the SMILES"


def _counts(numbers: Sequence[int]) -> Counter[int]:
    return Counter(z for z in numbers if z > 1)


def _formula(counts: Counter[int]) -> str:
    symbol = Chem.GetPeriodicTable().GetElementSymbol
    order = sorted(counts, key=lambda z: (z != 6, symbol(z)))
    return "".join(f"{symbol(z)}{counts[z] if counts[z] > 1 else ''}" for z in order)[:80] or "no heavy atom"


def _skeleton(mol: Chem.Mol) -> str:
    """A text of the heavy atoms and of which are bonded."""
    bare, place = Chem.RWMol(), {}
    for atom in mol.GetAtoms():
        if atom.GetAtomicNum() != 1:
            place[atom.GetIdx()] = bare.AddAtom(Chem.Atom(atom.GetAtomicNum()))
    for bond in mol.GetBonds():
        ends = [place.get(end.GetIdx()) for end in (bond.GetBeginAtom(), bond.GetEndAtom())]
        if None not in ends:
            bare.AddBond(*ends, Chem.BondType.SINGLE)
    return str(Chem.MolToSmiles(bare))


def _heavy(mol: Chem.Mol) -> list[int]:
    return [atom.GetAtomicNum() for atom in mol.GetAtoms() if atom.GetAtomicNum() != 1]
