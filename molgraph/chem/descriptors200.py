"""Compute the 200 RDKit descriptors that boosted trees on public boards use, NaN where one has no value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit.Chem import Descriptors as rdkit_list

from molgraph.base.cores import cores
from molgraph.chem.bounded import TooHardError, bounded, is_hard
from molgraph.chem.descriptors import CHUNK, NAMES, PARALLEL_FROM, Descriptors, beyond, rdkit_descriptors
from molgraph.chem.smiles import parse_smiles, quiet

# What RDKit's list has gained since it held these 200, and the BCUT ones, which metals have no value of.
_LATER: tuple[str, ...] = (
    "SPS",
    "AvgIpc",
    "NumAmideBonds",
    "NumAtomStereoCenters",
    "NumBridgeheadAtoms",
    "NumHeterocycles",
)
_LATER += ("NumSpiroAtoms", "NumUnspecifiedAtomStereoCenters", "Phi")
_FUNCTIONS = {name: function for name, function in rdkit_list._descList if name not in _LATER and name[:4] != "BCUT"}
NAMES_200: tuple[str, ...] = tuple(sorted(_FUNCTIONS))
#: heavy atoms from which a descriptor is not computed: its time grows as a power of their number (Ipc is then beyond
#: float32 as well)
_LARGE = {"Ipc": 256, "BalabanJ": 400, "BertzCT": 400}
_QUICK = [j for j, name in enumerate(NAMES_200) if name in NAMES]
_SLOW = [j for j, name in enumerate(NAMES_200) if name not in NAMES]


def descriptors_200(smiles: Sequence[str], *, workers: int | None = None) -> Descriptors:
    """The 200 descriptors of RDKit's list as it stood in 2022, which MapLight uses (Notwell and Wood 2023).

    Those that ``rdkit_descriptors`` has come from there, several times as fast; RDKit computes the others. Ipc is NaN
    from 256 atoms, BalabanJ and BertzCT from 400.

    Args:
        smiles: n molecules.
        workers: processes; None takes one a core. Few molecules are done in this process.

    Returns:
        Descriptors [n, 200], by name in alphabetical order; the same for any number of workers.

    Example:
        >>> found = descriptors_200(["CCO", "C(C"])
        >>> found.x.shape, found.ok.tolist()
        ((2, 200), [True, False])
        >>> round(float(found.x[0, found.names.index("qed")]), 2)
        0.41
    """
    quick = rdkit_descriptors(smiles, workers=workers)
    x = np.full((len(smiles), len(NAMES_200)), np.nan, dtype=np.float32)
    x[:, _QUICK] = quick.x[:, [NAMES.index(NAMES_200[j]) for j in _QUICK]]
    texts = [text if ok else "" for text, ok in zip(smiles, quick.ok, strict=True)]
    chunks = [texts[i : i + CHUNK] for i in range(0, len(texts), CHUNK)]
    workers = cores() if workers is None else workers
    if workers > 1 and len(smiles) >= PARALLEL_FROM // 8:  # eight times the work a molecule of the quick ones
        from joblib import Parallel, delayed

        parts = Parallel(n_jobs=workers)(delayed(_slow)(chunk) for chunk in chunks)
    else:
        parts = [_slow(chunk) for chunk in chunks]
    if parts:
        x[:, _SLOW] = np.concatenate([part for part, _ in parts])
    reasons = quick.reasons.copy()
    late = np.array([reason for _, part in parts for reason in part], dtype=object)
    reasons[quick.ok] = late[quick.ok]
    return Descriptors(x, NAMES_200, reasons == "", reasons)


def _slow(smiles: list[str]) -> tuple[np.ndarray, list[str]]:
    """float32 [n, those that RDKit computes], and why there are none of a row."""
    x, reasons = np.full((len(smiles), len(_SLOW)), np.nan), [""] * len(smiles)
    with quiet():
        for i, text in enumerate(smiles):
            try:
                x[i] = bounded(_row, text) if is_hard(text) else _row(text)
            except TooHardError as error:
                reasons[i] = f"{error} to describe"
    x[~(np.abs(x) < np.finfo(np.float32).max)] = np.nan
    return x.astype(np.float32), reasons


def _row(text: str) -> list[float]:
    mol = parse_smiles(text).mol
    if mol is None:
        return [float("nan")] * len(_SLOW)
    left_out = beyond(mol) | {name for name, most in _LARGE.items() if mol.GetNumAtoms() >= most}
    return [float("nan") if NAMES_200[j] in left_out else _value(_FUNCTIONS[NAMES_200[j]], mol) for j in _SLOW]


def _value(function: object, mol: object) -> float:
    try:
        return float(function(mol))  # type: ignore[operator]
    except (ValueError, RuntimeError, ZeroDivisionError, OverflowError):
        return float("nan")
