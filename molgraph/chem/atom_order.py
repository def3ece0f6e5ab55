"""Map atoms and bonds of a SMILES to those of its standardised form, count both, write atoms in another order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.handedness import without_maps
from molgraph.chem.smiles import captured, parse_smiles
from molgraph.chem.standardise import preset

_PLACE = "molgraph_place"


class Counts(NamedTuple):
    """Atoms and bonds of a molecule as RDKit reads its SMILES, or -1 and the reason why it cannot be read."""

    atom: int
    bond: int
    reason: str


class Places(NamedTuple):
    """For each atom (and bond) of a standardised molecule, its number among those of the given SMILES."""

    atom: np.ndarray
    bond: np.ndarray
    n_atoms: int
    n_bonds: int


def counts_of(texts: Sequence[str]) -> list[Counts]:
    """Atoms and bonds of each SMILES.

    Hydrogens that RDKit takes into their neighbours (``[H]C``) are no atoms.

    Example:
        >>> counts_of(["CCO", "[H]C([H])([H])[H]", "C("])[:2]
        [Counts(atom=3, bond=2, reason=''), Counts(atom=1, bond=0, reason='')]
    """
    out = []
    for text in texts:
        mol, reason = parse_smiles(text)
        out.append(Counts(-1, -1, reason) if mol is None else Counts(mol.GetNumAtoms(), mol.GetNumBonds(), ""))
    return out


def kinds_of(text: str, level: str) -> np.ndarray:
    """int64: the element of each atom of a SMILES, or the type of each bond; none where it cannot be read.

    Example:
        >>> kinds_of("CC=O", "atom").tolist(), kinds_of("CC=O", "bond").tolist()
        ([6, 6, 8], [1, 2])
    """
    mol = parse_smiles(text).mol
    if mol is None:
        return np.zeros(0, np.int64)
    if level == "atom":
        return np.array([atom.GetAtomicNum() for atom in mol.GetAtoms()], dtype=np.int64)
    return np.array([int(bond.GetBondType()) for bond in mol.GetBonds()], dtype=np.int64)


def bond_ends(text: str) -> np.ndarray:
    """int64 [bonds, 2]: the atoms of each bond of a SMILES, in RDKit's order of bonds, the lower number first.

    Example:
        >>> bond_ends("C1CC1").tolist()
        [[0, 1], [1, 2], [0, 2]]
    """
    mol = parse_smiles(text).mol
    return np.zeros((0, 2), np.int64) if mol is None else _ends(mol)


def follow(text: str, preset_name: str) -> tuple[str, Places] | None:
    """The standardised SMILES and where its atoms and bonds come from; None where they cannot be followed.

    Args:
        text: a SMILES that can be read.
        preset_name: the standardiser.

    Example:
        >>> made, places = follow("[Na+].[O-]C(C)=O", "standard")
        >>> made, places.atom.tolist(), places.bond.tolist()
        ('CC(=O)O', [3, 2, 4, 1], [1, 2, 0])
    """
    mol = parse_smiles(text).mol
    if mol is None:
        return None
    for atom in mol.GetAtoms():
        atom.SetIntProp(_PLACE, atom.GetIdx())
    with captured():
        try:
            changed = mol
            for step in preset(preset_name).steps:
                changed = step(changed)
        except (RuntimeError, ValueError):
            return None
    return _written(mol, changed, text if changed is mol else None)


def shuffled_smiles(text: str, rng: np.random.Generator) -> str:
    """The SMILES of the same molecule with its atoms in a random order; what RDKit cannot read stays as it is.

    Example:
        >>> shuffled_smiles("CCO", np.random.default_rng(0)) in ("CCO", "OCC", "C(C)O", "C(O)C"), shuffled_smiles(
        ...     "C(", np.random.default_rng(0)
        ... )
        (True, 'C(')
    """
    shuffled = shuffled_atoms(text, rng)
    return text if shuffled is None else shuffled[0]


def shuffled_atoms(text: str, rng: np.random.Generator) -> tuple[str, np.ndarray] | None:
    """A random SMILES, and for each of its atoms, as they are written, its number in the text, int64 [atoms].

    None where RDKit cannot read or write it.

    Example:
        >>> text, atoms = shuffled_atoms("CCO", np.random.default_rng(0))
        >>> len(atoms), sorted(atoms.tolist())
        (3, [0, 1, 2])
    """
    mol = parse_smiles(without_maps(text)).mol
    if mol is None:
        return None
    with captured():
        try:
            order = rng.permutation(mol.GetNumAtoms())
            shuffled = Chem.RenumberAtoms(mol, order.tolist())
            random_text = Chem.MolToSmiles(shuffled, canonical=False)
            written = [*shuffled.GetPropsAsDict(True, True).get("_smilesAtomOutputOrder", ())]
        except (RuntimeError, ValueError):  # what cannot be written anew stays as it is
            return None
    return (random_text, order[written]) if random_text else None


def follow_block(block: str) -> tuple[str, Places] | None:
    """The SMILES of an SD file's structure, and where its atoms and bonds stand in the structure as RDKit reads it.

    Args:
        block: the structure; hydrogens that RDKit takes into their neighbours are no atoms.
    """
    with captured():
        try:
            mol = Chem.MolFromMolBlock(block)
        except (RuntimeError, ValueError):
            return None
    if mol is None:
        return None
    for atom in mol.GetAtoms():
        atom.SetIntProp(_PLACE, atom.GetIdx())
    return _written(mol, mol, None)


def _written(given: Chem.Mol, mol: Chem.Mol, text: str | None) -> tuple[str, Places] | None:
    """The SMILES of a molecule whose atoms know their places in the given one, and those places in its order.

    Args:
        given: the molecule that places are counted in.
        mol: the same, or what a standardiser made of it.
        text: its SMILES, where it was read from one; else it is written.
    """
    with captured():
        try:
            smiles = Chem.MolToSmiles(mol) if text is None else text
        except (RuntimeError, ValueError):
            return None
    order = list(range(mol.GetNumAtoms()))
    if text is None:
        order = list(mol.GetPropsAsDict(True, True)["_smilesAtomOutputOrder"])
    again = parse_smiles(smiles).mol
    if again is None or [a.GetAtomicNum() for a in again.GetAtoms()] != [
        mol.GetAtomWithIdx(i).GetAtomicNum() for i in order
    ]:
        return None  # hydrogens that are written as atoms are read as none
    atoms = np.array([mol.GetAtomWithIdx(i).GetIntProp(_PLACE) for i in order], dtype=np.int64)
    known = {tuple(pair): number for number, pair in enumerate(_ends(given).tolist())}
    pairs = [tuple(pair) for pair in np.sort(atoms[_ends(again)], axis=1).tolist()]
    if not known.keys() >= {*pairs}:
        return None
    bonds = np.array([known[pair] for pair in pairs], dtype=np.int64)
    return smiles, Places(atoms, bonds, given.GetNumAtoms(), given.GetNumBonds())


def _ends(mol: Chem.Mol) -> np.ndarray:
    pairs = [(bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()) for bond in mol.GetBonds()]
    return np.sort(np.array(pairs, dtype=np.int64).reshape(-1, 2), axis=1)


def canonical_ranks(labels: list[int], bonds: list[tuple[int, int]]) -> list[int]:
    """The place of each node of a labelled graph in its canonical order.

    Example:
        >>> canonical_ranks([0, 0, 0], [(0, 1), (1, 2)])[1], canonical_ranks([0, 0, 0], [(0, 2), (2, 1)])[2]
        (2, 2)
    """
    mol = Chem.RWMol()
    for label in labels:
        atom = Chem.Atom(0)
        atom.SetIsotope(label)
        mol.AddAtom(atom)
    for a, b in bonds:
        mol.AddBond(a, b, Chem.BondType.SINGLE)
    mol.UpdatePropertyCache(strict=False)
    return list(Chem.CanonicalRankAtoms(mol, breakTies=True))
