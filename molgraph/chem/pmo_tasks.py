"""Score molecules by the GuacaMol tasks of PMO: similarity, isomers, several properties, scaffold hops."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rdkit import Chem, DataStructs
from rdkit.Chem import QED, Crippen, Descriptors, rdFingerprintGenerator, rdMolDescriptors
from rdkit.Chem.Pharm2D import Generate, Gobbi_Pharm2D

Part = Callable[[Chem.Mol], float]  # of a task: a molecule's score, from 0 to 1

_FEATURES = rdFingerprintGenerator.GetMorganFeatureAtomInvGen()
_PRINTS: dict[str, Callable[[Chem.Mol], Any]] = {
    "ECFP4": rdFingerprintGenerator.GetMorganGenerator(2).GetSparseCountFingerprint,
    "ECFP6": rdFingerprintGenerator.GetMorganGenerator(3).GetSparseCountFingerprint,
    "FCFP4": rdFingerprintGenerator.GetMorganGenerator(2, atomInvariantsGenerator=_FEATURES).GetSparseCountFingerprint,
    "AP": rdFingerprintGenerator.GetAtomPairGenerator(maxDistance=10).GetSparseCountFingerprint,
    "PHCO": lambda mol: Generate.Gen2DFingerprint(mol, Gobbi_Pharm2D.factory),
}
_SITAGLIPTIN = "Fc1cc(c(F)cc1F)CC(N)CC(=O)N3Cc2nnc(n2CC3)C(F)(F)F"
_OSIMERTINIB = "COc1cc(N(C)CCN(C)C)c(NC(=O)C=C)cc1Nc2nccc(n2)c3cn(C)c4ccccc34"
_KINASE = "CCCOc1cc2ncnc(Nc3ccc4ncsc4c3)c2cc1S(=O)(=O)C(C)(C)C"
_QUINAZOLINE = "[#7]-c1n[c;h1]nc2[c;h1]c(-[#8])[c;h0][c;h1]c12"
_CHAIN = "[#6]-[#6]-[#6]-[#8]-[#6]~[#6]~[#6]~[#6]~[#6]-[#7]-c1ccc2ncsc2c1"


def bell(x: float, mean: float, deviation: float) -> float:
    """``exp(-((x - mean) / deviation)^2 / 2)``."""
    return float(np.exp(-0.5 * ((x - mean) / deviation) ** 2))


def similar(smiles: str, kind: str, full: float = 1.0) -> Part:
    """Tanimoto similarity of counts to a molecule, 1 from ``full`` on."""
    read = _PRINTS[kind]
    print_ = read(Chem.MolFromSmiles(smiles))
    return lambda mol: min(DataStructs.TanimotoSimilarity(print_, read(mol)) / full, 1.0)


def near(value: Part, mean: float, deviation: float) -> Part:
    """A bell around a value."""
    return lambda mol: bell(value(mol), mean, deviation)


def below(value: Part, mean: float, deviation: float) -> Part:
    """1 up to a value, half a bell above it."""
    return lambda mol: bell(max(value(mol), mean), mean, deviation)


def above(value: Part, mean: float, deviation: float) -> Part:
    """1 from a value on, half a bell below it."""
    return lambda mol: bell(min(value(mol), mean), mean, deviation)


def has(smarts: str, *, wanted: bool = True) -> Part:
    """Whether a pattern is there, or is not."""
    pattern = Chem.MolFromSmarts(smarts)
    return lambda mol: float(mol.HasSubstructMatch(pattern) == wanted)


def isomer(formula: str) -> Part:
    """The geometric mean of bells around each element's count (deviation 1) and around that of all atoms (2)."""
    wanted = {element: int(n or 1) for element, n in re.findall(r"([A-Z][a-z]?)(\d*)", formula)}

    def score(mol: Chem.Mol) -> float:
        atoms = [atom.GetSymbol() for atom in Chem.AddHs(mol).GetAtoms()]
        scores = [bell(atoms.count(element), n, 1.0) for element, n in wanted.items()]
        return geometric([*scores, bell(len(atoms), sum(wanted.values()), 2.0)])

    return score


def geometric(values: Sequence[float]) -> float:
    """The geometric mean; 0 where a value is 0."""
    return float(np.exp(np.log(values).mean())) if min(values) > 0 else 0.0


logp: Part = Crippen.MolLogP
tpsa: Part = Descriptors.TPSA


def fluorine(mol: Chem.Mol) -> int:
    """The number of fluorine atoms."""
    return sum(atom.GetSymbol() == "F" for atom in mol.GetAtoms())


def as_in_sitagliptin(value: Part, deviation: float) -> Part:
    """A bell around the value of sitagliptin."""
    return near(value, value(Chem.MolFromSmiles(_SITAGLIPTIN)), deviation)


