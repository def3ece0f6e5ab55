"""Find the atoms within some bonds of an atom, and write them as SMILES."""

from __future__ import annotations

from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.smiles import parse_smiles


class Environment(NamedTuple):
    """The atoms around one: their SMILES from it, how far they reach in bonds, and their numbers."""

    smiles: str
    radius: int
    atoms: list[int]


def atom_environment(smiles: str, atom: int, radius: int) -> Environment:
    """All atoms of a readable molecule within ``radius`` bonds of one of its atoms.

    Example:
        >>> atom_environment("CCO", 0, 1), atom_environment("CCO", 1, 4).radius
        (Environment(smiles='CC', radius=1, atoms=[0, 1]), 1)
    """
    mol = parse_smiles(smiles).mol
    distances = Chem.GetDistanceMatrix(mol)[atom]
    inside = (distances <= radius).nonzero()[0].tolist()
    written = Chem.MolFragmentToSmiles(mol, inside, rootedAtAtom=atom)
    return Environment(written, int(distances[inside].max()), inside)
