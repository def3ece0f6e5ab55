"""Recognise columns of SMILES and of ids by their names, and look columns up by name."""

from __future__ import annotations

import re
from collections.abc import Sequence

from molgraph.base.errors import MissingColumnError, nearest

SMILES_NAMES = frozenset(
    f"{before}{word}{after}"
    for word in ("smiles", "smile", "smi", "cxsmiles")
    for before in ("", "canonical", "isomeric", "can", "iso", "rdkit", "standardized", "standardised", "curated")
    for after in ("", "string", "canonical", "isomeric")
) | {
    f"{thing}{word}"
    for thing in ("mol", "molecule", "structure", "drug", "compound", "ligand")
    for word in ("", "smiles")
}
ID_NAMES = frozenset(["id", "molid", "moleculeid", "compoundid", "drugid", "identifier"])
#: names of ids that count where there is none of the others
MORE_ID_NAMES = frozenset(
    ["moleculename", "compoundname", "moleculechemblid", "chemblid", "cmpdid", "cpdid", "substanceid", "compoundnumber"]
)
_OPTION_OF = {"SMILES": "smiles", "sequences": "sequence", "geometries": "geometry", "reactions": "reaction"}


def plain(name: str) -> str:
    """A column name in lower case, letters and digits alone."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def is_smiles_name(name: str) -> bool:
    """Whether a column of that name is likely to hold SMILES.

    Example:
        >>> [is_smiles_name(n) for n in ("Canonical_SMILES", "y")]
        [True, False]
    """
    return plain(name) in SMILES_NAMES


def find_id(names: Sequence[str], taken: Sequence[str]) -> str | None:
    """The only column with an id's name that serves for nothing else, or None."""
    for known in (ID_NAMES, MORE_ID_NAMES):
        if columns := [n for n in names if plain(n) in known and n not in taken]:
            return columns[0] if len(columns) == 1 else None
    return None


def resolve(name: str, names: Sequence[str], what: str) -> str:
    """The column that a person means: exactly that name, or the only one that differs by case or blanks."""
    if name in names:
        return name
    alike = [n for n in names if n.strip().lower() == str(name).strip().lower()]
    if len(alike) == 1:
        return alike[0]
    hint = nearest(str(name), names)[:500]
    if option := _OPTION_OF.get(what):
        hint += f"\nthe column that holds them is named by --{option} COLUMN (in Python {option}=...)"
    raise MissingColumnError(f"no column {name!r} for the {what}", hint=hint)
