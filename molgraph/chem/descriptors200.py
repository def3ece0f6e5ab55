"""Compute the 200 RDKit descriptors that boosted trees on public boards use, NaN where one has no value."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit.Chem import Descriptors as rdkit_list

from molgraph.chem.descriptors import NAMES, PARALLEL_FROM, Descriptors, beyond, described, rdkit_descriptors
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

# What RDKit's list has gained since it held these 200, and the BCUT ones, which metals have no value of.
_LATER: tuple[str, ...] = (
    "SPS",
    "AvgIpc",
    "Phi",
    "NumAmideBonds",
    "NumBridgeheadAtoms",
    "NumHeterocycles",
    "NumSpiroAtoms",
)
_LATER += ("NumAtomStereoCenters", "NumUnspecifiedAtomStereoCenters")
_FUNCTIONS = {name: function for name, function in rdkit_list._descList if name not in _LATER and name[:4] != "BCUT"}
NAMES_200: tuple[str, ...] = tuple(sorted(_FUNCTIONS))
#: heavy atoms from which a descriptor is not computed: its time grows as a power of their number (Ipc is then beyond
#: float32 as well)
_LARGE = {"Ipc": 256, "BalabanJ": 400, "BertzCT": 400}
_QUICK = [j for j, name in enumerate(NAMES_200) if name in NAMES]
_SLOW = tuple(name for name in NAMES_200 if name not in NAMES)


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
    # eight times the work a molecule of the quick ones
    slow = described(map_molecules(_row, texts, _refused, workers=workers, pays_from=PARALLEL_FROM // 8), _SLOW)
    x[:, [j for j, name in enumerate(NAMES_200) if name in _SLOW]] = slow.x
    reasons = np.where(quick.ok, slow.reasons, quick.reasons)
    return Descriptors(x, NAMES_200, reasons == "", reasons)


def _refused(_: str, reason: str) -> tuple[list[float], str]:
    return [float("nan")] * len(_SLOW), f"{reason} to describe"


def _row(text: str) -> tuple[list[float], str]:
    mol = parse_smiles(text).mol
    if mol is None:
        return [float("nan")] * len(_SLOW), ""
    left_out = beyond(mol) | {name for name, most in _LARGE.items() if mol.GetNumAtoms() >= most}
    return [float("nan") if name in left_out else _value(_FUNCTIONS[name], mol) for name in _SLOW], ""


def _value(function: object, mol: object) -> float:
    try:
        return float(function(mol))  # type: ignore[operator]
    except (ValueError, RuntimeError, ZeroDivisionError, OverflowError):
        return float("nan")
