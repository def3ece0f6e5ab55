"""Read columns of measured values: decimal commas, qualifiers, units and words; odd cells are listed or refused."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from molgraph.base.errors import AmbiguousColumnError, FormatError
from molgraph.data.limits import take_limits
from molgraph.data.reading import cells
from molgraph.data.reading.cells import WORDS, OddCell, Reading
from molgraph.data.reading.chunk import Chunk
from molgraph.data.reading.columns import CORRECT, MISSING_WORDS, Beside, as_text, with_kind
from molgraph.data.reading.numbers import advice, no_number, numbers_or_none
from molgraph.data.reading.refusals import refusal

FEW = 20  # different texts that may be classes
NUMERIC = (None, "regression", "bounded")  # kinds of a target whose cells are read as values
_EXACT = ("", "=")


class Column(NamedTuple):
    """A column beside one of values, which says each row's unit or relation."""

    name: str
    texts: np.ndarray


def read_values(
    chunk: Chunk, targets: Mapping[str, str | None], beside: Beside, reading: Reading, *, guess: bool
) -> tuple[pa.Table, list[str], list[OddCell], dict[str, str], dict[str, np.ndarray]]:
    """A chunk with its targets as plain numbers, notes on how they were read, the odd cells, units and limits.

    The limits of a target, float64 [n, 2], are NaN where its label is none; only where they are learnt there are any.

    Args:
        chunk: all rows of a source, with the columns of ``beside``.
        targets: the kind of each target of whole rows, by its column; None where it was not given.
        beside: what ``find_beside`` gave.
        reading: how cells are read.
        guess: whether a column of decimal commas is read without being asked: no comma parts the columns.

    Raises:
        CellError: a cell that another way of reading the column would read, unless the reading is lenient.
    """
    read, columns, same_unit = list[_Column](), chunk.columns, False
    for name, kind in targets.items():
        column = _Column(name, reading, guess, chunk.start)
        given = chunk.cells(name)
        made = given
        if kind in NUMERIC:
            more = {what: Column(by, as_text(chunk.cells(by))) for what, by in beside.get(name, {}).items()}
            if (shared := more.get("shared unit")) is not None:
                if reading.unit is None:
                    more["unit"] = shared
                else:
                    same_unit |= _check_shared(shared, beside, cells.plain_unit(reading.unit))
            made = column.read(given, more.get("unit"), more.get("relation"), words=kind is None)
        elif kind == "binary" and reading.lenient:
            made = column.classes(given)
        read.append(column)
        if made is not given:
            columns = columns.set_column(columns.column_names.index(name), name, made)
    bare = [column for column in read if column.unitless]
    if bare and not reading.lenient and not same_unit and not any(column.units for column in read):
        raise FormatError(
            f"column {bare[0].name!r} has no units to bring to {reading.unit}",
            hint="a unit stands behind each number (251.2 nM), or in a column named units or standard_units; "
            "--unit none reads values as they stand",
        )
    notes = [note for column in read for note in column.notes]
    notes += [f"{column.name}: no units are known, so its values are read as they stand" for column in bare]
    units = {column.name: column.unit for column in read if column.unit}
    limits = {column.name: column.limits for column in read if column.limits is not None}
    return columns, notes, [odd for column in read for odd in column.odd], units, limits


def read_numbers(chunk: Chunk, name: str, decimal: str | None) -> tuple[pa.ChunkedArray, list[str], list[OddCell]]:
    """A column of weights or descriptors as numbers, notes, and the cells that are none."""
    column = _Column(name, Reading(decimal, lenient=True), start=chunk.start)
    values = column.read(chunk.cells(name))
    return values, column.notes, column.odd


def _check_shared(by: Column, beside: Beside, wanted: str) -> bool:
    """Whether a column of units that could be several targets' has the wanted unit in every row that has one."""
    found = {cells.plain_unit(text) for text in by.texts if not cells.is_missing(text)}
    if all(cells.same_unit(unit, wanted) for unit in found):
        return bool(found)
    targets = [target for target, columns in beside.items() if columns.get("shared unit") == by.name]
    raise AmbiguousColumnError(
        f"column {by.name!r} does not say whose units it holds: {', '.join(map(repr, targets))}, or others",
        hint=f"rename it after its target, as in {targets[0]}_units; targets without units are read as they stand",
    )


