"""Describe molecules by their canonical SMILES, as given and as parents, and count what is open or mixed in them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rdkit import Chem

from molgraph.chem.bounded import ALONE
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles
from molgraph.chem.standardise import largest_fragment, neutral

_TETRAHEDRAL = Chem.StereoType.Atom_Tetrahedral
_DOUBLE = Chem.StereoType.Bond_Double
_OPEN = Chem.StereoSpecified.Unspecified


class Identity(NamedTuple):
    """One molecule.

    Args:
        reason: why it cannot be read; the rest is empty then.
        written: canonical SMILES of all that the text says.
        parent: that of its largest fragment, neutral, stereo kept.
        stereo_free: that of the parent without stereo.
        carbon: whether the parent has a carbon atom.
        fragments: how many parts it has.
        open_centres: tetrahedral centres without a stated configuration.
        open_bonds: double bonds without a stated configuration.
    """

    reason: str
    written: str = ""
    parent: str = ""
    stereo_free: str = ""
    carbon: bool = False
    fragments: int = 0
    open_centres: int = 0
    open_bonds: int = 0


def identities_of(
    smiles: Sequence[str] | np.ndarray, *, label: str = "molecules", workers: int | None = None
) -> list[Identity]:
    """Describe each molecule; every different text is parsed once.

    Example:
        >>> (found,) = identities_of(["C[C@H](O)C(=O)[O-].[Na+]"])
        >>> found.written, found.parent, found.stereo_free, found.fragments
        ('C[C@H](O)C(=O)[O-].[Na+]', 'C[C@H](O)C(=O)O', 'CC(O)C(=O)O', 2)
        >>> identities_of(["CC(O)F"])[0].open_centres
        1
    """
    return map_molecules(
        _identity, smiles, lambda _, why: Identity(f"{why} to look at"), seconds=ALONE, label=label, workers=workers
    )


def parents_of(smiles: Sequence[str] | np.ndarray, *, label: str = "molecules") -> list[str]:
    """The ``parent`` of each molecule, in half the time; empty for one that cannot be read.

    Example:
        >>> parents_of(["CC[O-].[Na+]", "C(C"])
        ['CCO', '']
    """
    return map_molecules(_parent, smiles, lambda *_: "", seconds=ALONE, label=label)


def canonical_smiles(
    smiles: Sequence[str] | np.ndarray, *, label: str = "molecules", workers: int | None = None
) -> list[tuple[str, str]]:
    """The canonical SMILES of each molecule, and why it has none (empty where it has one).

    Example:
        >>> found, bad = canonical_smiles(["OCC", "C(C"])
        >>> found, bad[0]
        (('CCO', ''), '')
    """
    return map_molecules(
        _canonical, smiles, lambda _, why: ("", f"{why} to write"), seconds=ALONE, label=label, workers=workers
    )


def _canonical(text: str) -> tuple[str, str]:
    mol, reason = parse_smiles(text)
    try:
        return ("", reason) if mol is None else (Chem.MolToSmiles(mol), "")
    except (RuntimeError, ValueError) as error:
        return "", f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}"


def _identity(text: str) -> Identity:
    mol, reason = parse_smiles(text)
    if mol is None:
        return Identity(reason)
    try:
        written = Chem.MolToSmiles(mol)
        parent = neutral(largest_fragment(mol))
        stereo = [s.type for s in Chem.FindPotentialStereo(mol) if s.specified == _OPEN]
        return Identity(
            "",
            written,
            written if parent is mol else Chem.MolToSmiles(parent),
            Chem.MolToSmiles(parent, isomericSmiles=False),
            any(atom.GetAtomicNum() == 6 for atom in parent.GetAtoms()),
            len(Chem.GetMolFrags(mol)) if "." in text else 1,
            stereo.count(_TETRAHEDRAL),
            stereo.count(_DOUBLE),
        )
    except (RuntimeError, ValueError) as error:
        return Identity(f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}")


def _parent(text: str) -> str:
    mol = parse_smiles(text).mol
    try:
        return "" if mol is None else Chem.MolToSmiles(neutral(largest_fragment(mol)))
    except (RuntimeError, ValueError):
        return ""
