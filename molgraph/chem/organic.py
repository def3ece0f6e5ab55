"""Check that an RDKit molecule is organic, and choose its largest organic fragment (decision 0025)."""

from __future__ import annotations

import re
from functools import cache

from rdkit import Chem
from rdkit.Chem.MolStandardize import rdMolStandardize

#: alkali and alkaline earth: never part of a drug
LIGHT_METALS = frozenset({3, 11, 19, 37, 55, 12, 20, 38, 56})
LIGHT_SYMBOLS = "Li|Na|K|Rb|Cs|Mg|Ca|Sr|Ba"
_NO_METALS = frozenset({1, 2, *range(5, 11), *range(14, 19), *range(32, 37), *range(51, 55), 85, 86})
#: a bracket whose element is none that stands in organic molecules without a doubt
_ODD = re.compile(r"\*|\[\d*(?!(?:[CNOSPHFBIcnospb]|Cl|Br|Si|Se|se)(?![a-z]))")
_CARBON = re.compile(r"C(?!l)|c")
_BRACKET = re.compile(r"\[[^\]]*\]")


def why_no_molecule(mol: Chem.Mol) -> str:
    """Why a molecule that RDKit reads is none that a medicinal chemist could make and weigh; empty where it is one.

    It is one where its largest fragment, once salts with light metals are taken apart, has carbon and no other metal
    bound to it, and where no atom is an open attachment point. So bare ions, gases, water and ammonia are none.

    Example:
        >>> [why_no_molecule(Chem.MolFromSmiles(text)) for text in ("CC(=O)O[Na]", "*CCO", "[Na+].[Cl-]")]
        ['', 'an open attachment point (*)', 'no organic part: it has no carbon']
        >>> why_no_molecule(Chem.MolFromSmiles("[Fe+2].c1cc[cH-]c1.c1cc[cH-]c1"))
        'an organometallic compound of Fe'
    """
    numbers = [atom.GetAtomicNum() for atom in mol.GetAtoms()]
    if 0 in numbers:
        return "an open attachment point (*)"
    if 6 not in numbers:
        if {*numbers} == {1}:
            return "no heavy atom"
        return "a bare ion" if len(numbers) == 1 and _charged(mol) else "no organic part: it has no carbon"
    if _NO_METALS.issuperset(numbers):
        return ""
    part = largest_organic(disconnected(mol))
    if metals := [atom.GetSymbol() for atom in part.GetAtoms() if atom.GetAtomicNum() not in _NO_METALS]:
        return f"a compound of a metal: {metals[0]} is bound to it"
    heavy = [a.GetSymbol() for a in mol.GetAtoms() if a.GetAtomicNum() not in _NO_METALS | LIGHT_METALS]
    if heavy and any(atom.GetAtomicNum() == 6 and atom.GetFormalCharge() < 0 for atom in part.GetAtoms()):
        return f"an organometallic compound of {heavy[0]}"
    return ""


def is_doubtful(text: str) -> bool:
    """Whether the molecule of a SMILES may be none: a cheap look at its characters.

    Example:
        >>> [is_doubtful(text) for text in ("CCO", "[O-][n+]1ccccc1", "ClCl", "[CoH2]", "C[*]")]
        [False, False, True, True, True]
    """
    return _ODD.search(text) is not None or _CARBON.search(_BRACKET.sub("", text)) is None


def disconnected(mol: Chem.Mol) -> Chem.Mol:
    """The molecule with light metals as ions beside it, where they are drawn as bound to anything but carbon."""
    if any(atom.GetAtomicNum() in LIGHT_METALS and atom.GetDegree() for atom in mol.GetAtoms()):
        return _disconnector().Disconnect(mol)
    return mol


def largest_organic(mol: Chem.Mol) -> Chem.Mol:
    """The largest fragment that has carbon: by atoms, weight, SMILES in order of the alphabet; any where none has."""
    return mol if len(Chem.GetMolFrags(mol)) < 2 else _organic_chooser().choose(mol)


def _charged(mol: Chem.Mol) -> bool:
    return any(atom.GetFormalCharge() for atom in mol.GetAtoms())


@cache
def _organic_chooser() -> rdMolStandardize.LargestFragmentChooser:
    return rdMolStandardize.LargestFragmentChooser(preferOrganic=True)


@cache
def _disconnector() -> rdMolStandardize.MetalDisconnector:
    disconnector = rdMolStandardize.MetalDisconnector()
    metals = LIGHT_SYMBOLS.replace("|", ",")
    disconnector.SetMetalNof(Chem.MolFromSmarts(f"[{metals}]~[#7,#8,F]"))
    disconnector.SetMetalNon(Chem.MolFromSmarts(f"[{metals}]~[B,#14,P,As,Sb,S,Se,Te,Cl,Br,I]"))
    return disconnector
