"""Standardise SMILES by a named preset, which the model file records and applies again."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial

import numpy as np
from rdkit import Chem
from rdkit.Chem.MolStandardize import rdMolStandardize

from molgraph.base import registry
from molgraph.base.errors import UsageError
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

VERSION = 1  # raised whenever a preset gives another text for some molecule

_CHARGED = re.compile(r"\[[^\]]*[+-]")
# Nitro groups written in the charged form are charges that belong together: the neutraliser leaves them.
_NITRO = re.compile(r"\[N\+\]\(=O\)\[O-\]|\[N\+\]\(\[O-\]\)=O|\[O-\]\[N\+\]\(=O\)|O=\[N\+\]\(\[O-\]\)")


@dataclass(frozen=True)
class Standardised:
    """The texts after the step, one for each given, in order.

    Args:
        values: object array [n]; the given text, verbatim, where the step changes nothing or cannot read it.
        reasons: object array [n]: why a text could not be read, else empty. Only texts that the step had
            to parse are judged; the featuriser judges all.
    """

    values: np.ndarray
    reasons: np.ndarray


@dataclass(frozen=True)
class Preset:
    """One standardiser: which texts it must look at, and what it does to a molecule.

    Args:
        name: the recorded name.
        concerns: whether a text could be changed at all (a cheap look at the characters).
        steps: functions of a molecule, applied in order; each gives back a new molecule or the same object.
    """

    name: str
    concerns: Callable[[str], bool]
    steps: tuple[Callable[[Chem.Mol], Chem.Mol], ...]

    @property
    def label(self) -> str:
        """Name and version, as the model file records it.

        Example:
            >>> preset("standard").label
            'standard/1'
        """
        return f"{self.name}/{VERSION}"


@cache
def _chooser() -> rdMolStandardize.LargestFragmentChooser:
    return rdMolStandardize.LargestFragmentChooser()


@cache
def _uncharger() -> rdMolStandardize.Uncharger:
    return rdMolStandardize.Uncharger(True)


def largest_fragment(mol: Chem.Mol) -> Chem.Mol:
    """The largest fragment: organic before inorganic, then atoms, weight, SMILES in order of the alphabet."""
    if len(Chem.GetMolFrags(mol)) < 2:
        return mol
    return _chooser().choose(mol)


def neutral(mol: Chem.Mol) -> Chem.Mol:
    """The molecule with charges removed where hydrogens can be added or taken; others stay.

    So does a molecule that RDKit would leave with an impossible valence (``[2H-][H]``), or with an aromatic ring that
    its charge alone made aromatic (``[cH-]1cccc1``, the rings of ferrocene).
    """
    charges = [atom.GetFormalCharge() for atom in mol.GetAtoms()]
    if not any(charges):
        return mol
    changed = _uncharger().uncharge(mol)
    differ = [
        atom for atom, before in zip(changed.GetAtoms(), charges, strict=True) if atom.GetFormalCharge() != before
    ]
    if not differ or Chem.DetectChemistryProblems(changed):
        return mol
    return mol if any(atom.GetIsAromatic() for atom in differ) and not _readable(changed) else changed


def _readable(mol: Chem.Mol) -> bool:
    """Whether RDKit reads again the SMILES that it writes."""
    return parse_smiles(Chem.MolToSmiles(mol)).mol is not None


def has_dot(text: str) -> bool:
    """Whether a text may hold several fragments."""
    return "." in text


def has_dot_or_charge(text: str) -> bool:
    """Whether a text may hold several fragments or a charge that can be removed.

    Example:
        >>> [has_dot_or_charge(s) for s in ("C-C", "C[NH3+]", "C[N+](=O)[O-]")]
        [False, True, False]
    """
    if "." in text:
        return True
    if "+" not in text and ("-" not in text or "[" not in text):
        return False
    return _CHARGED.search(_NITRO.sub("", text)) is not None


registry.register("standardiser", "none", summary="every text verbatim")(Preset("none", lambda text: False, ()))
registry.register("standardiser", "desalt", summary="the largest fragment")(
    Preset("desalt", has_dot, (largest_fragment,))
)
registry.register("standardiser", "standard", summary="the largest fragment, neutral; tautomers as they are")(
    Preset("standard", has_dot_or_charge, (largest_fragment, neutral))
)


def rewritten(mol: Chem.Mol) -> Chem.Mol:
    """A copy, which is written as its canonical SMILES."""
    return Chem.Mol(mol)


registry.register("standardiser", "canonical", summary="standard, then canonical SMILES: one text for each molecule")(
    Preset("canonical", bool, (largest_fragment, neutral, rewritten))
)


def preset(name: str) -> Preset:
    """The preset of that name, with or without its version (``standard`` or ``standard/1``).

    Raises:
        UsageError: no preset has that name, or this molgraph has another version of it.
    """
    word, _, version = name.partition("/")
    found = registry.get("standardiser", word)
    if version and version != str(VERSION):
        raise UsageError(
            f"standardiser {name!r} is asked for, this molgraph has {found.label!r}",
            hint="use the molgraph version that wrote the model file, or train again",
        )
    return found


def standardise_smiles(
    values: Sequence[str] | np.ndarray, preset_name: str = "standard", *, workers: int | None = None
) -> Standardised:
    """Apply a preset to many SMILES; those that it cannot concern pass verbatim, unparsed.

    Args:
        values: n texts.
        preset_name: ``none``, ``desalt``, ``standard`` or ``canonical``.
        workers: processes; None decides by the number of texts that must be parsed.

    Returns:
        n texts and n reasons.

    Example:
        >>> standardise_smiles(["CCO", "CC(=O)[O-].[Na+]", "C.C("]).values
        array(['CCO', 'CC(=O)O', 'C.C('], dtype=object)
    """
    chosen = preset(preset_name)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    reasons = np.full(len(out), "", dtype=object)
    concerned = [i for i, text in enumerate(out) if chosen.concerns(text)]
    step = partial(_apply, chosen.name)
    made = map_molecules(step, out[concerned], _refused, label="standardise", workers=workers)
    for i, (text, reason) in zip(concerned, made, strict=True):
        out[i], reasons[i] = text, reason
    return Standardised(out, reasons)


def _refused(text: str, reason: str) -> tuple[str, str]:
    return text, f"{reason} to standardise"


def _apply(name: str, text: str) -> tuple[str, str]:
    """The new text and an empty reason, or the given text and why the step could not read it."""
    chosen = preset(name)
    mol, reason = parse_smiles(text)
    if mol is None:
        return text, reason
    changed = mol
    try:
        for step in chosen.steps:
            changed = step(changed)
        if changed is mol:
            return text, ""
        made = Chem.MolToSmiles(changed)
        return (made if parse_smiles(made).mol is not None else text), ""  # a readable molecule stays one
    except (RuntimeError, ValueError) as error:
        return text, f"standardiser {chosen.name}: {' '.join(str(error).split())[:200]}"
