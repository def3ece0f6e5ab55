"""Read the text of one cell of measured values (qualifier, number, unit), or say how it could be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from molgraph.base.errors import BadValueError, CellError, UnknownNameError
from molgraph.data.reading.units import MILLIONTHS, UNITS, plain_unit

MISSING_WORDS = ("", "na", "n/a", "#n/a", "nan", "null", "none", "-")
#: Words for the labels of a binary target. They are fixed, so that class 1 is the same in every file, whichever words
#: it holds.
WORDS = {
    **dict.fromkeys(("true", "yes", "active", "positive", "toxic", "t", "y", "pos"), "1"),
    **dict.fromkeys(("false", "no", "inactive", "negative", "nontoxic", "non-toxic", "f", "n", "neg"), "0"),
}
QUALIFIERS = ("refuse", "drop", "strip", "learn")
PLAIN, COMMA, THOUSANDS = "number", "decimal comma", "thousands"
QUALIFIER, UNIT, OTHER = "qualifier", "unit", "not a number"
TWO_UNITS = "two units"  # one in the cell, another in the column of units
SIGNS = "decimal sign"  # a comma or a point beside the other one, which may part thousands
#: kinds of cells that a way of reading the column decides about; a cell of another kind is a fault of its row
DECIDED = (COMMA, THOUSANDS, SIGNS, QUALIFIER, UNIT)

#: Other words, in small letters, that are units behind a number; so is whatever holds a % or a /.
_OTHER_UNITS = {"h", "hr", "min", "s", "k", "c", "°c", "da", "kda", "ev", *map(str.lower, UNITS)}
_NUMBER = r"[+-]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][+-]?\d+)?"
_UNIT = rf"[A-Za-zµμ%°][\w%°/·*^.\- ]*|{MILLIONTHS}|"
_CELL = re.compile(rf"(?P<qualifier><<|>>|[<>]=?|=[<>]?|[~≈≤≥]|ca\.|)\s*(?P<number>{_NUMBER})\s*(?P<unit>{_UNIT})")
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2},\d{3}")
_POINTS = re.compile(r"[+-]?[1-9]\d{0,2}\.\d{3}")
_DECIMAL = re.compile(r"[+-]?\d*,\d+(?:[eE][+-]?\d+)?")

_VERBS = "in train, evaluate and data curate (benchmarks read its table); molgraph data audit lists such cells"


@dataclass(frozen=True)
class Reading:
    """How cells of values are read.

    Args:
        decimal: ``,`` or ``.``, the decimal sign; None reads commas where a whole column leaves no doubt.
        qualifiers: what becomes of ``>8.0``: ``refuse`` it, ``drop`` the label, ``strip`` the sign, or ``learn`` that
            the value is beyond.
        unit: what all values are brought to, such as ``nM``; None refuses cells with units.
        lenient: whether cells that cannot be read become missing and are listed, instead of an error.
    """

    decimal: str | None = None
    qualifiers: str = "refuse"
    unit: str | None = None
    lenient: bool = False

    def __post_init__(self) -> None:
        if self.decimal not in (None, ".", ","):
            raise BadValueError(f"decimal is {self.decimal!r}", hint="a point or a comma: '.' or ','")
        if self.qualifiers not in QUALIFIERS:
            raise UnknownNameError(f"qualifiers is {self.qualifiers!r}", hint=f"one of {', '.join(QUALIFIERS)}")
        if self.unit == "none":  # for who evaluates a model that was trained with one
            object.__setattr__(self, "unit", None)
        if self.unit is not None and plain_unit(self.unit) not in UNITS:
            raise UnknownNameError(f"the unit {self.unit!r} is not known", hint=f"known: {', '.join(UNITS)}")


class OddCell(NamedTuple):
    """A cell that cannot be read: its column, its row (from 0), its kind, its text, the reason and what to do."""

    column: str
    row: int
    kind: str
    text: str
    reason: str = ""
    hint: str = ""


class CellText(NamedTuple):
    """What a cell says."""

    # ``number``, ``decimal comma``, ``thousands`` (``1,234``, which is one of the two), ``qualifier``, ``unit``
    # or ``not a number``; the first of them from the right that holds
    kind: str
    number: str = ""  # the number's text, its decimal sign as it stands
    qualifier: str = ""  # ``<``, ``>``, ``~``, ... or empty; ``=`` says nothing and is left out
    unit: str = ""  # with u for micro, or empty

    @property
    def comma(self) -> str:
        """Whether the number holds a comma: ``decimal comma``, ``thousands`` or empty."""
        return THOUSANDS if _THOUSANDS.fullmatch(self.number) else COMMA if _DECIMAL.fullmatch(self.number) else ""


def read_cell(text: str) -> CellText:
    """Take a cell apart.

    Example:
        >>> [read_cell(text).kind for text in ("4.62", "4,62", "1,234", "> 8.0", "251.2 nM", "high")]
        ['number', 'decimal comma', 'thousands', 'qualifier', 'unit', 'not a number']
        >>> read_cell("<= 3,5 µM")
        CellText(kind='qualifier', number='3,5', qualifier='<=', unit='uM')
    """
    match = _CELL.fullmatch(text.strip()) if text.isascii() or not _foreign(text) else None
    if match is None:
        return CellText(OTHER)
    qualifier, unit = match["qualifier"].replace("=<", "<=").replace("=>", ">="), plain_unit(match["unit"])
    if unit and unit.lower() not in _OTHER_UNITS and not re.search("[/%]", unit):
        return CellText(OTHER)
    cell = CellText(PLAIN, match["number"], "" if qualifier == "=" else qualifier, unit)
    return cell._replace(kind=QUALIFIER if cell.qualifier else UNIT if unit else cell.comma or PLAIN)


def side_of(qualifier: str) -> int:
    """1 for a value that lies above the number, -1 for one below, 0 for about it.

    Example:
        >>> [side_of(sign) for sign in (">", "<=", "~")]
        [1, -1, 0]
    """
    return 1 if qualifier[:1] in (">", "≥") else -1 if qualifier[:1] in ("<", "≤") else 0


def commas(cells: Iterable[CellText]) -> tuple[bool, bool]:
    """Whether all commas of cells can be decimal signs, as no number has a point; and whether one is nothing else.

    Example:
        >>> commas(map(read_cell, ("1,5", "2"))), commas(map(read_cell, ("1,234",))), commas([read_cell("1.5")])
        ((True, True), (True, False), (False, False))
    """
    fit, sure = True, False
    for cell in cells:
        fit &= bool(cell.comma) or not set(",.") & set(cell.number)
        sure |= cell.comma == COMMA
    return fit, sure


def points_are_decimal(cells: Iterable[CellText]) -> bool:
    """Whether points of cells can be nothing but decimal signs, also beside commas; so they can where there are none.

    Example:
        >>> [points_are_decimal(map(read_cell, texts)) for texts in (("1,5", "2.5"), ("1,5", "2.500"))]
        [True, False]
    """
    points = [cell.number for cell in cells if "." in cell.number]
    return not points or not all(map(_POINTS.fullmatch, points))


def is_missing(text: str) -> bool:
    """Whether a cell says that there is no value."""
    return text.strip().lower() in MISSING_WORDS


def refusal(name: str, odd: Sequence[OddCell], counts: str, unit: str) -> CellError:
    """The error for the first of some odd cells that another way of reading would read.

    Args:
        name: the column.
        odd: all odd cells of the column.
        counts: how many cells have each unit, in words, or empty.
        unit: the commonest unit that values can be brought to, or empty.
    """
    first = next(cell for cell in odd if cell.kind in DECIDED)
    n = sum(cell.kind == first.kind for cell in odd)
    many = f" ({n:,} such cells)" if n > 1 else ""
    if first.kind == SIGNS:
        words = "a decimal comma beside points, or one of them parts thousands"
        hint = "write all decimals with a point, or all with a comma"
    elif first.kind == COMMA:
        thousands = any(read_cell(cell.text).comma == THOUSANDS for cell in odd)
        words = "a decimal comma, or one of thousands" if thousands else "a decimal comma"
        hint = f"write decimals with a point, or say --decimal , (in Python decimal=',') {_VERBS}"
    elif first.kind == QUALIFIER:
        words = "a bound, no measured value"
        hint = "--qualifiers drop (in Python and a benchmark's [[table]] qualifiers='drop') leaves such labels out"
        hint += f", strip reads the bare number as exact, learn (train, evaluate) takes it as a limit, {_VERBS}"
    else:
        words, many = "a number with a unit", counts
        hint = f"--unit {unit} brings all values to {unit}, {_VERBS}" if unit else "write numbers alone"
    where = f"column {name!r} holds {first.text[:60]!r} in row {first.row + 1}"
    return CellError(f"{where}: {words}{many}", hint=hint)


def _foreign(text: str) -> bool:
    """Whether a text holds signs beyond ASCII that no cell needs: other scripts' digits, dashes."""
    return not set(re.sub(r"[\x00-\x7f]", "", text)) <= set("µμ°·≈≤≥")
