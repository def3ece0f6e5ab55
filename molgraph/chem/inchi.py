"""Compute the InChIKeys of SMILES, to compare molecules however they are written."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit import Chem

from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles


def inchikeys(smiles: Sequence[str] | np.ndarray) -> list[str]:
    """The standard InChIKey of each molecule; empty where it cannot be read.

    Example:
        >>> inchikeys(["CCO", "OCC", "C(C"])
        ['LFQSCWFLJHTTHZ-UHFFFAOYSA-N', 'LFQSCWFLJHTTHZ-UHFFFAOYSA-N', '']
    """
    return map_molecules(_key, smiles, _refused)


def _key(smiles: str) -> str:
    mol = parse_smiles(smiles).mol
    return "" if mol is None else str(Chem.MolToInchiKey(mol))


def _refused(_: str, __: str) -> str:
    return ""
