"""Read the columns of values of a source, with the columns of relations and units that stand beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from molgraph.data import cells
from molgraph.data.chunks import Chunk
from molgraph.data.columns import as_text, plain
from molgraph.data.targets import Asked
from molgraph.data.value_column import WORDS, OddCell, Reading, ValueColumn

_NAMES = {
    "relation": ("relation", "operator", "qualifier", "modifier", "relationship"),
    "unit": ("unit", "units", "uom"),
}
_BEFORE = ("", "standard", "published", "activity", "value")  # such a name, where it is not a target's own
Beside = Mapping[str, Mapping[str, str]]  # target -> "relation" or "unit" -> column


@dataclass
class Values:
    """What was found in the columns of values of a source.

    Args:
        notes: a sentence for whatever was read otherwise than it stands there.
        odd: the cells that could not be read, where they are kept instead of refused.
    """

    notes: list[str] = field(default_factory=list)
    odd: list[OddCell] = field(default_factory=list)


def find_beside(names: Sequence[str], taken: Sequence[str | None], targets: Iterable[str]) -> Beside:
    """The columns of relations (<, >, =) and of units that belong to each target, by their names.

    Example:
        >>> find_beside(["smiles", "IC50", "IC50_relation", "standard_units"], ["smiles", "IC50"], ["IC50"])
        {'IC50': {'relation': 'IC50_relation', 'unit': 'standard_units'}}
    """
    found: dict[str, dict[str, str]] = {}
    free = {name: plain(name) for name in names if name not in taken}
    for target in targets:
        for what, words in _NAMES.items():
            own = {plain(target) + word for word in words}
            shared = {before + word for word in words for before in _BEFORE}
            named = [n for n, word in free.items() if word in own] or [n for n, word in free.items() if word in shared]
            if named:
                found.setdefault(target, {})[what] = named[0]
    return found


def tidy(
    chunk: Chunk, asked: Iterable[Asked], others: Iterable[str], beside: Beside, reading: Reading, *, guess: bool
) -> tuple[Chunk, Values]:
    """The chunk with its columns of values as plain numbers, and how they were read.

    Args:
        chunk: rows of a source, best all of them.
        asked: the targets.
        others: columns of weights and descriptors, of which decimal commas alone are read.
        beside: what ``find_beside`` gave; the chunk has those columns too.
        reading: how cells are read.
        guess: whether a column of decimal commas is read without being asked: no comma parts the columns.

    Raises:
        DataError: a cell that cannot be read as asked, unless the reading is lenient.
    """
    values, columns = Values(), chunk.columns
    for one in asked:
        texts, name = chunk.cells(one.column), one.column
        made = texts
        column = ValueColumn(name, reading, guess, chunk.start, words=one.kind is None)
        if one.kind in (None, "regression", "bounded"):
            more = {what: (by, as_text(chunk.cells(by))) for what, by in beside.get(name, {}).items()}
            made = column.read(texts, more["unit"][1] if "unit" in more else None)
            if column.odd and not reading.lenient:
                raise column.refusal()
            if "unit" in more:
                made = column.by_unit_column(made, more["unit"][1], more["unit"][0])
            if "relation" in more:
                made = column.by_relation_column(made, more["relation"][1], more["relation"][0])
        elif one.kind == "binary" and reading.lenient:
            made = _classes_alone(texts, column)
        values.odd += column.odd
        values.notes += column.notes
        columns = columns if made is texts else _put(columns, name, made)
    for name in others:
        texts = chunk.cells(name)
        column = ValueColumn(name, Reading(reading.decimal), guess, chunk.start)
        made = column.read(texts)
        if made is not texts and not column.odd:
            columns = _put(columns, name, made)
            values.notes += column.notes
    return replace(chunk, columns=columns), values


def _put(columns: pa.Table, name: str, made: pa.ChunkedArray) -> pa.Table:
    return columns.set_column(columns.column_names.index(name), name, made)


def _classes_alone(texts: pa.ChunkedArray, column: ValueColumn) -> pa.ChunkedArray:
    """The cells of a binary target that are one of its classes; the others are listed."""
    given = as_text(texts)
    words = np.array([text.strip().lower() for text in given], dtype=object)
    fit = {*WORDS, "0", "1", "0.0", "1.0"}
    bad = np.array([word not in fit and not cells.is_missing(word) for word in words], dtype=bool)
    column.odd += [
        OddCell(column.name, column.start + int(row), cells.OTHER, str(given[row])) for row in np.flatnonzero(bad)
    ]
    return pa.chunked_array([pa.array(given, pa.string(), mask=bad)]) if bad.any() else texts
