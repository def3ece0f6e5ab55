"""Find the columns of molecules, proteins and reactions by their names and by a sample of their values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from molgraph.base.errors import AmbiguousColumnError, BadValueError, FormatError
from molgraph.chem.reaction import is_reaction
from molgraph.chem.smiles import parse_smiles
from molgraph.data.reading.chunk import as_text
from molgraph.data.reading.names import is_smiles_name, plain, resolve

_SHARE = 0.8  # of the sampled cells must be readable
_SAMPLED = 50
_PEPTIDE, _PROTEIN = 20, 50  # residues from which on a text looks like a sequence, or is one
_LETTERS = 8  # kinds of residues of one
BETWEEN = ">>"  # between the names of the columns of reactants and products
REACTANTS, PRODUCTS = (
    frozenset(f"{word}{plural}{after}" for word in words for plural in ("", "s") for after in ("", "smiles"))
    for words in (("reactant", "educt"), ("product",))
)


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
    columns = [n for n in named or free if _holds_molecules(sample, n)]
    if not columns and named:
        columns = [n for n in free if _holds_molecules(sample, n)] or (named if len(named) == 1 else [])
    if len(columns) == 1:
        if not named and parse_smiles(columns[0]).mol is not None:  # its name would be lost as a row
            hint = "put a line of column names before it, such as smiles,y; or, if it is a name: --smiles NAME"
            raise FormatError(f"the first line seems to be a molecule ({columns[0][:60]}), not a header", hint=hint)
        return columns[0]
    if columns:
        raise _several("SMILES", columns, "smiles")
    for name in taken if needed else ():
        if name in names and _holds_molecules(sample, name, least=0.0 if is_smiles_name(name) else _SHARE):
            hint = "name the columns of values as targets, weights and so on, and leave that one out"
            raise AmbiguousColumnError(f"column {name!r} holds the SMILES, but was named for something else", hint=hint)
    if not needed:
        return ""
    hint = f"name it with --smiles NAME; the columns are: {', '.join(names)}"[:500]
    raise AmbiguousColumnError("no column holds SMILES", hint=hint)


def _several(noun: str, columns: Sequence[str], option: str) -> AmbiguousColumnError:
    hint = f"say which: --{option} {shlex.quote(columns[0])} (in Python {option}={columns[0]!r})"
    return AmbiguousColumnError(f"several columns hold {noun}: {', '.join(map(repr, columns))}", hint=hint)


def find_sequences(sample: pa.Table, names: Sequence[str]) -> dict[str, bool]:
    """The columns whose sampled cells look like different proteins; whether they are nothing else.

    Example:
        >>> protein = "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQAPILSRVGDGTQDNLSGAEKAV"
        >>> find_sequences(pa.table({"a": [protein, protein[::-1]], "b": ["CCO", "CCCN"]}), ["a", "b"])
        {'a': True}
    """
    columns = {}
    for name in names:
        cells = [text.strip() for text in _sampled_cells(sample, name)]
        alike = [text for text in cells if re.fullmatch(f"[A-Z]{{{_PEPTIDE},}}", text) and len(set(text)) >= _LETTERS]
        if len(set(alike)) > 1 and len(alike) >= _SHARE * len(cells):
            columns[name] = len(alike) == len(cells) and min(map(len, cells)) >= _PROTEIN
    return columns


def _sampled_cells(sample: pa.Table, name: str) -> list[str]:
    """The first filled cells of a column of texts; none of a column of another type."""
    column = sample[name]
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return []
    return [t for t in column.to_pylist() if t and t.strip()][:_SAMPLED]


def _share_readable(sample: pa.Table, name: str) -> float:
    """Share of a column's sampled cells that are molecules; 1 where the sample has no cell to judge by."""
    if sample.num_rows == 0 or not any(map(str.strip, map(str, sample[name].to_pylist()))):
        return 1.0
    cells = _sampled_cells(sample, name)
    return sum(parse_smiles(text).mol is not None for text in cells) / len(cells) if cells else 0.0


