"""Compute all 217 descriptors of RDKit's list for SMILES, NaN where one has no value."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from rdkit.Chem import Descriptors as rdkit_list

from molgraph.chem.descriptors import PARALLEL_FROM, Descriptors, described
from molgraph.chem.descriptors200 import NAMES_200, descriptors_200
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

_FUNCTIONS = {name: function for name, function in rdkit_list._descList if name not in NAMES_200}
_MORE = tuple(_FUNCTIONS)
NAMES_217: tuple[str, ...] = (*NAMES_200, *_MORE)
MAX_ATOMS = 256  # from so many, the time of AvgIpc and of BCUT's eigenvalues is that of thousands of molecules


def descriptors_217(smiles: Sequence[str], *, workers: int | None = None) -> Descriptors:
    """RDKit's whole list, as in ``rdkit.Chem.Descriptors.descList`` of 2025: ``NAMES_217``.

    Args:
        smiles: n molecules.
        workers: processes; None takes one a core. Few molecules are done in this process.

    Returns:
        Descriptors [n, 217]; the same for any number of workers.

    Example:
        >>> found = descriptors_217(["CCO", "C(C"])
        >>> found.x.shape, found.ok.tolist(), round(float(found.x[0, found.names.index("Phi")]), 2)
        ((2, 217), [True, False], 1.93)
    """
    most = descriptors_200(smiles, workers=workers)
    texts = [text if ok else "" for text, ok in zip(smiles, most.ok, strict=True)]
    more = described(map_molecules(_row, texts, _refused, workers=workers, pays_from=PARALLEL_FROM // 2), _MORE)
    return Descriptors(np.concatenate([most.x, more.x], axis=1), NAMES_217, most.ok, most.reasons)


def _refused(_: str, reason: str) -> tuple[list[float], str]:
    return [math.nan] * len(_MORE), reason


def _row(text: str) -> tuple[list[float], str]:
    mol = parse_smiles(text).mol
    if mol is None or mol.GetNumAtoms() >= MAX_ATOMS:
        return [math.nan] * len(_MORE), ""
    values = []
    for function in _FUNCTIONS.values():
        try:
            values.append(float(function(mol)))
        except (ValueError, RuntimeError, ZeroDivisionError, OverflowError):  # BCUT has no charges of metals
            values.append(math.nan)
    return values, ""
