"""Read columns of measured values: decimal commas, qualifiers, units and words; odd cells are listed or refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from molgraph.base.errors import AmbiguousColumnError, FormatError
from molgraph.data.labels import with_kind
from molgraph.data.limits import take_limits
from molgraph.data.reading import cells
from molgraph.data.reading.cells import MISSING_WORDS, WORDS, CellText, OddCell, Reading, is_missing, read_cell
from molgraph.data.reading.chunk import Chunk, as_text
from molgraph.data.reading.numbers import CORRECT, advice, no_number, numbers_or_none
from molgraph.data.reading.roles import SideColumns
from molgraph.data.reading.units import UNITS, convert, plain_unit, same_unit

FEW = 20  # different texts that may be classes
NUMERIC = (None, "regression", "bounded")  # kinds of a target whose cells are read as values
_EXACT = ("", "=")


class SideTexts(NamedTuple):
    """A column beside one of values, which says each row's unit or relation."""

    name: str
    texts: np.ndarray


_Side = SideTexts | None


class Values(NamedTuple):
    """The values of a chunk's targets."""

    columns: pa.Table  # the chunk's columns, those of targets as plain numbers
    notes: list[str]  # on how they were read
    odd: list[OddCell]  # the cells that cannot be read
    units: dict[str, str]
    # float64 [n, 2] of a target, NaN where its label is no limit; only where they are learnt there are any
    limits: dict[str, np.ndarray]


def read_values(
    chunk: Chunk, kinds: Mapping[str, str | None], beside: Mapping[str, SideColumns], reading: Reading, *, guess: bool
) -> Values:
    """The values of the targets of a chunk.

    Args:
        chunk: all rows of a source, with the columns of ``beside``.
        kinds: the kind of each target of whole rows, by its column; None where it was not named.
        beside: what ``find_side_columns`` gave.
        reading: how cells are read.
        guess: whether a column of decimal commas is read without being asked: no comma parts the columns.

    Raises:
        CellError: a cell that another way of reading the column would read, unless the reading is lenient.
    """
    readers, columns, shared_unit = list[_ValueColumn](), chunk.columns, False
    for name, kind in kinds.items():
        reader = _ValueColumn(name, reading, guess, chunk.start)
        readers.append(reader)
        if kind in NUMERIC:
            side = beside.get(name, SideColumns())
            relations, units, shared = (None if by is None else SideTexts(by, as_text(chunk.cells(by))) for by in side)
            if shared and reading.unit is not None:
                shared_unit |= _check_shared(shared, beside, plain_unit(reading.unit))
                shared = None
            values = reader.read(chunk.cells(name), units or shared, relations, words=kind is None)
        elif kind == "binary" and reading.lenient:
            values = reader.classes(chunk.cells(name))
        else:
            continue
        columns = columns.set_column(columns.column_names.index(name), name, values)
    unitless = [reader.name for reader in readers if reader.unitless]
    if unitless and not reading.lenient and not shared_unit and not any(reader.units for reader in readers):
        hint = "a unit stands behind each number (251.2 nM), or in a column named units or standard_units; "
        hint += "--unit none reads values as they stand"
        raise FormatError(f"column {unitless[0]!r} has no units to bring to {reading.unit}", hint=hint)
    notes = [note for reader in readers for note in reader.notes]
    notes += [f"{name}: no units are known, so its values are read as they stand" for name in unitless]
    odd = [cell for reader in readers for cell in reader.odd]
    limits = {reader.name: reader.limits for reader in readers if reader.limits is not None}
    return Values(columns, notes, odd, {reader.name: reader.unit for reader in readers if reader.unit}, limits)


def read_numbers(chunk: Chunk, name: str, decimal: str | None) -> tuple[pa.ChunkedArray, list[str], list[OddCell]]:
    """A column of weights or descriptors as numbers, notes, and the cells that are none."""
    reader = _ValueColumn(name, Reading(decimal, lenient=True), start=chunk.start)
    values = reader.read(chunk.cells(name))
    return values, reader.notes, reader.odd


def _check_shared(by: SideTexts, beside: Mapping[str, SideColumns], wanted: str) -> bool:
    """Whether a column of units that could be several targets' has the wanted unit in every row that has one."""
    units = {plain_unit(text) for text in by.texts if not is_missing(text)}
    if all(same_unit(unit, wanted) for unit in units):
        return bool(units)
    targets = [target for target, columns in beside.items() if columns.shared_unit == by.name]
    words = f"column {by.name!r} does not say whose units it holds: {', '.join(map(repr, targets))}, or others"
    hint = f"rename it after its target, as in {targets[0]}_units; targets without units are read as they stand"
    raise AmbiguousColumnError(words, hint=hint)


