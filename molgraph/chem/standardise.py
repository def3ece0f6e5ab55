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
from molgraph.base.errors import UnknownNameError
from molgraph.chem.organic import LIGHT_SYMBOLS, disconnected, largest_organic, why_no_molecule
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles, unmapped

VERSION = 2  # raised whenever a preset gives another text for some molecule; files of version 1 answer by FIRST

_BOUND_METAL = re.compile(rf"\[\d*(?:{LIGHT_SYMBOLS})(?![a-z])")
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
        version: of what it does.
    """

    name: str
    concerns: Callable[[str], bool]
    steps: tuple[Callable[[Chem.Mol], Chem.Mol], ...]
    version: int = VERSION

    @property
    def label(self) -> str:
        """Name and version, as the model file records it.

        Example:
            >>> preset("standard").label
            'standard/2'
        """
        return f"{self.name}/{self.version}"


@cache
def _chooser() -> rdMolStandardize.LargestFragmentChooser:
    return rdMolStandardize.LargestFragmentChooser()


@cache
def _uncharger() -> rdMolStandardize.Uncharger:
    return rdMolStandardize.Uncharger(True)


def largest_fragment(mol: Chem.Mol) -> Chem.Mol:
    """The largest fragment, as version 1 chose it: by atoms, weight, SMILES in order of the alphabet."""
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


def organic_part(mol: Chem.Mol) -> Chem.Mol:
    """The largest organic fragment, light metals taken off; what is no molecule stays as it is."""
    return mol if why_no_molecule(mol) else largest_organic(disconnected(mol))


def neutral_part(mol: Chem.Mol) -> Chem.Mol:
    """The largest organic fragment, neutral; what is no molecule stays as it is."""
    return mol if why_no_molecule(mol) else neutral(largest_organic(disconnected(mol)))


def rewritten(mol: Chem.Mol) -> Chem.Mol:
    """A copy, which is written as its canonical SMILES."""
    return Chem.Mol(mol)


def unmapped_copy(mol: Chem.Mol) -> Chem.Mol:
    """A copy without atom maps, which is written as its canonical SMILES."""
    return Chem.Mol(unmapped(mol))


def has_salt(text: str) -> bool:
    """Whether a text may hold several fragments, or a light metal that is drawn as bound."""
    return has_dot(text) or _BOUND_METAL.search(text) is not None


def has_salt_or_charge(text: str) -> bool:
    """Whether a text may hold several fragments, a light metal, or a charge that can be removed."""
    return has_dot_or_charge(text) or _BOUND_METAL.search(text) is not None


#: the presets of model files, split files and curated editions that version 1 made
FIRST = {
    each.name: each
    for each in (
        Preset("desalt", has_dot, (largest_fragment,), 1),
        Preset("standard", has_dot_or_charge, (largest_fragment, neutral), 1),
        Preset("canonical", bool, (largest_fragment, neutral, rewritten), 1),
    )
}
for _preset, _summary in (
    (Preset("none", lambda text: False, (), 1), "every text verbatim"),
    (Preset("desalt", has_salt, (organic_part,)), "the largest organic fragment"),
    (
        Preset("standard", has_salt_or_charge, (neutral_part,)),
        "the largest organic fragment, neutral; tautomers as they are",
    ),
    (
        Preset("canonical", bool, (neutral_part, unmapped_copy)),
        "standard, then canonical SMILES without atom maps: one text for each molecule",
    ),
):
    registry.register("standardiser", _preset.name, summary=_summary)(_preset)


def preset(name: str) -> Preset:
    """The preset of that name, with or without its version (``standard`` or ``standard/1``).

    Raises:
        UnknownNameError: no preset has that name, or this molgraph does not have that version of it.
    """
    word, _, version = name.partition("/")
    newest = registry.get("standardiser", word)
    known = {str(candidate.version): candidate for candidate in (FIRST.get(word, newest), newest)}
    if version and version not in known:
        raise UnknownNameError(
            f"standardiser {name!r} is asked for, this molgraph has {newest.label!r}",
            hint="use the molgraph version that wrote the model file, or train again",
        )
    return known[version] if version else newest


def recorded_name(word: str, version: int) -> str:
    """How a preset of a version that a file records is asked for here.

    Example:
        >>> recorded_name("standard", 1), recorded_name("standard", VERSION), recorded_name("none", 1)
        ('standard/1', 'standard', 'none')
    """
    return f"{word}/{version}" if version == 1 and word in FIRST else word


def standardise_smiles(
    values: Sequence[str] | np.ndarray, preset_name: str = "standard", *, workers: int | None = None
) -> Standardised:
    """Apply a preset to many SMILES; those that it cannot concern pass verbatim, unparsed.

    Args:
        values: n texts.
        preset_name: ``none``, ``desalt``, ``standard`` or ``canonical``, with or without a version.
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
    step = partial(_apply, preset_name)
    results = map_molecules(step, out[concerned], _refused, label="standardise", workers=workers)
    for i, (text, reason) in zip(concerned, results, strict=True):
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
        smiles = Chem.MolToSmiles(changed)
        return (smiles if parse_smiles(smiles).mol is not None else text), ""  # a readable molecule stays one
    except (RuntimeError, ValueError) as error:
        return text, f"standardiser {chosen.name}: {' '.join(str(error).split())[:200]}"