def _holds_molecules(sample: pa.Table, name: str, least: float = _SHARE) -> bool:
    """Whether sampled cells are molecules; of sex (F), class (C, N) and mark (I, B) columns all are short."""
    return max(map(len, _sampled_cells(sample, name)), default=0) > 2 and _share_readable(sample, name) >= least


def find_reaction(names: Sequence[str], sample: pa.Table, taken: Sequence[str], only: str | None = None) -> list[str]:
    """The column that holds reactions, or ``reactants>>product`` of the columns of the two sides; empty where none is.

    None where a column has a name of SMILES and holds molecules: reactions beside it are read where they are named.

    Args:
        names: all columns.
        sample: the first rows.
        taken: columns that a person named for something else.
        only: the one column of a file whose columns have no names.

    Raises:
        AmbiguousColumnError: several columns hold reactions.

    Example:
        >>> find_reaction(["rxn", "y"], pa.table({"rxn": ["CC>>CO"], "y": ["1"]}), [])
        ['rxn']
        >>> find_reaction(["reactants", "product"], pa.table({"reactants": ["CC"], "product": ["CO"]}), [])
        ['reactants>>product']
    """
    free = [name for name in names if name not in taken] if only is None else [only]
    whole = [name for name in free if holds_reactions(sample, name)]
    if any(is_smiles_name(name) for name in free if name not in whole):
        return []
    if len(whole) > 1:
        raise _several("reactions", whole, "reaction")
    sides = [[name for name in free if plain(name) in known] for known in (REACTANTS, PRODUCTS)]
    two = [side[0] for side in sides if len(side) == 1 and _sampled_cells(sample, side[0])]
    return whole or ([BETWEEN.join(two)] if len(two) == 2 else [])


def holds_reactions(sample: pa.Table, name: str) -> bool:
    """Whether the sampled cells of a column are reaction SMILES."""
    cells = _sampled_cells(sample, name)
    return bool(cells) and sum(map(is_reaction, cells)) >= _SHARE * len(cells)


def resolve_reactions(
    reactions: Sequence[str], names: Sequence[str], only: str | None = None
) -> dict[str, tuple[str, ...]]:
    """The columns of each reaction column that a person named: one, or two joined by ``>>``.

    Args:
        reactions: such as ``rxn_smiles`` or ``reactants>>product``.
        names: all columns.
        only: the one column of a file whose columns have no names, which any name stands for.

    Raises:
        BadValueError: more than two columns are joined. MissingColumnError: a column that is not there.

    Example:
        >>> resolve_reactions(["a>>b", "rxn"], ["A", "b", "rxn"])
        {'A>>b': ('A', 'b'), 'rxn': ('rxn',)}
    """
    out = {}
    for name in reactions:
        parts = name.split(BETWEEN) if name not in names else [name]
        if len(parts) > 2:
            raise BadValueError(f"the reaction {name!r} names {len(parts)} columns", hint="name REACTANTS>>PRODUCTS")
        if only is not None and len(reactions) == 1 and not {*parts} <= {*names}:
            parts = [only]
        columns = tuple(resolve(part, names, "reactions") for part in parts)
        out[BETWEEN.join(columns)] = columns
    return out


def reaction_texts(columns: pa.Table, name: str, sources: Mapping[str, Sequence[str]]) -> np.ndarray:
    """object [rows]: the texts of an entity column; of two columns ``reactants>>products``, empty where both are."""
    texts = [as_text(columns[part]) for part in sources.get(name, (name,))]
    if len(texts) == 1:
        return texts[0]
    joined = [f"{a.strip()}{BETWEEN}{b.strip()}" if a.strip() or b.strip() else "" for a, b in zip(*texts, strict=True)]
    return np.array(joined, dtype=object)
