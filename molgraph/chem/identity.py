"""Say which molecule a text is: the one place that audits, splits, scores and generators ask (decision 0025)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdqueries
from rdkit.Chem.MolStandardize import rdMolStandardize

from molgraph.chem.bounded import ALONE
from molgraph.chem.organic import LIGHT_METALS, disconnected, is_doubtful, largest_organic, why_no_molecule
from molgraph.chem.parallel import KEPT, map_molecules
from molgraph.chem.smiles import parse_smiles, precheck, quiet, unmapped
from molgraph.chem.standardise import preset

_TETRAHEDRAL = Chem.StereoType.Atom_Tetrahedral
_DOUBLE = Chem.StereoType.Bond_Double
_OPEN = Chem.StereoSpecified.Unspecified
#: atoms that a key changes or drops: charges but those of nitro groups, isotopes, hydrogens, light metals
_CHANGED = Chem.MolFromSmarts(
    "[!+0&!$([N+](=O)[O-])&!$([O-][N+]=O),!0*,#1," + ",".join(f"#{n}" for n in sorted(LIGHT_METALS)) + "]"
)
_MAPPED = rdqueries.HasPropQueryAtom("molAtomMapNumber")
_CHARGED = Chem.MolFromSmarts("[!+0]")


class Keys(NamedTuple):
    """One text for each molecule asked about.

    Args:
        values: object array [n]; ``""`` where there is none: an acyclic molecule's scaffold, or an unreadable row.
        reasons: object array [n]; RDKit's words where the molecule could not be read, else ``""``.
    """

    values: np.ndarray
    reasons: np.ndarray

    @classmethod
    def of(cls, pairs: Sequence[tuple[str, str]]) -> Keys:
        """Columns of pairs of a text and a reason."""
        columns = np.array(pairs, dtype=object).reshape(-1, 2)
        return cls(columns[:, 0], columns[:, 1])


class Written(NamedTuple):
    """A molecule as text.

    Args:
        smiles: canonical, without atom maps; empty where RDKit does not read it.
        reason: why it is no molecule (``molgraph.chem.organic``), or cannot be read; else empty.
    """

    smiles: str
    reason: str


class Identity(NamedTuple):
    """One molecule.

    Args:
        reason: why it cannot be read; the rest is empty then.
        written: canonical SMILES of all that the text says, but for atom maps.
        parent: its key, stereo and isotopes kept.
        stereo_free: its key without them.
        no_molecule: why it is no molecule though RDKit reads it; else empty.
        carbon: whether it has a carbon atom.
        fragments: how many parts it has.
        open_centres: tetrahedral centres without a stated configuration.
        open_bonds: double bonds without a stated configuration.
    """

    reason: str
    written: str = ""
    parent: str = ""
    stereo_free: str = ""
    no_molecule: str = ""
    carbon: bool = False
    fragments: int = 0
    open_centres: int = 0
    open_bonds: int = 0


def molecule_key(mol: Chem.Mol, *, stereo: bool, isotopes: bool | None = None) -> str:
    """The text that two molecules share when they are one: canonical SMILES of the organic part, neutral, unmapped.

    Salts that are drawn with a bond to a light metal are taken apart first. Of several fragments the largest with
    carbon counts, as in the preset ``standard``; where there is none, all of them. Charges are removed by protons
    alone; a betaine and its hydrochloride get the same (protonated) key.

    Args:
        mol: a sanitised molecule; it is not changed.
        stereo: whether stereoisomers are different molecules.
        isotopes: whether isotopologues are; as ``stereo`` if not given.

    Returns:
        Canonical SMILES; ``""`` for a molecule of no atoms.

    Example:
        >>> alanine = Chem.MolFromSmiles("C[C@H](N)C(=O)[O-].[Na+]")
        >>> molecule_key(alanine, stereo=True), molecule_key(alanine, stereo=False)
        ('C[C@H](N)C(=O)O', 'CC(N)C(=O)O')
    """
    isotopes = stereo if isotopes is None else isotopes
    if not (stereo or isotopes or mol.HasSubstructMatch(_CHANGED) or mol.GetAtomsMatchingQuery(_MAPPED)):
        text = Chem.MolToSmiles(mol, isomericSmiles=False)
        if "." not in text:
            return text
    mol = unmapped(mol)
    if any(a.GetIsotope() or a.GetAtomicNum() == 1 for a in mol.GetAtoms()):
        mol = _unmarked(mol, isotopes)
    part = disconnected(mol)
    if len(Chem.GetMolFrags(part)) > 1:
        part = mol if why_no_molecule(mol) else largest_organic(part)
    if part.HasSubstructMatch(_CHARGED) and len(Chem.GetMolFrags(part)) == 1:
        part = _neutral(part)
    return Chem.MolToSmiles(part, isomericSmiles=stereo or isotopes)


def molecule_keys(
    smiles: Sequence[str] | np.ndarray, *, stereo: bool, label: str = "molecules", workers: int | None = None
) -> Keys:
    """``molecule_key`` of each SMILES; unreadable ones get a reason.

    Example:
        >>> keys = molecule_keys(["OCC", "CCO.Cl", "[CH3:1][CH2:2]O[Na]", "C1CC"], stereo=False)
        >>> list(keys.values), keys.reasons[3] != ""
        (['CCO', 'CCO', 'CCO', ''], True)
    """
    keys = map_molecules(partial(_key, stereo), smiles, _refused_key, seconds=ALONE, label=label, workers=workers)
    return Keys.of(keys)


def relate(first: str, second: str) -> str:
    """How two molecules of one stereo-free key differ: ``duplicate``, ``salt form``, ``isotopologue`` or other stereo.

    The first that holds: the same canonical SMILES; the same key, stereo and isotopes; the same key and stereo.

    Example:
        >>> relate("C[C@H](N)C(=O)O", "C[C@H](N)C(=O)[O-].[Na+]"), relate("C[C@H](O)F", "C[C@@H](O)F")
        ('salt form', 'stereoisomer')
    """
    with quiet():
        one, two = parse_smiles(first).mol, parse_smiles(second).mol
        if one is None or two is None:
            raise ValueError(f"cannot be read: {first if one is None else second!r}")
        if Chem.MolToSmiles(unmapped(one)) == Chem.MolToSmiles(unmapped(two)):
            return "duplicate"
        if molecule_key(one, stereo=True) == molecule_key(two, stereo=True):
            return "salt form"
        same = molecule_key(one, stereo=True, isotopes=False) == molecule_key(two, stereo=True, isotopes=False)
    return "isotopologue" if same else "stereoisomer"


def canonical_smiles(
    smiles: Sequence[str] | np.ndarray, *, label: str = "molecules", workers: int | None = None
) -> list[Written]:
    """The canonical SMILES of each text, salts and stereo as they are, without atom maps.

    Example:
        >>> found, bad, no_molecule = canonical_smiles(["O[CH2:1]C", "C(C", "C*"])
        >>> found, bad.smiles, no_molecule
        (Written(smiles='CCO', reason=''), '', Written(smiles='*C', reason='an open attachment point (*)'))
    """
    return map_molecules(
        _canonical, smiles, lambda _, why: Written("", f"{why} to write"), seconds=ALONE, label=label, workers=workers
    )


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


def reasons_of_none(smiles: Sequence[str] | np.ndarray) -> list[str]:
    """Why each text is no molecule though RDKit reads it; empty for molecules and for what cannot be read.

    Example:
        >>> reasons_of_none(["CCO", "[Na+].[Cl-]", "C(C"])
        ['', 'no organic part: it has no carbon', '']
    """
    return map_molecules(_reason_of_none, smiles, lambda *_: "", seconds=ALONE)


def first_parents(smiles: Sequence[str] | np.ndarray, *, workers: int | None = None) -> list[tuple[str, bool]]:
    """The parents by which the curated editions of datasets are frozen, and whether each has carbon.

    They are what version 1 of ``standard`` makes: metals that are drawn as bound, and atom maps, stay.
    """
    return map_molecules(_first_parent, smiles, lambda *_: ("", False), seconds=ALONE, workers=workers)


def _refused_key(_: str, reason: str) -> tuple[str, str]:
    return "", f"{reason} to identify"


@lru_cache(KEPT)
def _key(stereo: bool, text: str) -> tuple[str, str]:
    # parse_smiles captures RDKit's messages, which takes a third of reading: only where there are some
    mol = None if precheck(text) else Chem.MolFromSmiles(text)
    readable = mol is not None and mol.GetNumAtoms()
    return (molecule_key(mol, stereo=stereo), "") if readable else ("", parse_smiles(text).reason)


def _canonical(text: str) -> Written:
    mol, reason = parse_smiles(text)
    if mol is None:
        return Written("", reason)
    try:
        return Written(Chem.MolToSmiles(unmapped(mol)), why_no_molecule(mol) if is_doubtful(text) else "")
    except (RuntimeError, ValueError) as error:
        return Written("", _failed(error))


def _identity(text: str) -> Identity:
    mol, reason = parse_smiles(text)
    if mol is None:
        return Identity(reason)
    try:
        mol = unmapped(mol)
        stereo = [s.type for s in Chem.FindPotentialStereo(mol) if s.specified == _OPEN]
        return Identity(
            "",
            Chem.MolToSmiles(mol),
            molecule_key(mol, stereo=True),
            molecule_key(mol, stereo=False),
            why_no_molecule(mol) if is_doubtful(text) else "",
            any(atom.GetAtomicNum() == 6 for atom in mol.GetAtoms()),
            len(Chem.GetMolFrags(mol)) if "." in text else 1,
            stereo.count(_TETRAHEDRAL),
            stereo.count(_DOUBLE),
        )
    except (RuntimeError, ValueError) as error:
        return Identity(_failed(error))


def _reason_of_none(text: str) -> str:
    mol = parse_smiles(text).mol if is_doubtful(text) else None
    try:
        return "" if mol is None else why_no_molecule(mol)
    except (RuntimeError, ValueError):
        return ""


def _first_parent(text: str) -> tuple[str, bool]:
    mol = parse_smiles(text).mol
    if mol is None:
        return "", False
    try:
        for step in preset("standard/1").steps:
            mol = step(mol)
        return Chem.MolToSmiles(mol), any(atom.GetAtomicNum() == 6 for atom in mol.GetAtoms())
    except (RuntimeError, ValueError):
        return "", False


def _failed(error: Exception) -> str:
    return f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}"


def _unmarked(mol: Chem.Mol, isotopes: bool) -> Chem.Mol:
    mol = Chem.Mol(mol)
    for atom in [] if isotopes else mol.GetAtoms():
        atom.SetIsotope(0)
    return Chem.RemoveHs(mol)


def _neutral(mol: Chem.Mol) -> Chem.Mol:
    mol = rdMolStandardize.Uncharger(canonicalOrder=True, force=True).uncharge(mol)
    # Aromaticity and hydrogen counts are those of the charged molecule until the text is read again.
    again = parse_smiles(Chem.MolToSmiles(mol)).mol
    return mol if again is None else again
