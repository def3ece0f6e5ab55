"""Guess the role of each column from its name and a sample of rows, or ask clearly."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.errors import AmbiguousColumnError, FormatError, MissingColumnError, nearest
from molgraph.chem.smiles import parse_smiles

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
_LOGARITHM = re.compile(r"p[A-Z]|p_|pchembl|[lL]og|ln_")  # pIC50, pKi, logD, ...
MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "-")
_NAMES = {
    "relation": ("relation", "operator", "qualifier", "modifier", "relationship"),
    "unit": ("unit", "units", "uom"),
}
_BEFORE = ("", "standard", "published", "activity", "value")  # such a name, where it is not a target's own
Beside = Mapping[str, Mapping[str, str]]  # target -> "relation", "unit" or "shared unit" -> column
CORRECT = "correct the cell, or leave it empty where there is no value"
_SHARE = 0.8  # of the sampled cells must be readable molecules
_SAMPLED = 50
_PEPTIDE, _PROTEIN, _LETTERS = (
    20,
    50,
    8,
)  # residues from which on a text looks like a sequence, or is one; kinds of them


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


OPTION_OF = {"SMILES": "smiles", "sequences": "sequence", "geometries": "geometry", "reactions": "reaction"}


def resolve(name: str, names: Sequence[str], what: str) -> str:
    """The column that a person means: exactly that name, or the only one that differs by case or blanks."""
    if name in names:
        return name
    alike = [n for n in names if n.strip().lower() == str(name).strip().lower()]
    if len(alike) == 1:
        return alike[0]
    hint = nearest(str(name), names)[:500]
    if option := OPTION_OF.get(what):
        hint += f"\nthe column that holds them is named by --{option} COLUMN (in Python {option}=...)"
    raise MissingColumnError(f"no column {name!r} for the {what}", hint=hint)


def find_smiles(names: Sequence[str], sample: pa.Table, taken: Sequence[str] = (), needed: bool = True) -> str:
    """The column that holds SMILES: by its name, else by values that parse.

    Args:
        names: all columns.
        sample: the first rows.
        taken: columns that a person named for something else.
        needed: whether none is an error, and not an empty name.
    """
    free = [n for n in names if n not in taken]
    named = [n for n in free if is_smiles_name(n)]
    for candidates in ([n for n in named if plain(n) == "smiles"], named):
        if len(candidates) == 1 and _share_readable(sample, candidates[0]) > 0:
            return candidates[0]
    found = [n for n in named or free if _holds_molecules(sample, n)]
    if not found and named:
        found = [n for n in free if _holds_molecules(sample, n)] or (named if len(named) == 1 else [])
    if len(found) == 1:
        if not named and parse_smiles(found[0]).mol is not None:  # its name would be lost as a row
            raise FormatError(
                f"the first line seems to be a molecule ({found[0][:60]}), not a header",
                hint="put a line of column names before it, such as smiles,y; or, if it is a name: --smiles NAME",
            )
        return found[0]
    if found:
        raise AmbiguousColumnError(
            f"several columns hold SMILES: {', '.join(map(repr, found))}",
            hint=f"say which: --smiles {shlex.quote(found[0])} (in Python smiles={found[0]!r})",
        )
    for name in taken if needed else ():
        if name in names and _holds_molecules(sample, name, least=0.0 if is_smiles_name(name) else _SHARE):
            raise AmbiguousColumnError(
                f"column {name!r} holds the SMILES, but was named for something else",
                hint="name the columns of values as targets, weights and so on, and leave that one out",
            )
    if not needed:
        return ""
    raise AmbiguousColumnError(
        "no column holds SMILES", hint=f"name it with --smiles NAME; the columns are: {', '.join(names)}"[:500]
    )


def find_sequences(sample: pa.Table, names: Sequence[str]) -> dict[str, bool]:
    """The columns whose sampled cells look like different proteins; whether each is nothing else.

    Example:
        >>> protein = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAV"
        >>> find_sequences(pa.table({"a": [protein, protein[::-1]], "b": ["CCO", "CCCN"]}), ["a", "b"])
        {'a': True}
    """
    found = {}
    for name in names:
        cells = [text.strip() for text in sampled_cells(sample, name)]
        alike = [text for text in cells if re.fullmatch(f"[A-Z]{{{_PEPTIDE},}}", text) and len(set(text)) >= _LETTERS]
        if len(set(alike)) > 1 and len(alike) >= _SHARE * len(cells):
            found[name] = len(alike) == len(cells) and min(map(len, cells)) >= _PROTEIN
    return found


def sampled_cells(sample: pa.Table, name: str) -> list[str]:
    """The first filled cells of a column of texts; none of a column of another type."""
    column = sample[name]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return []
    return [t for t in column.to_pylist() if t and t.strip()][:_SAMPLED]


def _share_readable(sample: pa.Table, name: str) -> float:
    """Share of a column's sampled cells that are molecules; 1 where the sample has no cell to judge by."""
    if sample.num_rows == 0 or not any(map(str.strip, map(str, sample[name].to_pylist()))):
        return 1.0
    cells = sampled_cells(sample, name)
    return sum(parse_smiles(text).mol is not None for text in cells) / len(cells) if cells else 0.0


