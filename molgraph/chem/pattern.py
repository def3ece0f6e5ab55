"""Count the matches of a SMARTS pattern in molecules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, partial

from rdkit import Chem

from molgraph.base.errors import BadValueError
from molgraph.chem.bounded import ALONE
from molgraph.chem.parallel import map_molecules
from molgraph.chem.smiles import parse_smiles

MOST = 1000  # matches that are counted


def check_pattern(smarts: str) -> str:
    """The pattern, where RDKit reads it.

    Raises:
        BadValueError: it cannot be read.
    """
    if not smarts.strip() or _query(smarts) is None:
        raise BadValueError(f"the SMARTS {smarts!r} cannot be read", hint="as in [CX3](=O)[NX3] for an amide")
    return smarts


def count_matches(smarts: str, smiles: Sequence[str]) -> list[tuple[int, str]]:
    """The number of matches in each molecule, each set of atoms once, and why it has none: empty where it has.

    Example:
        >>> count_matches("[OX2H]", ["OCCO", "CC", "C(C"])[:2]
        [(2, ''), (0, '')]
    """
    check_pattern(smarts)
    return map_molecules(partial(_count, smarts), list(smiles), lambda _, why: (0, why), seconds=ALONE)


def _count(smarts: str, text: str) -> tuple[int, str]:
    parsed = parse_smiles(text)
    if parsed.mol is None:
        return 0, parsed.reason
    return len(parsed.mol.GetSubstructMatches(_query(smarts), maxMatches=MOST)), ""


@cache
def _query(smarts: str) -> Chem.Mol | None:
    return Chem.MolFromSmarts(smarts)
