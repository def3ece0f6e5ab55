"""Find the 85 functional groups of ``rdkit.Chem.Fragments`` in SMILES."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from rdkit.Chem import Fragments

from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

_FUNCTIONS = {name: getattr(Fragments, name) for name in sorted(vars(Fragments)) if name.startswith("fr_")}
GROUPS: tuple[str, ...] = tuple(_FUNCTIONS)
#: what each group is in words
WORDS: tuple[str, ...] = tuple(
    " ".join((_FUNCTIONS[name].__doc__ or name).strip().removeprefix("Number of ").split()) for name in GROUPS
)
PAYS_FROM = 2_000  # molecules; below, starting processes costs more than it saves


def functional_groups(smiles: Sequence[str], *, workers: int | None = None) -> np.ndarray:
    """Whether each group occurs.

    Args:
        smiles: n molecules.
        workers: processes; None takes one a core. Few molecules are done in this process.

    Returns:
        float32 [n, 85]: 1 where ``Fragments.fr_NAME`` counts one or more, in the order of ``GROUPS``; NaN in rows
        that cannot be read.

    Example:
        >>> found = functional_groups(["CCO", "C(C"])
        >>> [name for name, there in zip(GROUPS, found[0]) if there], bool(np.isnan(found[1]).all())
        (['fr_Al_OH', 'fr_Al_OH_noTert'], True)
    """
    rows = map_molecules(_row, smiles, _refused, label="functional groups", workers=workers, pays_from=PAYS_FROM)
    return np.array(rows, np.float32).reshape(len(smiles), len(GROUPS))


def _refused(_: str, reason: str) -> list[float]:
    return [np.nan] * len(GROUPS)


def _row(text: str) -> list[float]:
    mol = parse_smiles(text).mol
    if mol is None:
        return [np.nan] * len(GROUPS)
    return [float(function(mol) > 0) for function in _FUNCTIONS.values()]
