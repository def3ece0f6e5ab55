"""Parse the targets that a person asks for (``y``, ``class:multiclass``) and read their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import cast, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Kind, Target
from molgraph.base.errors import AmbiguousColumnError, LabelError
from molgraph.base.packed import Packed, offsets_of
from molgraph.base.table import LevelName
from molgraph.data.labels import misfits
from molgraph.data.reading.cells import OTHER, WORDS, OddCell
from molgraph.data.reading.chunk import Chunk
from molgraph.data.reading.columns import MISSING_WORDS, as_text, resolve, with_kind
from molgraph.data.reading.numbers import advice, as_numbers, no_number, parse_numbers

MAX_CLASSES = 1000
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MARKER = re.compile(r"\[(\S+)\]\s+(?=\S)")  # RDKit's property lists may begin with their word for a missing value
_PROPERTY = re.compile(r"^(atom|bond)\.(d|i|b|)prop\.")  # how RDKit names lists of atom or bond properties in SD files


@dataclass(frozen=True)
class Asked:
    """One target as a person gave it: a column, its level, and a kind where one was given."""

    column: str
    kind: Kind | None = None
    target: Target | None = None
    level: LevelName = "row"

    @property
    def name(self) -> str:
        """The target's name: the column's, without the words that RDKit's property lists begin with."""
        return self.column if self.level == "row" else _PROPERTY.sub("", self.column)


def parse_targets(given: str | Target | Iterable[str | Target] | None, names: Sequence[str]) -> tuple[Asked, ...]:
    """Read the notation of targets.

    A target is a column's name, or a name and a kind: ``class:multiclass``, ``toxic:binary``,
    ``score:regression``. Without a kind, labels that are all 0 or 1 make it binary, else it is a regression.
    A target of atoms or bonds, whose cells hold a list of values, has its level behind its name: ``charge:atom``,
    ``order:bond:regression``. In an SD file it may be one of RDKit's property lists, ``atom.dprop.charge``.
    For 1 and 0 a column may hold true and false, t and f, yes and no, y and n, active and inactive, positive and
    negative, pos and neg, or toxic and nontoxic.
    A ready ``Target`` (with its classes or bounds, as from a model file) may stand for a text.

    Args:
        given: one target or several, or a text with commas between them.
        names: columns of the source.

    Raises:
        DataError: a name or kind that is not known, with the nearest ones, or a target twice.

    Example:
        >>> [(a.column, a.kind) for a in parse_targets("y, class:multiclass", ["smiles", "y", "class"])]
        [('y', None), ('class', 'multiclass')]
    """
    if given is None:
        return ()
    if isinstance(given, str):
        given = [given] if given in names else [part.strip() for part in given.split(",") if part.strip()]
    elif isinstance(given, Target):
        given = [given]
    asked = tuple(_parse(one, names) for one in given)
    columns = [a.column for a in asked]
    for column in columns:
        if columns.count(column) > 1:
            raise AmbiguousColumnError(f"target {column!r} is given twice", hint="name each target once")
    return asked


def _parse(one: str | Target, names: Sequence[str]) -> Asked:
    if isinstance(one, Target):
        return Asked(_column(one.name, one.level, names), one.kind, one, one.level)
    if one not in names and ":" in one:
        name, _, kind = one.rpartition(":")
        if kind in ("atom", "bond"):
            return Asked(_column(name, cast(LevelName, kind), names), level=cast(LevelName, kind))
        if name not in names and name.endswith((":atom", ":bond")):
            return replace(_parse(name, names), kind=_parse(f"_:{kind}", ["_"]).kind)
        if kind == "bounded":
            raise LabelError(
                f"{one!r} needs its bounds", hint="in Python: Target(name, 'bounded', bounds=(low, high)) as the target"
            )
        if kind in get_args(Kind):
            return Asked(resolve(name, names, "target"), kind)  # type: ignore[arg-type]
        if resolve(name, [*names, name], "target") in names:
            raise LabelError(
                f"{kind!r} is no kind of target",
                hint="write NAME:regression, NAME:binary or NAME:multiclass; of atoms or bonds NAME:atom, NAME:bond",
            )
    return Asked(resolve(one, names, "target"))


