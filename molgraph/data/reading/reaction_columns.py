"""Find the columns that hold reactions: reaction SMILES in one, or reactants and products in two."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from molgraph.base.errors import AmbiguousColumnError, BadValueError
from molgraph.chem.reaction import is_reaction
from molgraph.data.reading import columns as cols

BETWEEN = ">>"  # between the names of the columns of reactants and products
SHARE = 0.8  # of the sampled cells must be reactions
REACTANTS, PRODUCTS = (
    frozenset(f"{word}{more}{after}" for word in words for more in ("", "s") for after in ("", "smiles"))
    for words in (("reactant", "educt"), ("product",))
)


def find_reactions(names: Sequence[str], sample: pa.Table, taken: Sequence[str], only: str | None = None) -> list[str]:
    """The columns that hold reactions, or ``["reactants>>product"]`` of the columns of the two sides.

    None where a column has a name of SMILES and holds molecules: reactions beside it are read where they are named.

    Args:
        names: all columns.
        sample: the first rows.
        taken: columns that a person named for something else.
        only: the one column of a file whose columns have no names.

    Example:
        >>> find_reactions(["rxn", "y"], pa.table({"rxn": ["CC>>CO"], "y": ["1"]}), [])
        ['rxn']
        >>> find_reactions(["reactants", "product"], pa.table({"reactants": ["CC"], "product": ["CO"]}), [])
        ['reactants>>product']
    """
    free = [name for name in names if name not in taken] if only is None else [only]
    whole = [name for name in free if holds_reactions(sample, name)]
    if any(cols.is_smiles_name(name) for name in free if name not in whole):
        return []
    sides = [[name for name in free if cols.plain(name) in known] for known in (REACTANTS, PRODUCTS)]
    two = [side for (side, *more) in filter(None, sides) if not more and cols.sampled_cells(sample, side)]
    return whole or ([BETWEEN.join(two)] if len(two) == 2 else [])


def one_reaction(found: Sequence[str]) -> list[str]:
    """The column of reactions where there is one at most; several raise ``AmbiguousColumnError``."""
    if len(found) > 1:
        words = f"several columns hold reactions: {', '.join(map(repr, found))}"
        raise AmbiguousColumnError(
            words, hint=f"say which: --reaction {shlex.quote(found[0])} (in Python reaction={found[0]!r})"
        )
    return list(found)


def unread_reactions(sample: pa.Table, names: Sequence[str], molecules: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns of reactions beside the molecules that are read."""
    found = [name for name in names if molecules and holds_reactions(sample, name)]
    words = "column {0!r} holds reactions, which are not read; to read them: --reaction {1} (in Python reaction={0!r})"
    return tuple(words.format(name, shlex.quote(name)) for name in found)


def holds_reactions(sample: pa.Table, name: str) -> bool:
    """Whether the sampled cells of a column are reaction SMILES."""
    cells = cols.sampled_cells(sample, name)
    return bool(cells) and sum(map(is_reaction, cells)) >= SHARE * len(cells)


def resolve_reactions(asked: Sequence[str], names: Sequence[str], only: str | None) -> dict[str, tuple[str, ...]]:
    """The columns of each reaction column that a person named: one, or two joined by ``>>``.

    Args:
        asked: such as ``rxn_smiles`` or ``reactants>>product``.
        names: all columns.
        only: the one column of a file whose columns have no names, which any name stands for.

    Raises:
        BadValueError: more than two columns are joined. MissingColumnError: a column that is not there.

    Example:
        >>> resolve_reactions(["a>>b", "rxn"], ["A", "b", "rxn"], None)
        {'A>>b': ('A', 'b'), 'rxn': ('rxn',)}
    """
    out = {}
    for name in asked:
        parts = name.split(BETWEEN) if name not in names else [name]
        if len(parts) > 2:
            raise BadValueError(f"the reaction {name!r} names {len(parts)} columns", hint="name REACTANTS>>PRODUCTS")
        if only is not None and len(asked) == 1 and not {*parts} <= {*names}:
            parts = [only]
        found = tuple(cols.resolve(part, names, "reactions") for part in parts)
        out[BETWEEN.join(found)] = found
    return out


def reaction_texts(columns: pa.Table, name: str, sources: Mapping[str, Sequence[str]]) -> np.ndarray:
    """object [rows]: the texts of an entity column; of two columns ``reactants>>products``, empty where both are."""
    texts = [cols.as_text(columns[part]) for part in sources.get(name, (name,))]
    if len(texts) == 1:
        return texts[0]
    joined = [f"{a.strip()}{BETWEEN}{b.strip()}" if a.strip() or b.strip() else "" for a, b in zip(*texts, strict=True)]
    return np.array(joined, dtype=object)
