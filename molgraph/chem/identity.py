"""Write the texts by which molecules are told apart: as given, as a parent, without stereo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.bounded import ALONE, each
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.chem.standardise import largest_fragment, neutral


class Identity(NamedTuple):
    """One molecule.

    Args:
        reason: why it cannot be read; the rest is empty then.
        written: canonical SMILES of all that the text says.
        parent: that of its largest fragment, neutral, stereo kept.
        flat: that of the parent without stereo.
        carbon: whether the parent has a carbon atom.
    """

    reason: str
    written: str = ""
    parent: str = ""
    flat: str = ""
    carbon: bool = False


def identities_of(texts: Sequence[str]) -> list[Identity]:
    """Look at each molecule.

    Example:
        >>> identities_of(["C[C@H](O)C(=O)[O-].[Na+]"])[0][1:4]
        ('C[C@H](O)C(=O)[O-].[Na+]', 'C[C@H](O)C(=O)O', 'CC(O)C(=O)O')
    """
    return each(_identities_here, texts, lambda _, reason: Identity(f"{reason} to look at"), seconds=ALONE)


def _identities_here(texts: Sequence[str]) -> list[Identity]:
    with quiet():
        return [_identity(text) for text in texts]


def _identity(text: str) -> Identity:
    mol, reason = parse_smiles(text)
    if mol is None:
        return Identity(reason)
    try:
        written = Chem.MolToSmiles(mol)
        parent = neutral(largest_fragment(mol))
        carbon = any(atom.GetAtomicNum() == 6 for atom in parent.GetAtoms())
        texts = (Chem.MolToSmiles(parent), Chem.MolToSmiles(parent, isomericSmiles=False))
        return Identity("", written, *texts, carbon)
    except (RuntimeError, ValueError) as error:
        return Identity(f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}")