def _column(name: str, level: LevelName, names: Sequence[str]) -> str:
    """The column of a target; of one below the row level maybe a property list of RDKit's."""
    lists = [n for n in names if n.startswith(f"{level}.") and _PROPERTY.sub("", n) == name]
    if level != "row" and name not in names and len(lists) == 1:
        return lists[0]
    return resolve(name, names, "target")


def is_settled(asked: Asked) -> bool:
    """Whether a target needs no look at the rows."""
    if asked.kind == "multiclass":
        return asked.target is not None and bool(asked.target.classes)
    return asked.kind is not None


def decide(asked: Sequence[Asked], chunks: Iterable[Chunk]) -> tuple[Target, ...]:
    """The targets, with the kinds and classes that the rows show where they were not given."""
    classes: dict[Asked, set[str]] = {one: set() for one in asked}
    binary: dict[Asked, set[bool]] = {one: set() for one in asked}
    for chunk in chunks:
        for one in asked:
            if is_settled(one) or False in binary[one]:
                continue
            column = chunk.cells(one.column)
            if one.level != "row":  # a cell that cannot be read is a matter of its row
                column = flat_values(column, numbers=one.kind is None)
            if one.kind == "multiclass":
                classes[one] |= {label for label in np.unique(_labels(column)) if label}
                if len(classes[one]) > MAX_CLASSES:
                    raise LabelError(
                        f"target {one.column!r} has more than {MAX_CLASSES} classes",
                        hint=f"is it a number? then {with_kind(one.column, 'regression')}",
                    )
                continue
            values, _ = numbers_of(column, Target(one.column), chunk.start, words=True)
            values = values[np.isfinite(values)]
            binary[one] |= {bool(np.isin(values, (0.0, 1.0)).all())} if len(values) else set()
    return tuple(_decided(one, classes[one], binary[one] == {True}) for one in asked)


def _decided(asked: Asked, classes: set[str], binary: bool) -> Target:
    if asked.target is not None and (asked.kind != "multiclass" or asked.target.classes):
        return replace(asked.target, name=asked.name)
    kind = asked.kind or ("binary" if binary else "regression")
    return Target(asked.name, kind, asked.level, tuple(sorted(classes, key=_class_order)))


def _class_order(label: str) -> tuple[int, float, str]:
    """Numbers by size, then words by the alphabet."""
    try:
        return (0, float(label), label)
    except ValueError:
        return (1, 0.0, label)


def _labels(column: pa.ChunkedArray) -> np.ndarray:
    """Class labels as text: trimmed, whole numbers without a decimal point, missing ones empty."""
    if pa.types.is_floating(column.type):
        values = as_numbers(column, "")
        return np.array(["" if v != v else f"{v:.15g}" for v in values], dtype=object)
    texts = as_text(column)
    distinct, inverse = np.unique(texts.astype(str), return_inverse=True)
    cleaned = np.array([_clean(t) for t in distinct.tolist()], dtype=object)
    return cleaned[inverse] if len(distinct) else texts


def _clean(text: str) -> str:
    """A label without blanks; 1.0 is 1, as a whole number that pandas wrote, while 007 and 1E2 are words."""
    text = text.strip()
    return "" if text.lower() in MISSING_WORDS else re.sub(r"^(-?(?:0|[1-9]\d*))\.0+$", r"\1", text, flags=re.ASCII)