def _holds_molecules(sample: pa.Table, name: str, least: float = _SHARE) -> bool:
    """Whether sampled cells are molecules; of sex (F), class (C, N) and mark (I, B) columns all are short."""
    return max(map(len, sampled_cells(sample, name)), default=0) > 2 and _share_readable(sample, name) >= least


def with_kind(name: str, kind: str) -> str:
    """A target with its kind as it is typed in a shell.

    Example:
        >>> with_kind("pChEMBL mean", "multiclass")
        "'pChEMBL mean:multiclass'"
    """
    return shlex.quote(f"{name}:{kind}")


def find_id(names: Sequence[str], taken: Sequence[str]) -> str | None:
    """The only column with an id's name that serves for nothing else, or None."""
    for known in (ID_NAMES, MORE_ID_NAMES):
        found = [n for n in names if plain(n) in known and n not in taken]
        if found:
            return found[0] if len(found) == 1 else None
    return None


def find_beside(names: Sequence[str], taken: Sequence[str | None], targets: Iterable[str]) -> Beside:
    """The columns of relations (<, >, =) and of units that belong to each target, by their names.

    A column of units that could be several targets' is their ``shared unit``.

    Example:
        >>> find_beside(["smiles", "IC50", "IC50_relation", "standard_units"], ["smiles", "IC50"], ["IC50"])
        {'IC50': {'relation': 'IC50_relation', 'unit': 'standard_units'}}
    """
    found: dict[str, dict[str, str]] = {}
    free, targets = {name: plain(name) for name in names if name not in {*taken}}, list(targets)
    for what, words in _NAMES.items():
        others = [before for before in _BEFORE if what == "unit" and f"{before}value" in free.values()]  # not asked for
        common = {before + word for word in words for before in _BEFORE if before not in others}
        shared = [name for name, word in free.items() if word in common]
        without = []
        for target in targets:
            own = {plain(target) + word for word in words}
            own |= {before + word for word in words for before in _BEFORE if plain(target) == f"{before}value"}
            if named := [name for name, word in free.items() if word in own]:
                found.setdefault(target, {})[what] = named[0]
                shared = [name for name in shared if name != named[0]]
            else:
                without.append(target)
        if what == "unit":  # a logarithm has none: the column belongs to the value that it was taken of
            without = [target for target in without if not _LOGARITHM.match(target)]
        for target in without if shared else ():
            found.setdefault(target, {})["shared unit" if what == "unit" and len(targets) > 1 else what] = shared[0]
    return found


def as_text(column: pa.ChunkedArray) -> np.ndarray:
    """A column as an object array of text, verbatim; a missing cell is empty."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_string(column.type):
        try:
            column = pc.cast(column, pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            texts = (None if value is None else text_of(value) for value in column.to_pylist())
            column = pa.chunked_array([pa.array(texts, pa.string())])
    return pc.fill_null(column, "").to_numpy(zero_copy_only=False).astype(object, copy=False)


def text_of(value: Any) -> str:
    r"""A cell as text; bytes that are UTF-8 are that text, whatever stands in the rows beside it.

    Example:
        >>> [text_of(value) for value in (b"CCO", b"CC\xff", [1, None])]
        ['CCO', "b'CC\\xff'", '[1, None]']
    """
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    try:
        return str(value)
    except ValueError:  # a whole number of more digits than Python writes
        return hex(value)


def encodable(text: str) -> str:
    """The text with halves of surrogate pairs, which no file and no Arrow column can hold, written out."""
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()
