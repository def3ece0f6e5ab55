"""Read one column of measured values: decimal commas, qualifiers and units as a person asked, odd cells listed."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from molgraph.base.errors import DataError, UsageError
from molgraph.data import cells
from molgraph.data.columns import as_numbers, as_text, with_kind

#: Words for the labels of a binary target. They are fixed, so that class 1 is the same in every file, whichever words
#: it holds.
WORDS = {
    **dict.fromkeys(("true", "yes", "active", "positive", "toxic", "t", "y", "pos"), "1"),
    **dict.fromkeys(("false", "no", "inactive", "negative", "nontoxic", "non-toxic", "f", "n", "neg"), "0"),
}
FEW = 20  # different texts that may be classes
QUALIFIERS = ("refuse", "drop", "strip")
_EXACT = ("", "=")
_WAYS = "in train, evaluate and data curate (benchmarks read its table); molgraph data audit lists such cells"


@dataclass(frozen=True)
class Reading:
    """How cells of values are read.

    Args:
        decimal: ``,`` or ``.``, the decimal sign; None reads commas where a whole column leaves no doubt.
        qualifiers: what becomes of ``>8.0``: ``refuse`` it, ``drop`` the label, or ``strip`` the sign.
        unit: what all values are brought to, such as ``nM``; None refuses cells with units.
        lenient: whether cells that cannot be read become missing and are listed, instead of an error.
    """

    decimal: str | None = None
    qualifiers: str = "refuse"
    unit: str | None = None
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise UsageError(f"decimal is {self.decimal!r}", hint="a point or a comma: '.' or ','")
        if self.qualifiers not in QUALIFIERS:
            raise UsageError(f"qualifiers is {self.qualifiers!r}", hint=f"one of {', '.join(QUALIFIERS)}")
        if self.unit == "none":  # for who evaluates a model that was trained with one
            object.__setattr__(self, "unit", None)
        if self.unit is not None and cells.plain_unit(self.unit) not in cells.UNITS:
            raise UsageError(f"the unit {self.unit!r} is not known", hint=f"known: {', '.join(cells.UNITS)}")


@dataclass(frozen=True)
class OddCell:
    """A cell that is no plain number: its column, its row (from 0), its kind, and its text."""

    column: str
    row: int
    kind: str
    text: str


@dataclass
class ValueColumn:
    """One column of values; ``read`` fills ``odd``, ``notes``, ``row_units`` and ``unitless``.

    ``row_units`` are the units of the rows, by their own column, or by the cell where that is empty. ``unitless``: a
    unit was asked for and no value has one, so that the values are as they stand.

    Args:
        name: the column's.
        reading: how its cells are read.
        guess: whether a column of decimal commas is read without being asked: no comma parts the file's columns.
        start: number of the first row, from 0.
        words: whether words for classes are left as they are.
    """

    name: str
    reading: Reading
    guess: bool = False
    start: int = 0
    words: bool = False
    odd: list[OddCell] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    units: Counter[str] = field(default_factory=Counter)
    n_texts: int = 0
    row_units: np.ndarray | None = None
    unitless: bool = False

    def read(self, column: pa.ChunkedArray, units: np.ndarray | None = None) -> pa.ChunkedArray:
        """The cells as they are meant; ``column`` itself where nothing has to be done.

        Args:
            column: text or numbers.
            units: the unit of each row, where another column says it.
        """
        unit = None if units is not None or self.reading.unit is None else cells.plain_unit(self.reading.unit)
        if units is not None:
            said = ["" if cells.is_missing(text) else cells.plain_unit(text) for text in units]
            self.row_units = np.array(said, dtype=object)
        try:
            as_numbers(column, self.name, finite=self.reading.lenient)
            plain = True
        except DataError:
            plain = False
        if plain and unit is None:
            return column
        texts = as_text(column).astype(str)
        distinct, code = np.unique(texts, return_inverse=True)
        counts, self.n_texts = np.bincount(code, minlength=len(distinct)).tolist(), len(distinct)
        made = self._settle(distinct.tolist(), counts, unit)
        kinds = np.array([kind for _, kind in made], dtype=object)[code]
        values = np.array([text for text, _ in made], dtype=object)[code]
        if self.row_units is not None and self.reading.unit is not None:
            own = np.array([cells.read_cell(text).unit for text in distinct], dtype=object)[code]
            self.row_units[:] = np.where(self.row_units == "", own, self.row_units)
            for row in np.flatnonzero((own != "") & (own != self.row_units) & (kinds == "")):
                if not cells.alike(own[row], self.row_units[row]):
                    kinds[row], values[row] = cells.TWO_UNITS, None
        for row in np.flatnonzero(kinds.astype(bool)):
            self.odd.append(OddCell(self.name, self.start + int(row), str(kinds[row]), str(texts[row])))
        return pa.chunked_array([pa.array(values, pa.string())])

    def _settle(self, distinct: list[str], counts: list[int], unit: str | None) -> list[tuple[str | None, str]]:
        """For each text the text to read instead (None: no value), and its kind where it cannot be read."""
        gone = [cells.is_missing(text) for text in distinct]
        found = [cells.Cell("") if g else cells.read_cell(t) for g, t in zip(gone, distinct, strict=True)]
        words = {text.strip(): WORDS[text.strip().lower()] for text in distinct if text.strip().lower() in WORDS}
        if words and self.words and not any(cell.number for cell in found if cell.number not in ("0", "1")):
            self._note_words(words)
            fit = {*words, "0", "1"}
            return [
                (t, "") if t.strip() in fit else (None, "" if g else cells.OTHER)
                for g, t in zip(gone, distinct, strict=True)
            ]
        for cell, n in zip(found, counts, strict=True):
            self.units[cell.unit] += n * bool(cell.unit)
        comma, done = self._reads_commas(found), Counter[str]()
        if unit is not None and not any(self.units.values()):
            unit, self.unitless = None, any(cell.number for cell in found)
        made = [self._one(cell, comma, unit, done, n) for cell, n in zip(found, counts, strict=True)]
        if done["comma"]:
            self.notes.append(f"{self.name}: {done['comma']:,} cells with decimal commas were read, 4,62 as 4.62")
        self.note_qualifiers(done["qualifier"], "a qualifier (<, >, ~)")
        self.note_units(done["converted"], done["no unit"])
        return made

    def _one(
        self, cell: cells.Cell, comma: bool, unit: str | None, done: Counter[str], n: int
    ) -> tuple[str | None, str]:
        """A cell's text to read, and its kind where it cannot be read; what is done to it is counted."""
        if not cell.kind:
            return None, ""
        if cell.kind == cells.OTHER or (comma and "." in cell.number):
            return None, cells.OTHER
        if cell.comma and not comma:
            return None, cells.COMMA
        if cell.qualifier and self.reading.qualifiers == "refuse":
            return None, cells.QUALIFIER
        if cell.unit and self.reading.unit is None:
            return None, cells.UNIT
        done["comma"] += n * bool(cell.comma)
        done["qualifier"] += n * bool(cell.qualifier)
        if cell.qualifier and self.reading.qualifiers == "drop":
            return None, ""
        value: float | None = float(cell.number.replace(",", "."))
        if unit is not None and value is not None:
            value = cells.convert(value, cell.unit, unit)
            done["no unit" if value is None else "converted"] += n
        if value is not None and np.isinf(value) and self.reading.lenient:
            return None, cells.OTHER
        return None if value is None else repr(value), ""

    def _reads_commas(self, found: list[cells.Cell]) -> bool:
        """Whether commas are decimal: as asked, or where every cell fits and one at least can be nothing else."""
        if self.reading.decimal is not None:
            return self.reading.decimal == ","
        return self.guess and all(cells.commas(found))

    def no_units(self) -> DataError:
        """The error where a unit was asked for and no target has any."""
        return DataError(
            f"column {self.name!r} has no units to bring to {self.reading.unit}",
            hint="a unit stands behind each number (251.2 nM), or in a column named units or standard_units; "
            "--unit none reads values as they stand",
        )

    def by_unit_column(self, column: pa.ChunkedArray, name: str) -> pa.ChunkedArray:
        """Values brought to the unit that was asked for; a note where none was, and the column names several."""
        values, units = self._numbers(column), self.row_units
        if values is None or units is None:
            return column
        has = np.flatnonzero(~np.isnan(values))
        self.units = Counter(str(unit) for unit in units[has] if unit)
        if self.reading.unit is None:
            if len(self.units) > 1 and any(cells.plain_unit(unit) in cells.UNITS for unit in self.units):
                said = f"{self.name}: column {name!r} names several units{self._unit_counts()}, and values are read as"
                self.notes.append(
                    f"{said} they stand{f'; --unit {self._way()} brings them to one' * bool(self._way())}"
                )
            return column
        wanted = cells.plain_unit(self.reading.unit)
        brought = [cells.convert(float(v), str(u), wanted) for v, u in zip(values[has], units[has], strict=True)]
        values[has] = [np.nan if v is None else v for v in brought]
        lost = sum(v is None for v in brought)
        self.note_units(len(brought) - lost, lost)
        return pa.chunked_array([pa.array(values)])

    def by_relation_column(self, column: pa.ChunkedArray, relations: np.ndarray, name: str) -> pa.ChunkedArray:
        """Values whose relation is another than ``=`` taken out where that was asked, and counted anyway."""
        values = self._numbers(column)
        signs = np.array([re.sub(r"['\"\s]", "", str(text)) for text in relations])
        if values is None or any(s not in _EXACT and not cells.read_cell(f"{s}1").qualifier for s in set(signs)):
            return column  # a column of something else
        bound = ~np.isnan(values) & ~np.isin(signs, _EXACT)
        self.note_qualifiers(int(bound.sum()), f"<, > or ~ in column {name!r}")
        if not bound.any() or self.reading.qualifiers != "drop":
            if bound.any() and self.reading.qualifiers == "refuse":
                self.notes[-1] += "; --qualifiers drop takes them out"
            return column
        return pa.chunked_array([pa.array(np.where(bound, np.nan, values))])

    def _numbers(self, column: pa.ChunkedArray) -> np.ndarray | None:
        """The column as numbers; None where it holds anything else."""
        try:
            return as_numbers(column, self.name, finite=False)
        except DataError:
            return None

    def note_qualifiers(self, n: int, mark: str) -> None:
        """Say what became of labels with a qualifier."""
        fate = "were taken out" if self.reading.qualifiers == "drop" else "are read as if they were exact"
        self.notes += [f"{self.name}: {n:,} labels with {mark} {fate}"] * bool(n)

    def note_units(self, converted: int, lost: int) -> None:
        """Say which values were brought to another unit, and which could not be."""
        unit = self.reading.unit
        if converted or lost:
            self.notes.append(f"{self.name}: {converted:,} values were brought to {unit}{self._unit_counts()}")
        if lost:
            self.notes.append(f"{self.name}: {lost:,} values without a unit that can be brought to {unit} are missing")

    def _note_words(self, words: Mapping[str, str]) -> None:
        sides = {side: " and ".join(sorted(w for w, s in words.items() if s == side)[:3]) for side in "10"}
        told = ", ".join(f"{text} is class {side}" for side, text in sides.items() if text)
        self.notes.append(f"{self.name}: {told}")

    def _unit_counts(self) -> str:
        counts = [f"{unit} {n:,}" for unit, n in self.units.most_common(5) if n]
        return f" ({', '.join(counts)})" if counts else ""

    def _way(self) -> str:
        """The commonest unit that values can be brought to."""
        return next((unit for unit, n in self.units.most_common() if n and unit in cells.UNITS), "")

    def refusal(self) -> DataError:
        """What to say of the first cell that cannot be read."""
        first = self.odd[0]
        n = sum(cell.kind == first.kind for cell in self.odd)
        many = f" ({n:,} such cells)" if n > 1 else ""
        where = f"column {self.name!r} holds {first.text[:60]!r} in row {first.row + 1}"
        if first.kind == cells.COMMA:
            doubt = any(cells.read_cell(c.text).comma == cells.THOUSANDS for c in self.odd)
            doubt_words = "a decimal comma, or one of thousands" if doubt else "a decimal comma"
            hint = f"write decimals with a point, or say --decimal , (in Python decimal=',') {_WAYS}"
            return DataError(f"{where}: {doubt_words}{many}", hint=hint)
        if first.kind == cells.QUALIFIER:
            hint = "--qualifiers drop (in Python qualifiers='drop') leaves such labels out, strip reads the bare number"
            return DataError(f"{where}: a bound, no measured value{many}", hint=f"{hint} as exact, {_WAYS}")
        if first.kind == cells.UNIT:
            way = f"--unit {self._way()} brings all values to {self._way()}, {_WAYS}" if self._way() else ""
            return DataError(f"{where}: a number with a unit{self._unit_counts()}", hint=way or "write numbers alone")
        if first.kind == cells.TWO_UNITS and self.row_units is not None:
            beside = self.row_units[first.row - self.start]
            hint = f"correct the one that is wrong; molgraph data audit --unit {self.reading.unit} lists such cells"
            return DataError(f"{where}: its column of units says {str(beside)[:30]}{many}", hint=hint)
        if self.reading.decimal != "," or "." not in first.text:
            way = f"if these are classes, ask for {with_kind(self.name, 'multiclass')}"
            way = way if self.n_texts <= FEW else ""  # of nearly as many texts as rows no classes are made
            as_numbers(pa.chunked_array([[first.text]]), self.name, first.row, hint=way)
        return DataError(f"{where}, beside decimal commas", hint="write all decimals with a point, or all with a comma")