def numbers_of(
    column: pa.ChunkedArray, target: Target, start: int, *, words: bool = False
) -> tuple[np.ndarray, list[OddCell]]:
    """One target's values, float64 [n], NaN where missing, and the cells that it cannot have, which are NaN too.

    A multiclass target's values are codes of its classes. With ``words``, and for a binary target, such words as true
    and false are 1 and 0.
    """
    name, odd = target.name, list[OddCell]()

    def fault(row: int, text: str, why: str, hint: str) -> None:
        odd.append(OddCell(name, start + row, OTHER, text, why, hint))

    if target.kind == "multiclass":
        labels = _labels(column)
        code = {label: float(i) for i, label in enumerate(target.classes)} | {"": np.nan}
        for row in [i for i, label in enumerate(labels) if label not in code]:
            hint = f"its classes are: {', '.join(target.classes)}"[:300]
            fault(row, labels[row], f"target {name!r} holds {labels[row]!r}, which is none of its classes", hint)
        return np.array([code.get(label, np.nan) for label in labels], dtype=np.float64), odd
    if words or target.kind == "binary":
        column = _words_to_digits(column)
    values, wrong = parse_numbers(column, name)
    texts = as_text(column)[wrong]
    hint = f"ask for {with_kind(name, 'multiclass')}"
    hint = (
        f"a binary target is 1 or 0, or in words {', '.join(WORDS)}; for others {hint}"
        if target.kind == "binary"
        else (f"if these are classes, {hint}")
    )
    for row, text in zip(wrong.tolist(), map(str.strip, texts), strict=True):
        fault(row, text, no_number(name, text), advice(text) or hint)
    misfit, rule, hint = misfits(target, values)
    for row in misfit.tolist():
        fault(row, f"{values[row]:g}", f"target {name!r} is {values[row]:g}; {rule}", hint)
    values[misfit] = np.nan
    return values, odd


def _words_to_digits(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    words = pc.ascii_lower(pc.utf8_trim_whitespace(column))
    found = pc.index_in(words, value_set=pa.array(list(WORDS), words.type))
    return pc.coalesce(pc.take(pa.array(list(WORDS.values()), words.type), found), column)


def split_list(text: str) -> list[str] | None:
    """The values of a cell; None where the cell is missing.

    JSON (``[0.1, null]``), the texts of Python's and numpy's lists, and RDKit's property lists (``0.1 n/a``).

    Example:
        >>> split_list("[0.1, null]"), split_list("0.1 n/a\\n0.3"), split_list("[?] 1 ?"), split_list("[]")
        (['0.1', 'null'], ['0.1', 'n/a', '0.3'], ['1', ''], [])
        >>> split_list("NA") is None
        True
    """
    text = text.strip()
    if text.lower() in MISSING_WORDS:
        return None
    missing = None
    if found := _MARKER.match(text):
        missing, text = found[1], text[found.end() :]
    if text[0] in "[(" and text[-1] in "])":
        text = text[1:-1].strip()
    values = text.split(",") if "," in text else text.split()
    return ["" if value == missing else value.strip().strip("\"'") for value in values]


def flat_values(column: pa.ChunkedArray, *, numbers: bool) -> pa.ChunkedArray:
    """The values of all cells, one after another, as text; with ``numbers`` those alone that are some."""
    values = [value for cell in map(split_list, as_text(column)) if cell for value in cell]
    found = pa.chunked_array([pa.array(values, pa.string())])
    return found.filter(pc.match_substring_regex(found, _NUMBER)) if numbers else found


def read_lists(column: pa.ChunkedArray, target: Target, sizes: np.ndarray) -> tuple[Packed, np.ndarray]:
    """The values of a target below the row level; a cell that cannot be used has a reason and no values.

    ``sizes`` are the atoms (or bonds) of each row's molecule; -1 where there is no molecule.
    """
    cells = [split_list(text) for text in as_text(column)]
    reason = np.full(len(cells), "", dtype=object)
    for i, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        if cell is not None and len(cell) != size:
            if size >= 0:
                reason[i] = f"{target.name} has {len(cell)} values, the molecule {size} {target.level}s"
            cells[i] = None

    counts = np.array([len(cell or ()) for cell in cells], dtype=np.int64)
    at, cell_of = offsets_of(counts), np.arange(len(cells)).repeat(counts)
    texts = pa.array([value for cell in cells if cell for value in cell], pa.string())
    values, odd = numbers_of(pa.chunked_array([texts]), target, 0)
    for one in reversed(odd):  # the first fault of a cell is the one that stays
        i = cell_of[one.row]
        reason[i], counts[i] = f"{target.level} {one.row - at[i] + 1}: {one.why}", 0
    return Packed(offsets_of(counts), values[counts[cell_of] > 0]), reason
