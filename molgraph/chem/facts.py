"""Find the parent, the fragments and the undefined stereo centres of molecules, for an audit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from rdkit import Chem

from molgraph.chem.bounded import ALONE, each
from molgraph.chem.smiles import parse_smiles, quiet
from molgraph.chem.standardise import largest_fragment, neutral

_TETRAHEDRAL = Chem.StereoType.Atom_Tetrahedral
_DOUBLE = Chem.StereoType.Bond_Double
_OPEN = Chem.StereoSpecified.Unspecified


class Facts(NamedTuple):
    """One molecule.

    Args:
        reason: why it cannot be read; the rest is empty then.
        parent: canonical SMILES of its largest fragment, neutral, stereo kept.
        fragments: how many parts it has.
        open_centres: tetrahedral centres without a stated configuration.
        open_bonds: double bonds without a stated configuration.
    """

    reason: str
    parent: str = ""
    fragments: int = 0
    open_centres: int = 0
    open_bonds: int = 0


def facts_of(texts: Sequence[str]) -> list[Facts]:
    """Look at each molecule.

    Example:
        >>> facts_of(["CC(O)C(=O)[O-].[Na+]"])
        [Facts(reason='', parent='CC(O)C(=O)O', fragments=2, open_centres=1, open_bonds=0)]
    """
    return each(_facts_here, texts, lambda _, reason: Facts(f"{reason} to look at"), seconds=ALONE)


def _facts_here(texts: Sequence[str]) -> list[Facts]:
    with quiet():
        return [_facts(text) for text in texts]


def _facts(text: str) -> Facts:
    mol, reason = parse_smiles(text)
    if mol is None:
        return Facts(reason)
    try:
        parent = neutral(largest_fragment(mol))
        stereo = [s.type for s in Chem.FindPotentialStereo(mol) if s.specified == _OPEN]
        fragments = len(Chem.GetMolFrags(mol)) if "." in text else 1
        return Facts("", Chem.MolToSmiles(parent), fragments, stereo.count(_TETRAHEDRAL), stereo.count(_DOUBLE))
    except (RuntimeError, ValueError) as error:
        return Facts(f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}")