#: those of drd2, gsk3b and jnk3 are models, and are not here
TASKS: dict[str, Callable[[], list[Part]]] = {
    "albuterol_similarity": lambda: [similar("CC(C)(C)NCC(O)c1ccc(O)c(CO)c1", "FCFP4", 0.75)],
    "amlodipine_mpo": lambda: [
        similar(r"Clc1ccccc1C2C(=C(/N/C(=C2/C(=O)OCC)COCCN)C)\C(=O)OC", "ECFP4"),
        near(rdMolDescriptors.CalcNumRings, 3, 0.5),
    ],
    "celecoxib_rediscovery": lambda: [similar("CC1=CC=C(C=C1)C1=CC(=NN1C1=CC=C(C=C1)S(N)(=O)=O)C(F)(F)F", "ECFP4")],
    "deco_hop": lambda: [
        similar(_KINASE, "PHCO", 0.85),
        has("CS([#6])(=O)=O", wanted=False),
        has("[#7]-c1ccc2ncsc2c1", wanted=False),
        has(_QUINAZOLINE),
    ],
    "fexofenadine_mpo": lambda: [
        similar("CC(C)(C(=O)O)c1ccc(cc1)C(O)CCCN2CCC(CC2)C(O)(c3ccccc3)c4ccccc4", "AP", 0.8),
        above(tpsa, 90, 10),
        below(logp, 4, 1),
    ],
    "isomers_c7h8n2o2": lambda: [isomer("C7H8N2O2")],
    "isomers_c9h10n2o2pf2cl": lambda: [isomer("C9H10N2O2PF2Cl")],
    "median1": lambda: [similar("CC1(C)C2CCC1(C)C(=O)C2", "ECFP4"), similar("CC(C)C1CCC(C)CC1O", "ECFP4")],
    "median2": lambda: [
        similar("O=C1N(CC(N2C1CC3=C(C2C4=CC5=C(OCO5)C=C4)NC6=C3C=CC=C6)=O)C", "ECFP6"),
        similar("CCCC1=NN(C2=C1N=C(NC2=O)C3=C(C=CC(=C3)S(=O)(=O)N4CCN(CC4)C)OCC)C", "ECFP6"),
    ],
    "mestranol_similarity": lambda: [
        similar("COc1ccc2[C@H]3CC[C@@]4(C)[C@@H](CC[C@@]4(O)C#C)[C@@H]3CCc2c1", "AP", 0.75)
    ],
    "osimertinib_mpo": lambda: [
        similar(_OSIMERTINIB, "FCFP4", 0.8),
        below(similar(_OSIMERTINIB, "ECFP6"), 0.85, 0.1),
        above(tpsa, 100, 10),
        below(logp, 1, 1),
    ],
    "perindopril_mpo": lambda: [
        similar("O=C(OCC)C(NC(C(=O)N1C(C(=O)O)CC2CCCCC12)C)CCC", "ECFP4"),
        near(rdMolDescriptors.CalcNumAromaticRings, 2, 0.5),
    ],
    "qed": lambda: [QED.qed],
    "ranolazine_mpo": lambda: [
        similar("COc1ccccc1OCC(O)CN2CCN(CC(=O)Nc3c(C)cccc3C)CC2", "AP", 0.7),
        above(logp, 7, 1),
        above(tpsa, 95, 20),
        near(fluorine, 1, 1),
    ],
    "scaffold_hop": lambda: [similar(_KINASE, "PHCO", 0.75), has(_CHAIN), has(_QUINAZOLINE, wanted=False)],
    "sitagliptin_mpo": lambda: [
        near(similar(_SITAGLIPTIN, "ECFP4"), 0, 0.1),
        as_in_sitagliptin(logp, 0.2),
        as_in_sitagliptin(tpsa, 5),
        isomer("C16H15F6N5O"),
    ],
    "thiothixene_rediscovery": lambda: [similar("CN(C)S(=O)(=O)c1ccc2Sc3ccccc3C(=CCCN4CCN(C)CC4)c2c1", "ECFP4")],
    "troglitazone_rediscovery": lambda: [similar("Cc1c(C)c2OC(C)(COc3ccc(CC4SC(=O)NC4=O)cc3)CCc2c(C)c1O", "ECFP4")],
    "valsartan_smarts": lambda: [
        has("CN(C=O)Cc1ccc(c2ccccc2)cc1"),
        as_in_sitagliptin(logp, 0.2),
        as_in_sitagliptin(tpsa, 5),
        as_in_sitagliptin(Descriptors.BertzCT, 30),
    ],
    "zaleplon_mpo": lambda: [
        similar("O=C(C)N(CC)C1=CC=CC(C2=CC=NC3=C(C=NN23)C#N)=C1", "ECFP4"),
        isomer("C19H17N3O2"),
    ],
}
_SUMS = ("deco_hop", "scaffold_hop")  # whose parts have an arithmetic mean; those of others a geometric one


class Task:
    """A task, which makes its fingerprints when it is made.

    Args:
        name: one of ``TASKS``.

    Example:
        >>> Task("median1")(Chem.MolFromSmiles("CC(C)C1CCC(C)CC1O")) > 0.2
        True
    """

    def __init__(self, name: str) -> None:
        self.parts, self.arithmetic = TASKS[name](), name in _SUMS

    def __call__(self, mol: Chem.Mol) -> float:
        """The mean of the parts."""
        values = [part(mol) for part in self.parts]
        return float(np.mean(values)) if self.arithmetic else geometric(values)
