"""Describe molecules as the metrics of generators need them: properties, BRICS fragments, scaffold, filters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rdkit import Chem
from rdkit.Chem import QED, Crippen, GraphDescriptors
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.Scaffolds import MurckoScaffold

from molgraph.chem.identity import molecule_key
from molgraph.chem.organic import is_doubtful, why_no_molecule
from molgraph.chem.parallel import KEPT, map_molecules
from molgraph.chem.quality import synthetic_accessibility
from molgraph.chem.smiles import parse_smiles, unmapped
from molgraph.chem.structural_alerts import first_alert

PARALLEL_FROM = 500  # several milliseconds a molecule: processes pay early
LARGE = 400  # heavy atoms from which BertzCT takes seconds
_COUNTS = {
    "acceptors": rd.CalcNumHBA,
    "donors": rd.CalcNumHBD,
    "rotatable": rd.CalcNumRotatableBonds,
    "aliphatic_rings": rd.CalcNumAliphaticRings,
    "aromatic_rings": rd.CalcNumAromaticRings,
}
PROPERTIES = ("logp", "sa", "qed", "weight", "bertz", "tpsa", *_COUNTS)
LEAST_RINGS = 2  # of a scaffold that counts, as in MOSES


class DrawnMolecule(NamedTuple):
    """One molecule of a sample.

    Args:
        reason: why it is no molecule; the rest is empty then, but for ``canonical`` where RDKit reads it.
        canonical: RDKit's canonical SMILES, without atom maps.
        key: what stereoisomers and salts of one molecule share (``molecule_key``).
        properties: values of ``PROPERTIES``; weight in g/mol, TPSA in square angstrom.
        fragments: SMILES of its BRICS fragments (Degen et al. 2008), one for each, repeated where they repeat.
        scaffold: SMILES of its Murcko scaffold; empty where that has fewer than two rings.
        alert: why MOSES's filters refuse it; empty where it passes.
    """

    reason: str
    canonical: str = ""
    key: str = ""
    properties: tuple[float, ...] = ()
    fragments: tuple[str, ...] = ()
    scaffold: str = ""
    alert: str = ""


def describe_drawn(smiles: Sequence[str], *, label: str = "molecules") -> list[DrawnMolecule]:
    """Describe each molecule of a sample, each different text once.

    Example:
        >>> good, bad = describe_drawn(["OCCc1ccc2ccccc2c1", "C1C"])
        >>> good.canonical, good.scaffold, round(good.properties[PROPERTIES.index("weight")], 1), good.alert
        ('OCCc1ccc2ccccc2c1', 'c1ccc2ccccc2c1', 172.2, '')
        >>> bad.reason
        "SMILES Parse Error: unclosed ring for input: 'C1C'"
    """
    return map_molecules(_described, smiles, _refused, label=label, pays_from=PARALLEL_FROM)


def _refused(_: str, why: str) -> DrawnMolecule:
    return DrawnMolecule(f"{why} to describe")


@lru_cache(KEPT)
def _described(text: str) -> DrawnMolecule:
    mol, reason = parse_smiles(text)
    if mol is None:
        return DrawnMolecule(reason)
    try:
        canonical = Chem.MolToSmiles(unmapped(mol))
        if problem := why_no_molecule(mol) if is_doubtful(text) else "":
            return DrawnMolecule(problem, canonical)
        mol = parse_smiles(canonical).mol or mol  # what is measured does not depend on how it was written
        key = molecule_key(mol, stereo=False)
        return DrawnMolecule("", canonical, key, _properties(mol), _fragments(mol), _scaffold(mol), first_alert(mol))
    except (RuntimeError, ValueError, ZeroDivisionError, OverflowError) as error:
        return DrawnMolecule(f"RDKit reads the molecule but fails on it: {' '.join(str(error).split())[:150]}")


def _properties(mol: Chem.Mol) -> tuple[float, ...]:
    bertz = float("nan") if mol.GetNumAtoms() > LARGE else GraphDescriptors.BertzCT(mol)
    values = (
        Crippen.MolLogP(mol),
        synthetic_accessibility(mol),
        QED.qed(mol),
        rd._CalcMolWt(mol),
        bertz,
        rd.CalcTPSA(mol),
    )
    return (*map(float, values), *(float(count(mol)) for count in _COUNTS.values()))


def _fragments(mol: Chem.Mol) -> tuple[str, ...]:
    return tuple(Chem.MolToSmiles(Chem.FragmentOnBRICSBonds(mol)).split("."))


def _scaffold(mol: Chem.Mol) -> str:
    scaffold = MurckoScaffold.GetScaffoldForMol(mol)
    return Chem.MolToSmiles(scaffold) if scaffold.GetRingInfo().NumRings() >= LEAST_RINGS else ""
