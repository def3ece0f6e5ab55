"""Compute properties of molecules that searches push or bound: drug-likeness, logP, synthetic accessibility, counts."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence
from functools import cache, partial
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from rdkit import Chem
from rdkit.Chem import QED, Crippen, Descriptors
from rdkit.Chem import rdMolDescriptors as rd

from molgraph.base.errors import MissingFileError
from molgraph.chem.bounded import ALONE
from molgraph.chem.parallel import map_molecules
from molgraph.chem.rdkit_data import contrib_dir
from molgraph.chem.smiles import parse_smiles


class Values(NamedTuple):
    """A number for each molecule of a list.

    Args:
        value: float64 [n], NaN where there is none.
        reason: object [n], why there is none; empty where there is one.
    """

    value: np.ndarray
    reason: np.ndarray


def synthetic_accessibility(mol: Chem.Mol) -> float:
    """How hard a molecule is to make, from 1 (easy) to 10 (Ertl and Schuffenhauer 2009, J. Cheminf. 1:8)."""
    return float(_sascorer()(mol))


def cycle_penalty(mol: Chem.Mol) -> float:
    """By how many atoms the largest ring exceeds six (Gomez-Bombarelli et al. 2018).

    Rings are those of RDKit's smallest set; published code takes a cycle basis that depends on the order of atoms,
    which finds other rings in bridged systems (6 of the 800 molecules of the JT-VAE's test).
    """
    return float(max((len(ring) - 6 for ring in mol.GetRingInfo().AtomRings() if len(ring) > 6), default=0))


def penalized_logp(mol: Chem.Mol) -> float:
    """``logP(m) - SA(m) - cycle(m)`` in the units of its terms."""
    return float(Crippen.MolLogP(mol)) - synthetic_accessibility(mol) - cycle_penalty(mol)


#: mean and standard deviation of logP, -SA and -cycle over ZINC-250k, as published with the GrammarVAE and the JT-VAE
ZINC_SCALES = ((2.4570953, 1.4343244), (-3.0525811, 0.8335207), (-0.0485697, 0.2860212))


def penalized_logp_zinc(mol: Chem.Mol) -> float:
    """The same with each term brought to mean 0 and deviation 1 over ZINC-250k; the JT-VAE's top-3 table is in it.

    ``(logP - 2.457) / 1.434 + (-SA + 3.053) / 0.834 + (-cycle + 0.049) / 0.286`` (Kusner et al. 2017, Jin et al. 2018).
    """
    terms = float(Crippen.MolLogP(mol)), -synthetic_accessibility(mol), -cycle_penalty(mol)
    return sum((term - mean) / deviation for term, (mean, deviation) in zip(terms, ZINC_SCALES, strict=True))


PROPERTIES: MappingProxyType[str, Callable[[Chem.Mol], float]] = MappingProxyType(
    {
        "qed": QED.qed,
        "logp": Crippen.MolLogP,
        "sa": synthetic_accessibility,
        "cycle_penalty": cycle_penalty,
        "penalized_logp": penalized_logp,
        "penalized_logp_zinc": penalized_logp_zinc,
        "mw": Descriptors.MolWt,
        "tpsa": rd.CalcTPSA,
        "hbd": rd.CalcNumHBD,
        "hba": rd.CalcNumHBA,
        "rotatable_bonds": rd.CalcNumRotatableBonds,
        "rings": rd.CalcNumRings,
        "heavy_atoms": Chem.Mol.GetNumHeavyAtoms,
        "charge": Chem.GetFormalCharge,
    }
)


def measure(name: str, smiles: Sequence[str]) -> Values:
    """One of ``PROPERTIES`` of each molecule.

    Args:
        name: of the property.
        smiles: n molecules.

    Raises:
        MissingFileError: RDKit's file of fragment scores, which SA needs, is missing.

    Example:
        >>> found = measure("sa", ["CCO", "C(C"])
        >>> found.value.round(2).tolist(), found.reason.tolist()[0]
        ([1.98, nan], '')
    """
    if name in ("sa", "penalized_logp", "penalized_logp_zinc"):
        _sascorer()  # what is missing is one error, not a reason of every row
    results = map_molecules(
        partial(_value, name), list(smiles), lambda _, why: (np.nan, f"{why} to compute {name} of"), seconds=ALONE
    )
    return Values(np.array([v for v, _ in results], dtype=np.float64), np.array([r for _, r in results], dtype=object))


def _value(name: str, text: str) -> tuple[float, str]:
    mol, reason = parse_smiles(text)
    if mol is None:
        return float("nan"), reason
    try:
        value = float(PROPERTIES[name](mol))
    except (RuntimeError, ValueError, ZeroDivisionError) as error:
        return float("nan"), f"{name} cannot be computed: {' '.join(str(error).split())[:150]}"
    return value, "" if np.isfinite(value) else f"{name} is {value}"


@cache
def _sascorer() -> Callable[[Chem.Mol], float]:
    """The scorer that RDKit ships among its contributions; it reads a file of fragment scores of RDKit's own."""
    folder = contrib_dir()
    file = None if folder is None else folder / "SA_Score" / "sascorer.py"
    if file is None or not file.is_file():
        raise MissingFileError(
            "this installation of RDKit lacks Contrib/SA_Score, which synthetic accessibility needs",
            hint="install the rdkit of PyPI or conda-forge",
        )
    spec = importlib.util.spec_from_file_location("molgraph_sascorer", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    score: Callable[[Chem.Mol], float] = module.calculateScore
    return score
