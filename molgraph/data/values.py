"""Read the columns of values of a source, with the columns of relations and units that stand beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa

from molgraph.base.errors import DataError
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
NUMERIC = (None, "regression", "bounded")  # kinds of a target whose cells are read as values
Beside = Mapping[str, Mapping[str, str]]  # target -> "relation", "unit" or "shared unit" -> column


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
        for target in without if shared else ():
            found.setdefault(target, {})["shared unit" if what == "unit" and len(targets) > 1 else what] = shared[0]
    return found


def tidy(
    chunk: Chunk,
    asked: Iterable[Asked],
    others: Mapping[str, str | None],
    beside: Beside,
    reading: Reading,
    *,
    guess: bool,
) -> tuple[Chunk, Values]:
    """The chunk with its columns of values as plain numbers, and how they were read.

    Args:
        chunk: rows of a source, best all of them.
        asked: the targets.
        others: the decimal sign, where it is known, of each column of weights and descriptors; of these decimal commas
            alone are read.
        beside: what ``find_beside`` gave; the chunk has those columns too.
        reading: how cells of targets are read.
        guess: whether a column of decimal commas is read without being asked: no comma parts the columns.

    Raises:
        DataError: a cell that cannot be read as asked, unless the reading is lenient.
    """
    values, columns, read, same_unit = Values(), chunk.columns, list[ValueColumn](), False
    for one in asked:
        if one.level != "row":  # lists, which are read with the molecules
            continue
        texts, name = chunk.cells(one.column), one.column
        made = texts
        column = ValueColumn(name, reading, guess, chunk.start, words=one.kind is None)
        if one.kind in NUMERIC:
            more = {what: (by, as_text(chunk.cells(by))) for what, by in beside.get(name, {}).items()}
            if "shared unit" in more and reading.unit is None:
                more["unit"] = more["shared unit"]
            elif "shared unit" in more:
                same_unit |= _check_shared(*more["shared unit"], beside, cells.plain_unit(reading.unit or ""))
            made = column.read(texts, more["unit"][1] if "unit" in more else None)
            if column.odd and not reading.lenient:
                raise column.refusal()
            if "unit" in more:
                made = column.by_unit_column(made, more["unit"][0])
            if "relation" in more:
                made = column.by_relation_column(made, more["relation"][1], more["relation"][0])
            read.append(column)
        elif one.kind == "binary" and reading.lenient:
            made = _classes_alone(texts, column)
        values.odd += column.odd
        values.notes += column.notes
        columns = columns if made is texts else _put(columns, name, made)
    bare = [column for column in read if column.unitless]
    if bare and not reading.lenient and not same_unit and not any(any(column.units.values()) for column in read):
        raise bare[0].no_units()
    values.notes += [f"{column.name}: no units are known, so its values are read as they stand" for column in bare]
    for name, sign in others.items():
        texts = chunk.cells(name)
        column = ValueColumn(name, Reading(sign), guess, chunk.start)
        made = column.read(texts)
        if made is not texts and not column.odd:
            columns = _put(columns, name, made)
            values.notes += column.notes
    return replace(chunk, columns=columns), values


def decimal_commas(chunks: Iterable[Chunk], names: Collection[str]) -> set[str]:
    """The columns of numbers whose commas are decimal signs, as far as all rows leave no doubt."""
    sure, not_them = set[str](), set[str]()
    for chunk in chunks:
        for name in {*names} - not_them:
            found = cells.commas(map(cells.read_cell, np.unique(as_text(chunk.cells(name)).astype(str)).tolist()))
            not_them |= set() if found[0] else {name}
            sure |= {name} if found[1] else set()
        if not_them >= {*names}:
            break
    return sure - not_them


def _check_shared(name: str, units: np.ndarray, beside: Beside, wanted: str) -> bool:
    """Whether a column of units that could be several targets' has the wanted unit in every row that has one.

    Raises:
        DataError: it has another unit, which would change values of one target or of all.
    """
    found = {cells.plain_unit(text) for text in units if not cells.is_missing(text)}
    if all(cells.alike(unit, wanted) for unit in found):
        return bool(found)
    targets = [target for target, by in beside.items() if by.get("shared unit") == name]
    raise DataError(
        f"column {name!r} does not say whose units it holds: {', '.join(map(repr, targets))}, or others",
        hint=f"rename it after its target, as in {targets[0]}_units; targets without units are read as they stand",
    )


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
