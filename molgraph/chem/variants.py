"""Generate equivalent SMILES (atom order, hydrogens, salt, charge, tautomer) and small changes of a molecule."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Literal, NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem.MolStandardize import rdMolStandardize

from molgraph.chem.atom_order import shuffled_smiles
from molgraph.chem.bounded import is_hard
from molgraph.chem.graph_edits import mutate
from molgraph.chem.smiles import parse_smiles, quiet

MAX_ATOMS = 70  # heavy atoms of a molecule whose tautomers are written, and of one that is changed
COUNTERIONS = ("Cl", "Br", "[Na+].[Cl-]", "[Na+].[Br-]")
ACID = Chem.MolFromSmarts("[OX2H1;$(OC=O),$(OS(=O)=O),$(OP=O)]")
AMINE = Chem.MolFromSmarts("[NX3;+0;!$(N~[!#6]);!$(N-[!#6;!#1]);!$(N-[#6]=,#,:*)]")
ANION, CATION = Chem.MolFromSmarts("[O-;$(OC=O),$(OS(=O)=O),$(OP=O)]"), Chem.MolFromSmarts("[N+;!H0;X4]")
CUT = Chem.MolFromSmarts("[!#1]-!@[!#1]")
Writer = Callable[[str, np.random.Generator], str]


class Change(NamedTuple):
    """A way to write a molecule anew.

    Args:
        write: ``SMILES, rng -> SMILES``; empty where this molecule has no such variant.
        should: whether a property usually stays, as the molecule is the same substance, or may change.
    """

    write: Writer
    should: Literal["stay", "change"]


def reordered(text: str, rng: np.random.Generator) -> str:
    """The atoms in a random order."""
    return shuffled_smiles(text, rng)


def with_hydrogens(text: str, rng: np.random.Generator) -> str:
    """Every hydrogen as an atom of its own.

    Example:
        >>> with_hydrogens("CO", np.random.default_rng(0))
        '[H]OC([H])([H])[H]'
    """
    mol = parse_smiles(text).mol
    return "" if mol is None else Chem.MolToSmiles(Chem.AddHs(mol))


def salted(text: str, rng: np.random.Generator) -> str:
    """With a small inorganic acid or salt beside it; for two heavy atoms or more."""
    mol = parse_smiles(text).mol
    if mol is None or mol.GetNumHeavyAtoms() < 2:
        return ""
    return f"{text.split()[0]}.{COUNTERIONS[rng.integers(len(COUNTERIONS))]}"  # a name may stand after the SMILES


def recharged(text: str, rng: np.random.Generator) -> str:
    """An acid without its proton or an aliphatic amine with one more, or a charged one made neutral.

    Example:
        >>> [recharged(text, np.random.default_rng(0)) for text in ("CC(=O)O", "C[NH3+]", "c1ccncc1")]
        ['CC(=O)[O-]', 'CN', '']
    """
    mol = parse_smiles(text).mol
    if mol is None:
        return ""
    sites = [(i, step) for pattern, step in ((ACID, -1), (AMINE, 1), (ANION, 1), (CATION, -1))
             for (i,) in mol.GetSubstructMatches(pattern)]  # fmt: skip
    if not sites:
        return ""
    place, step = sites[rng.integers(len(sites))]
    atom, n = mol.GetAtomWithIdx(place), mol.GetAtomWithIdx(place).GetTotalNumHs()
    atom.SetFormalCharge(atom.GetFormalCharge() + step)
    atom.SetNoImplicit(True)
    atom.SetNumExplicitHs(n + step)
    return _written(mol)


@cache
def _tautomers() -> rdMolStandardize.TautomerEnumerator:
    enumerator = rdMolStandardize.TautomerEnumerator()
    enumerator.SetMaxTautomers(16), enumerator.SetMaxTransforms(64)
    enumerator.SetRemoveSp3Stereo(False), enumerator.SetRemoveBondStereo(False)
    return enumerator


def tautomer(text: str, rng: np.random.Generator) -> str:
    """Another tautomer by RDKit's rules.

    Example:
        >>> tautomer("Oc1ccccn1", np.random.default_rng(0)), tautomer("CCC", np.random.default_rng(0))
        ('O=c1cccc[nH]1', '')
    """
    mol = parse_smiles(text).mol
    if mol is None or mol.GetNumHeavyAtoms() > MAX_ATOMS:
        return ""
    canonical = Chem.MolToSmiles(mol)
    others = sorted({Chem.MolToSmiles(other) for other in _tautomers().Enumerate(mol)} - {canonical})
    others = [other for other in others if parse_smiles(other).mol is not None]
    return others[rng.integers(len(others))] if others else ""


def restereoed(text: str, rng: np.random.Generator) -> str:
    """One stereocentre inverted, or one double bond turned.

    Example:
        >>> [restereoed(text, np.random.default_rng(0)) for text in ("C[C@H](N)O", "F/C=C/F", "CCO")]
        ['C[C@@H](N)O', 'F/C=C\\\\F', '']
    """
    mol = parse_smiles(text).mol
    if mol is None:
        return ""
    turned = {Chem.BondStereo.STEREOE: Chem.BondStereo.STEREOZ, Chem.BondStereo.STEREOZ: Chem.BondStereo.STEREOE}
    sites: list[Chem.Atom | Chem.Bond] = [a for a in mol.GetAtoms() if a.HasProp("_CIPCode")]
    sites += [bond for bond in mol.GetBonds() if bond.GetStereo() in turned]
    if not sites:
        return ""
    site = sites[rng.integers(len(sites))]
    if isinstance(site, Chem.Atom):
        site.InvertChirality()
        return _written(mol)
    for bond in mol.GetBonds():  # the directions of single bonds are those before
        bond.SetBondDir(Chem.BondDir.NONE)
    site.SetStereo(turned[site.GetStereo()])
    return Chem.MolToSmiles(mol)


def edited(text: str, rng: np.random.Generator) -> str:
    """One atom, bond or ring changed."""
    return mutate(text, rng, max_atoms=MAX_ATOMS)


def cropped(text: str, rng: np.random.Generator) -> str:
    """The larger part of the molecule after a cut through one of its single bonds outside rings.

    Example:
        >>> cropped("CCc1ccccc1", np.random.default_rng(0)) in ("Cc1ccccc1", "c1ccccc1")
        True
    """
    mol = parse_smiles(text).mol
    bonds = mol.GetSubstructMatches(CUT) if mol is not None else ()
    if mol is None or not bonds:
        return ""
    bond = mol.GetBondBetweenAtoms(*bonds[rng.integers(len(bonds))])
    parts = Chem.GetMolFrags(Chem.FragmentOnBonds(mol, [bond.GetIdx()], addDummies=False), asMols=True)
    return Chem.MolToSmiles(max(parts, key=lambda part: part.GetNumHeavyAtoms()))


def _written(mol: Chem.Mol) -> str:
    """Canonical SMILES of a changed graph; empty where it is no molecule."""
    try:
        Chem.SanitizeMol(mol)
        Chem.AssignStereochemistry(mol, cleanIt=True, force=True)
    except (ValueError, RuntimeError):
        return ""
    return Chem.MolToSmiles(mol)


CHANGES = {
    "order": Change(reordered, "stay"),
    "hydrogens": Change(with_hydrogens, "stay"),
    "salt": Change(salted, "stay"),
    "charge": Change(recharged, "stay"),
    "tautomer": Change(tautomer, "stay"),
    "stereo": Change(restereoed, "change"),
    "edit": Change(edited, "change"),
    "crop": Change(cropped, "change"),
}


def variant(name: str, text: str, rng: np.random.Generator) -> str:
    """A variant of a molecule by the name of its change; empty where it has none.

    A variant has another text than the molecule, and a changed one is another molecule.

    Args:
        name: ``order``, ``hydrogens``, ``salt``, ``charge``, ``tautomer`` (the same substance); ``stereo``, ``edit``,
            ``crop`` (another one).
        text: SMILES; one that cannot be read, or for which RDKit may need long, has no variant.
        rng: of the choice among several.

    Example:
        >>> variant("salt", "CCN", np.random.default_rng(1)), variant("charge", "CCN", np.random.default_rng(1))
        ('CCN.Br', 'CC[NH3+]')
    """
    if not text or is_hard(text):
        return ""
    change = CHANGES[name]
    with quiet():
        try:
            form = change.write(text, rng)
        except (ValueError, RuntimeError):
            return ""
        same = form == text or (change.should == "change" and form and Chem.CanonSmiles(form) == Chem.CanonSmiles(text))
    return "" if same else form
