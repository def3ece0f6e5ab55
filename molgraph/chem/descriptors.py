"""SMILES in; RDKit's two-dimensional descriptors out, one row a molecule, NaN where one has no value."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from rdkit import Chem
from rdkit.Chem import rdMolDescriptors as rd
from rdkit.Chem.EState import EState, EState_VSA

from molgraph.chem.smiles import parse_smiles, quiet

PARALLEL_FROM = 4_000  # below this, starting processes costs more than they save
CHUNK = 1_000

# One C++ call a value. Left out of RDKit's list, on purpose: the 85 fragment counts (fr_*: Morgan bits say as
# much), qed, BertzCT, SPS, Ipc, AvgIpc, BalabanJ, Chi0, Chi1, the counts of electrons and FpDensity* (together
# they cost five times what is kept; Ipc also overflows float32), BCUT2D_* and *PartialCharge (no value, or an
# error, for metals), and stereo-centre counts (the graph model does not see stereo either).
_SINGLE: dict[str, Callable[[Chem.Mol], float]] = {
    "MolWt": rd._CalcMolWt,
    "TPSA": rd.CalcTPSA,
    "LabuteASA": rd.CalcLabuteASA,
    "FractionCSP3": rd.CalcFractionCSP3,
    "HeavyAtomCount": lambda mol: mol.GetNumHeavyAtoms(),
    "NHOHCount": rd.CalcNumLipinskiHBD,
    "NOCount": rd.CalcNumLipinskiHBA,
    "NumHAcceptors": rd.CalcNumHBA,
    "NumHDonors": rd.CalcNumHBD,
    "NumHeteroatoms": rd.CalcNumHeteroatoms,
    "NumRotatableBonds": rd.CalcNumRotatableBonds,
    "NumAmideBonds": rd.CalcNumAmideBonds,
    "RingCount": rd.CalcNumRings,
    "NumHeterocycles": rd.CalcNumHeterocycles,
    "NumAromaticRings": rd.CalcNumAromaticRings,
    "NumAromaticCarbocycles": rd.CalcNumAromaticCarbocycles,
    "NumAromaticHeterocycles": rd.CalcNumAromaticHeterocycles,
    "NumAliphaticRings": rd.CalcNumAliphaticRings,
    "NumAliphaticCarbocycles": rd.CalcNumAliphaticCarbocycles,
    "NumAliphaticHeterocycles": rd.CalcNumAliphaticHeterocycles,
    "NumSaturatedRings": rd.CalcNumSaturatedRings,
    "NumSaturatedCarbocycles": rd.CalcNumSaturatedCarbocycles,
    "NumSaturatedHeterocycles": rd.CalcNumSaturatedHeterocycles,
    "NumSpiroAtoms": rd.CalcNumSpiroAtoms,
    "NumBridgeheadAtoms": rd.CalcNumBridgeheadAtoms,
    "HallKierAlpha": rd.CalcHallKierAlpha,
    "Kappa1": rd.CalcKappa1,
    "Kappa2": rd.CalcKappa2,
    "Kappa3": rd.CalcKappa3,
    "Phi": rd.CalcPhi,
    **{f"Chi{i}{kind}": getattr(rd, f"CalcChi{i}{kind}") for kind in "nv" for i in range(5)},
}


def _crippen(mol: Chem.Mol) -> Sequence[float]:
    return rd.CalcCrippenDescriptors(mol)


def _estate(mol: Chem.Mol) -> Sequence[float]:
    states = EState.EStateIndices(mol)
    sizes = np.abs(states)
    return states.max(), states.min(), sizes.max(), sizes.min()


# One call, several values.
_SEVERAL: tuple[tuple[tuple[str, ...], Callable[[Chem.Mol], Sequence[float]]], ...] = (
    (("MolLogP", "MolMR"), _crippen),
    (tuple(f"SlogP_VSA{i}" for i in range(1, 13)), rd.SlogP_VSA_),
    (tuple(f"SMR_VSA{i}" for i in range(1, 11)), rd.SMR_VSA_),
    (tuple(f"PEOE_VSA{i}" for i in range(1, 15)), rd.PEOE_VSA_),
    (("MaxEStateIndex", "MinEStateIndex", "MaxAbsEStateIndex", "MinAbsEStateIndex"), _estate),
    (tuple(f"EState_VSA{i}" for i in range(1, 12)), EState_VSA.EState_VSA_),
    (tuple(f"VSA_EState{i}" for i in range(1, 11)), EState_VSA.VSA_EState_),
)

NAMES: tuple[str, ...] = (*_SINGLE, *(name for names, _ in _SEVERAL for name in names))


@dataclass(frozen=True)
class Descriptors:
    """Descriptors of a list of SMILES.

    Args:
        x: float32 [n, k]; NaN where a descriptor has no finite value, and in rows that could not be read.
        names: the k names, RDKit's own.
        ok: bool [n]: rows that could be read.
        reasons: object array [n]: one line where a row could not be read, else empty.
    """

    x: np.ndarray
    names: tuple[str, ...]
    ok: np.ndarray
    reasons: np.ndarray


def rdkit_descriptors(smiles: Sequence[str], *, workers: int | None = None) -> Descriptors:
    """RDKit's two-dimensional descriptors that are cheap and defined for every molecule (see ``NAMES``).

    Args:
        smiles: n molecules.
        workers: processes; None takes one a core where there are many molecules, else one.

    Returns:
        Descriptors, one row for each SMILES, in order; the same for any number of workers.

    Example:
        >>> found = rdkit_descriptors(["CCO", "C(C"])
        >>> found.x.shape, found.ok.tolist()
        ((2, 103), [True, False])
        >>> round(float(found.x[0, found.names.index("MolWt")]), 2)
        46.07
    """
    values = list(smiles)
    workers = _cores() if workers is None else workers
    if workers > 1 and len(values) >= PARALLEL_FROM:
        from joblib import Parallel, delayed  # loky: safe in scripts without a main guard, unlike multiprocessing

        chunks = [values[i : i + CHUNK] for i in range(0, len(values), CHUNK)]
        parts = Parallel(n_jobs=workers)(delayed(_compute)(chunk) for chunk in chunks)
    else:
        parts = [_compute(values)]
    x = np.concatenate([part[0] for part in parts])
    reasons = np.concatenate([part[1] for part in parts])
    return Descriptors(x, NAMES, reasons == "", reasons)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _compute(smiles: list[str]) -> tuple[np.ndarray, np.ndarray]:
    x = np.full((len(smiles), len(NAMES)), np.nan)
    reasons = np.full(len(smiles), "", dtype=object)
    with quiet():
        for i, text in enumerate(smiles):
            mol, reasons[i] = parse_smiles(text)
            if mol is not None:
                x[i] = _row(mol)
    x[~(np.abs(x) < np.finfo(np.float32).max)] = np.nan
    return x.astype(np.float32), reasons


def _row(mol: Chem.Mol) -> list[float]:
    row: list[Any] = [function(mol) for function in _SINGLE.values()]
    for names, function in _SEVERAL:
        try:
            row.extend(function(mol))
        except (ValueError, RuntimeError, ZeroDivisionError):  # an element that a model has no parameters for
            row.extend([np.nan] * len(names))
    return row