@dataclass
class _Column:
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
        self, given: pa.ChunkedArray, units: Column | None = None, relations: Column | None = None, words: bool = False
    ) -> pa.ChunkedArray:
        """The cells as numbers; a column of words for two classes stays as it is where ``words`` allows it."""
        values, unit_of = numbers_or_none(given, finite=self.reading.lenient), np.full(len(given), "", dtype=object)
        if values is None or (self.reading.unit is not None and units is None):
            texts, code = np.unique(as_text(given).astype(str), return_inverse=True)
            found = [cells.CellText("") if cells.is_missing(text) else cells.read_cell(text) for text in texts.tolist()]
            if words and self._are_words(texts, found):
                return self.classes(given)
            values, unit_of = self._parse(texts, code, found, units)
        elif units is not None:
            unit_of = _plain_units(units)
        if units is not None or (self.reading.unit is not None and self.units):
            self._convert(values, unit_of, units)
        if relations is not None:
            self._drop_bounds(values, relations)
        if self.reading.qualifiers == "learn" and self.side is not None:
            self.limits, told = take_limits(values, self.side)
            self.notes += [f"{self.name}: {told}"] * bool(told)
        return pa.chunked_array([pa.array(values)])

    @property
    def unit(self) -> str:
        """The unit of the values that were read; empty where it is not known, several where they are mixed."""
        if self.units and self.reading.unit:
            return cells.plain_unit(self.reading.unit)
        return ", ".join(self.units) if any(unit in cells.UNITS for unit in self.units) else ""

    def classes(self, given: pa.ChunkedArray) -> pa.ChunkedArray:
        """The cells that are classes of a binary target; the others are odd."""
        texts, code = np.unique(as_text(given).astype(str), return_inverse=True)
        fit = {*WORDS, *MISSING_WORDS, "0", "1", "0.0", "1.0"}
        kinds = np.array(["" if text.strip().lower() in fit else cells.OTHER for text in texts], dtype=object)[code]
        rows = texts[code].astype(object)
        self._list(kinds, rows)
        return pa.chunked_array([pa.array(rows, pa.string(), mask=kinds != "")])

    def _are_words(self, texts: np.ndarray, found: list[cells.CellText]) -> bool:
        """Whether a column holds words for two classes and no number but 0 and 1; a note on them."""
        words = {text.strip(): WORDS[text.strip().lower()] for text in texts if text.strip().lower() in WORDS}
        if not words or any(cell.number not in ("", "0", "1") for cell in found):
            return False
        sides = {side: " and ".join(sorted(w for w, s in words.items() if s == side)[:3]) for side in "10"}
        told = ", ".join(f"{text} is class {side}" for side, text in sides.items() if text)
        self.notes.append(f"{self.name}: {told}")
        return True

    def _parse(
        self, texts: np.ndarray, code: np.ndarray, found: list[cells.CellText], units: Column | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """The number and the unit of each row, from its distinct texts and the cells that they are."""
        commas = self.reading.decimal == ","
        commas |= self.reading.decimal is None and self.guess and all(cells.commas(found))
        clear = cells.points_are_decimal(found)
        kinds = np.array([self._kind(cell, commas, clear) for cell in found], dtype=object)
        number = np.array([float(cell.number.replace(",", ".") or "nan") for cell in found], dtype=np.float64)
        if self.reading.lenient:
            kinds[(kinds == "") & np.isinf(number)] = cells.OTHER
        with_comma = np.array([bool(cell.comma) for cell in found], dtype=bool) & (kinds == "")
        bound = np.array([bool(cell.qualifier) for cell in found], dtype=bool) & (kinds == "")
        number[(kinds != "") | (bound & (self.reading.qualifiers == "drop"))] = np.nan
        self.side = np.array([cells.side_of(cell.qualifier) for cell in found], dtype=np.int8)[code]
        counts = np.bincount(code, minlength=len(texts))
        for cell, n in zip(found, counts.tolist(), strict=True):
            if cell.unit:
                self.units[cell.unit] += n
        values, row_kinds = number[code], kinds[code]
        own = unit_of = np.array([cell.unit for cell in found], dtype=object)[code]
        if units is not None:
            unit_of = _plain_units(units)
            for row in np.flatnonzero((own != "") & (unit_of != "") & (own != unit_of) & (row_kinds == "")):
                if not cells.same_unit(own[row], unit_of[row]):
                    row_kinds[row], values[row] = cells.TWO_UNITS, np.nan
            unit_of = np.where(unit_of == "", own, unit_of)
        self._list(row_kinds, texts[code], unit_of, len(texts))
        if n := int(counts[with_comma].sum()):
            self.notes.append(f"{self.name}: {n:,} cells with decimal commas were read, 4,62 as 4.62")
        self._note_bounds(int(counts[bound].sum()), "a qualifier (<, >, ~)")
        if units is None and self.reading.unit is not None:
            self.unitless = not self.units and any(cell.number for cell in found)
        return values, unit_of

    def _kind(self, cell: cells.CellText, commas: bool, clear: bool) -> str:
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

    def _list(self, kinds: np.ndarray, texts: np.ndarray, unit_of: np.ndarray | None = None, n_texts: int = 0) -> None:
        """List the rows that have a kind as odd cells; refuse, unless lenient, what another reading would read."""
        way = f"if these are classes, ask for {with_kind(self.name, 'multiclass')}" if n_texts <= FEW else ""
        for row in np.flatnonzero(kinds != "").tolist():
            text = str(texts[row])
            why, hint = no_number(self.name, text.strip()), advice(text.strip()) or way or CORRECT
            if kinds[row] == cells.TWO_UNITS and unit_of is not None:
                why = f"column {self.name!r} holds {text[:60]!r}, and its column of units says {unit_of[row][:30]}"
                hint = f"correct the one that is wrong; molgraph data audit --unit {self.reading.unit} lists such cells"
            self.odd.append(OddCell(self.name, self.start + row, kinds[row], text, why, hint))
        if not self.reading.lenient and (these := [cell for cell in self.odd if cell.kind in cells.DECIDED]):
            raise refusal(self.name, these, self.odd, self._unit_counts(), self._way())

    def _convert(self, values: np.ndarray, unit_of: np.ndarray, by: Column | None) -> None:
        """Bring values to the unit that was asked for; a note where none was, and a column names several."""
        has = ~np.isnan(values)
        if by is not None:
            self.units = Counter(unit for unit in unit_of[has].tolist() if unit)
        if self.reading.unit is None:
            if by is not None and len(self.units) > 1 and self._way():
                said = f"column {by.name!r} names several units{self._unit_counts()}, and values are read as they stand"
                self.notes.append(f"{self.name}: {said}; --unit {self._way()} brings them to one")
            return
        wanted = cells.plain_unit(self.reading.unit)
        for unit in set(unit_of[has]):
            at = has & (unit_of == unit)
            brought = cells.convert(values[at], unit, wanted)
            values[at] = np.nan if brought is None else brought
        if self.reading.lenient:
            values[np.isinf(values)] = np.nan
        lost = int((has & np.isnan(values)).sum())
        if not has.any():
            return
        self.notes.append(
            f"{self.name}: {int(has.sum()) - lost:,} values were brought to {self.reading.unit}{self._unit_counts()}"
        )
        if lost:
            self.notes.append(
                f"{self.name}: {lost:,} values without a unit that can be brought to {self.reading.unit} are missing"
            )

    def _drop_bounds(self, values: np.ndarray, by: Column) -> None:
        """Take values whose relation is another than ``=`` out where that was asked, and count them anyway."""
        signs = np.array([re.sub(r"['\"\s]", "", str(text)) for text in by.texts])
        unknown = {sign for sign in set(signs) if sign not in _EXACT and not cells.read_cell(f"{sign}1").qualifier}
        odd = np.isin(signs, list(unknown))
        if 2 * odd.sum() > (signs != "").sum():
            return  # a column of something else
        for row in [] if self.reading.lenient else np.flatnonzero(odd & ~np.isnan(values)).tolist():
            text = str(by.texts[row])
            why = f"column {by.name!r} holds {text[:60]!r}, which is no relation such as < or ="
            self.odd.append(OddCell(by.name, self.start + row, cells.OTHER, text, why, CORRECT))
        bound = ~np.isnan(values) & ~np.isin(signs, _EXACT) & ~odd
        self._note_bounds(int(bound.sum()), f"<, > or ~ in column {by.name!r}")
        here = np.array([cells.side_of(sign) for sign in signs], dtype=np.int8) * bound
        self.side = here if self.side is None else np.where(here == 0, self.side, here)
        if bound.any() and self.reading.qualifiers == "refuse":
            self.notes[-1] += "; --qualifiers drop takes them out"
        if self.reading.qualifiers == "drop":
            values[bound] = np.nan

    def _note_bounds(self, n: int, mark: str) -> None:
        """Say what became of labels with a qualifier."""
        if self.reading.qualifiers == "learn":
            return
        fate = "were taken out" if self.reading.qualifiers == "drop" else "are read as if they were exact"
        self.notes += [f"{self.name}: {n:,} labels with {mark} {fate}"] * bool(n)

    def _unit_counts(self) -> str:
        counts = [f"{unit} {n:,}" for unit, n in self.units.most_common(5)]
        return f" ({', '.join(counts)})" if counts else ""

    def _way(self) -> str:
        """The commonest unit that values can be brought to."""
        return next((unit for unit, _ in self.units.most_common() if unit in cells.UNITS), "")


def _plain_units(by: Column) -> np.ndarray:
    """The unit of each row by the column of units; empty where it says none."""
    return np.array(["" if cells.is_missing(text) else cells.plain_unit(text) for text in by.texts], dtype=object)