@dataclass
class _ValueColumn:
    """One column of values, with what is found while it is read."""

    name: str
    reading: Reading
    guess: bool = False
    start: int = 0
    odd: list[OddCell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    units: Counter[str] = field(default_factory=Counter)  # how many cells have each
    unitless: bool = False  # a unit was asked for, and no value has one
    side: np.ndarray | None = None  # int8 [n]: 1 where the value lies above the number (>), -1 below, 0 elsewhere
    limits: np.ndarray | None = None  # float64 [n, 2], of learnt limits

    def read(
        self, column: pa.ChunkedArray, units: _Side = None, relations: _Side = None, words: bool = False
    ) -> pa.ChunkedArray:
        """The cells as numbers; a column of words for two classes stays as it is where ``words`` allows it."""
        values = numbers_or_none(column, finite=self.reading.lenient)
        row_units = np.full(len(column), "", dtype=object) if units is None else _row_units(units)
        if values is None or (self.reading.unit is not None and units is None):
            texts, code = np.unique(as_text(column).astype(str), return_inverse=True)
            parsed = [CellText("") if is_missing(text) else read_cell(text) for text in texts.tolist()]
            if words and self._are_words(texts, parsed):
                return self.classes(column)
            values, row_units = self._parse(texts, code, parsed, units and row_units)
        if units is not None or (self.reading.unit is not None and self.units):
            self._convert(values, row_units, units)
        if relations is not None:
            self._take_relations(values, relations)
        if self.reading.qualifiers == "learn" and self.side is not None:
            self.limits, note = take_limits(values, self.side)
            self.notes += [f"{self.name}: {note}"] if note else []
        return pa.chunked_array([pa.array(values)])

    @property
    def unit(self) -> str:
        """The unit of the values that were read; empty where it is not known, several where they are mixed."""
        if self.units and self.reading.unit:
            return plain_unit(self.reading.unit)
        return ", ".join(self.units) if any(unit in UNITS for unit in self.units) else ""

    def classes(self, column: pa.ChunkedArray) -> pa.ChunkedArray:
        """The cells that are classes of a binary target; the others are odd."""
        texts = as_text(column)
        known = {*WORDS, *MISSING_WORDS, "0", "1", "0.0", "1.0"}
        kinds = np.array(["" if text.strip().lower() in known else cells.OTHER for text in texts], dtype=object)
        self._list(kinds, texts)
        return pa.chunked_array([pa.array(texts, pa.string(), mask=kinds != "")])

    def _are_words(self, texts: np.ndarray, parsed: list[CellText]) -> bool:
        """Whether a column holds words for two classes and no number but 0 and 1; a note on them."""
        words = {text.strip(): WORDS[text.strip().lower()] for text in texts if text.strip().lower() in WORDS}
        if not words or any(cell.number not in ("", "0", "1") for cell in parsed):
            return False
        classes = {label: " and ".join(sorted(w for w, c in words.items() if c == label)[:3]) for label in "10"}
        mapping = ", ".join(f"{text} is class {label}" for label, text in classes.items() if text)
        self.notes.append(f"{self.name}: {mapping}")
        return True

    def _parse(
        self, texts: np.ndarray, code: np.ndarray, parsed: list[CellText], row_units: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The number and the unit of each row, from its distinct texts and the cells that they are."""
        commas = self.reading.decimal == ","
        commas |= self.reading.decimal is None and self.guess and all(cells.commas(parsed))
        clear = cells.points_are_decimal(parsed)
        kinds = np.array([self._kind(cell, commas, clear) for cell in parsed], dtype=object)
        number = np.array([float(cell.number.replace(",", ".") or "nan") for cell in parsed], dtype=np.float64)
        if self.reading.lenient:
            kinds[(kinds == "") & np.isinf(number)] = cells.OTHER
        with_comma = np.array([bool(cell.comma) for cell in parsed], dtype=bool) & (kinds == "")
        bound = np.array([bool(cell.qualifier) for cell in parsed], dtype=bool) & (kinds == "")
        number[(kinds != "") | (bound & (self.reading.qualifiers == "drop"))] = np.nan
        self.side = np.array([cells.side_of(cell.qualifier) for cell in parsed], dtype=np.int8)[code]
        counts = np.bincount(code, minlength=len(texts))
        for cell, n in zip(parsed, counts.tolist(), strict=True):
            if cell.unit:
                self.units[cell.unit] += n
        values, row_kinds = number[code], kinds[code]
        cell_units = np.array([cell.unit for cell in parsed], dtype=object)[code]
        if row_units is None:
            row_units = cell_units
            self.unitless = self.reading.unit is not None and not self.units and any(cell.number for cell in parsed)
        else:
            doubt = (cell_units != "") & (row_units != "") & (cell_units != row_units) & (row_kinds == "")
            for row in np.flatnonzero(doubt):
                if not same_unit(cell_units[row], row_units[row]):
                    row_kinds[row], values[row] = cells.TWO_UNITS, np.nan
            row_units = np.where(row_units == "", cell_units, row_units)
        self._list(row_kinds, texts[code], row_units, len(texts))
        if n := int(counts[with_comma].sum()):
            self.notes.append(f"{self.name}: {n:,} cells with decimal commas were read, 4,62 as 4.62")
        self._note_bounds(int(counts[bound].sum()), "a qualifier (<, >, ~)")
        return values, row_units

    def _kind(self, cell: CellText, commas: bool, clear: bool) -> str:
        """The kind of a cell that cannot be read; empty where it can. ``clear``: points can be decimal signs alone."""
        if cell.kind == cells.OTHER:
            return cells.OTHER
        if cell.comma and not commas:
            return cells.COMMA if clear else cells.SIGNS
        if commas and "." in cell.number and not clear:
            return cells.SIGNS
        if cell.qualifier and self.reading.qualifiers == "refuse":
            return cells.QUALIFIER
        return cells.UNIT if cell.unit and self.reading.unit is None else ""

    def _list(self, kinds: np.ndarray, texts: np.ndarray, row_units: Any = None, n_texts: int = 0) -> None:
        """List the rows that have a kind as odd cells; refuse, unless lenient, what another reading would read."""
        few = f"if these are classes, ask for {with_kind(self.name, 'multiclass')}" if n_texts <= FEW else ""
        for row in np.flatnonzero(kinds != "").tolist():
            text = str(texts[row])
            reason, hint = no_number(self.name, text.strip()), advice(text.strip()) or few or CORRECT
            if kinds[row] == cells.TWO_UNITS:
                reason = f"column {self.name!r} holds {text[:60]!r}, and its column of units says {row_units[row][:30]}"
                hint = f"correct the one that is wrong; molgraph data audit --unit {self.reading.unit} lists such cells"
            self.odd.append(OddCell(self.name, self.start + row, kinds[row], text, reason, hint))
        if not self.reading.lenient and any(cell.kind in cells.DECIDED for cell in self.odd):
            raise cells.refusal(self.name, self.odd, self._unit_counts(), self._common_unit())

    def _convert(self, values: np.ndarray, row_units: np.ndarray, by: _Side) -> None:
        """Bring values to the unit that was asked for; a note where none was, and a column names several."""
        known = ~np.isnan(values)
        if by is not None:
            self.units = Counter(unit for unit in row_units[known].tolist() if unit)
        if self.reading.unit is None:
            if by is not None and len(self.units) > 1 and (unit := self._common_unit()):
                mixed = f"column {by.name!r} names several units{self._unit_counts()}, and values are read as they"
                self.notes.append(f"{self.name}: {mixed} stand; --unit {unit} brings them to one")
            return
        for unit in set(row_units[known]):
            rows = known & (row_units == unit)
            converted = convert(values[rows], unit, plain_unit(self.reading.unit))
            values[rows] = np.nan if converted is None else converted
        if self.reading.lenient:
            values[np.isinf(values)] = np.nan
        n, lost = int(known.sum()), int((known & np.isnan(values)).sum())
        unit = self.reading.unit
        if n:
            self.notes.append(f"{self.name}: {n - lost:,} values were brought to {unit}{self._unit_counts()}")
        if lost:
            self.notes.append(f"{self.name}: {lost:,} values without a unit that can be brought to {unit} are missing")

    def _take_relations(self, values: np.ndarray, by: SideTexts) -> None:
        """Take values whose relation is another than ``=`` out where that was asked, and count them anyway."""
        signs = np.array([re.sub(r"['\"\s]", "", str(text)) for text in by.texts])
        unknown = {sign for sign in set(signs) if sign not in _EXACT and not read_cell(f"{sign}1").qualifier}
        odd = np.isin(signs, list(unknown))
        if 2 * odd.sum() > (signs != "").sum():
            return  # a column of something else
        for row in [] if self.reading.lenient else np.flatnonzero(odd & ~np.isnan(values)).tolist():
            text = str(by.texts[row])
            reason = f"column {by.name!r} holds {text[:60]!r}, which is no relation such as < or ="
            self.odd.append(OddCell(by.name, self.start + row, cells.OTHER, text, reason, CORRECT))
        bound = ~np.isnan(values) & ~np.isin(signs, _EXACT) & ~odd
        self._note_bounds(int(bound.sum()), f"<, > or ~ in column {by.name!r}")
        side = np.array([cells.side_of(sign) for sign in signs], dtype=np.int8) * bound
        self.side = side if self.side is None else np.where(side == 0, self.side, side)
        if bound.any() and self.reading.qualifiers == "refuse":
            self.notes[-1] += "; --qualifiers drop takes them out"
        if self.reading.qualifiers == "drop":
            values[bound] = np.nan

    def _note_bounds(self, n: int, mark: str) -> None:
        """Say what became of labels with a qualifier."""
        if n and self.reading.qualifiers != "learn":
            fate = "were taken out" if self.reading.qualifiers == "drop" else "are read as if they were exact"
            self.notes.append(f"{self.name}: {n:,} labels with {mark} {fate}")

    def _unit_counts(self) -> str:
        counts = [f"{unit} {n:,}" for unit, n in self.units.most_common(5)]
        return f" ({', '.join(counts)})" if counts else ""

    def _common_unit(self) -> str:
        """The commonest unit that values can be brought to."""
        return next((unit for unit, _ in self.units.most_common() if unit in UNITS), "")


def _row_units(by: SideTexts) -> np.ndarray:
    """The unit of each row by the column of units; empty where it says none."""
    return np.array(["" if is_missing(text) else plain_unit(text) for text in by.texts], dtype=object)
