"""Parse the targets that a person asks for (``y``, ``class:multiclass``) and read their numbers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import cast, get_args

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Kind, Target
from molgraph.base.errors import AmbiguousColumnError, LabelError
from molgraph.base.packed import Packed, offsets_of
from molgraph.base.table import LevelName
from molgraph.data.labels import misfits, with_kind
from molgraph.data.reading.cells import OTHER, WORDS, OddCell, is_missing
from molgraph.data.reading.chunk import Chunk, as_text
from molgraph.data.reading.names import resolve
from molgraph.data.reading.numbers import advice, no_number, parse_numbers

MAX_CLASSES = 1000
_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MARKER = re.compile(r"\[(\S+)\]\s+(?=\S)")  # RDKit's property lists may begin with their word for a missing value
_PROPERTY = re.compile(r"^(atom|bond)\.(d|i|b|)prop\.")  # how RDKit names lists of atom or bond properties in SD files


@dataclass(frozen=True)
class TargetColumn:
    """A column that a person named as a target: its level, and a kind where one was named."""

    column: str
    kind: Kind | None = None
    target: Target | None = None
    level: LevelName = "row"

    @property
    def name(self) -> str:
        """The target's name: the column's, without the words that RDKit's property lists begin with."""
        return self.column if self.level == "row" else _PROPERTY.sub("", self.column)

    @property
    def is_settled(self) -> bool:
        """Whether it needs no look at the rows."""
        if self.kind == "multiclass":
            return self.target is not None and bool(self.target.classes)
        return self.kind is not None


def parse_targets(
    targets: str | Target | Iterable[str | Target] | None, names: Sequence[str]
) -> tuple[TargetColumn, ...]:
    """Read the notation of targets.

    A target is a column's name, or a name and a kind: ``class:multiclass``, ``toxic:binary``,
    ``score:regression``. Without a kind, labels that are all 0 or 1 make it binary, else it is a regression.
    A target of atoms or bonds, whose cells hold a list of values, has its level behind its name: ``charge:atom``,
    ``order:bond:regression``. In an SD file it may be one of RDKit's property lists, ``atom.dprop.charge``.
    For 1 and 0 a column may hold true and false, t and f, yes and no, y and n, active and inactive, positive and
    negative, pos and neg, or toxic and nontoxic.
    A name with a star stands for all columns that match it: ``SR-*``, or ``task_*:binary``.
    A ready ``Target`` (with its classes or bounds, as from a model file) may stand for a text.

    Args:
        targets: one target or several, or a text with commas between them.
        names: columns of the source.

    Raises:
        DataError: a name or kind that is not known, with the nearest ones, or a target twice.

    Example:
        >>> [(a.column, a.kind) for a in parse_targets("y, class:multiclass", ["smiles", "y", "class"])]
        [('y', None), ('class', 'multiclass')]
        >>> [a.column for a in parse_targets("SR-*", ["smiles", "SR-HSE", "NR-AR", "SR-p53"])]
        ['SR-HSE', 'SR-p53']
    """
    if targets is None:
        return ()
    if isinstance(targets, str):
        targets = [targets] if targets in names else [part.strip() for part in targets.split(",") if part.strip()]
    elif isinstance(targets, Target):
        targets = [targets]
    targets = [one for target in targets for one in _matching(target, names)]
    parsed = tuple(_parse(target, names) for target in targets)
    columns = [target.column for target in parsed]
    for column in columns:
        if columns.count(column) > 1:
            raise AmbiguousColumnError(f"target {column!r} is given twice", hint="name each target once")
    return parsed


def _matching(target: str | Target, names: Sequence[str]) -> list[str | Target]:
    """The columns that a name with a star stands for, with the kind behind it; any other name as it is."""
    if not isinstance(target, str) or "*" not in target or target in names:
        return [target]
    pattern, _, kind = target.partition(":")
    matches: list[str | Target] = [name + (kind and f":{kind}") for name in names if fnmatchcase(name, pattern)]
    return matches or [target]


def _parse(target: str | Target, names: Sequence[str]) -> TargetColumn:
    if isinstance(target, Target):
        return TargetColumn(_column(target.name, target.level, names), target.kind, target, target.level)
    if target not in names and ":" in target:
        name, _, kind = target.rpartition(":")
        if kind in ("atom", "bond"):
            level = cast(LevelName, kind)
            return TargetColumn(_column(name, level, names), level=level)
        if name not in names and name.endswith((":atom", ":bond")):
            return replace(_parse(name, names), kind=_parse(f"_:{kind}", ["_"]).kind)
        if kind == "bounded":
            hint = "in Python: Target(name, 'bounded', bounds=(low, high)) as the target"
            raise LabelError(f"{target!r} needs its bounds", hint=hint)
        if kind in get_args(Kind):
            return TargetColumn(resolve(name, names, "target"), kind)  # type: ignore[arg-type]
        if resolve(name, [*names, name], "target") in names:
            hint = "write NAME:regression, NAME:binary or NAME:multiclass; of atoms or bonds NAME:atom, NAME:bond"
            raise LabelError(f"{kind!r} is no kind of target", hint=hint)
    return TargetColumn(resolve(target, names, "target"))


def _column(name: str, level: LevelName, names: Sequence[str]) -> str:
    """The column of a target; of one below the row level maybe a property list of RDKit's."""
    lists = [n for n in names if n.startswith(f"{level}.") and _PROPERTY.sub("", n) == name]
    if level != "row" and name not in names and len(lists) == 1:
        return lists[0]
    return resolve(name, names, "target")


def decide(columns: Sequence[TargetColumn], chunks: Iterable[Chunk]) -> tuple[Target, ...]:
    """The targets, with the kinds and classes that the rows show where they were not named."""
    classes: dict[TargetColumn, set[str]] = {column: set() for column in columns}
    binary: dict[TargetColumn, set[bool]] = {column: set() for column in columns}
    for chunk in chunks:
        for column in columns:
            if column.is_settled or False in binary[column]:
                continue
            cells = chunk.cells(column.column)
            if column.level != "row":  # a cell that cannot be read is a matter of its row
                cells = _flat_values(cells, numbers=column.kind is None)
            if column.kind == "multiclass":
                classes[column] |= {label for label in np.unique(_labels(cells)) if label}
                if len(classes[column]) > MAX_CLASSES:
                    hint = f"is it a number? then {with_kind(column.column, 'regression')}"
                    raise LabelError(f"target {column.column!r} has more than {MAX_CLASSES} classes", hint=hint)
                continue
            values, _ = numbers_of(cells, Target(column.column), chunk.start, words=True)
            values = values[np.isfinite(values)]
            binary[column] |= {bool(np.isin(values, (0.0, 1.0)).all())} if len(values) else set()
    return tuple(_target(column, classes[column], binary[column] == {True}) for column in columns)


def _target(column: TargetColumn, classes: set[str], binary: bool) -> Target:
    if column.target is not None and (column.kind != "multiclass" or column.target.classes):
        return replace(column.target, name=column.name)
    kind = column.kind or ("binary" if binary else "regression")
    return Target(column.name, kind, column.level, tuple(sorted(classes, key=_class_order)))


def _class_order(label: str) -> tuple[int, float, str]:
    """Numbers by size, then words by the alphabet."""
    with suppress(ValueError):
        return (0, float(label), label)
    return (1, 0.0, label)


def _labels(column: pa.ChunkedArray) -> np.ndarray:
    """Class labels as text: trimmed, whole numbers without a decimal point, missing ones empty."""
    if pa.types.is_floating(column.type):
        values, _ = parse_numbers(column, "", finite=False)
        return np.array(["" if v != v else f"{v:.15g}" for v in values], dtype=object)
    codes, texts = pd.factorize(as_text(column))
    # 1.0 is 1, as a whole number that pandas wrote, while 007 and 1E2 are words
    clean = [re.sub(r"^(-?(?:0|[1-9]\d*))\.0+$", r"\1", text.strip(), flags=re.ASCII) for text in texts]
    return np.array(["" if is_missing(text) else text for text in clean], dtype=object)[codes]


def numbers_of(
    column: pa.ChunkedArray, target: Target, start: int, *, words: bool = False
) -> tuple[np.ndarray, list[OddCell]]:
    """One target's values, float64 [n], NaN where missing, and the cells that it cannot have, which are NaN too.

    A multiclass target's values are codes of its classes. With ``words``, and for a binary target, such words as true
    and false are 1 and 0.
    """
    name, odd = target.name, list[OddCell]()

    def fault(row: int, text: str, reason: str, hint: str) -> None:
        odd.append(OddCell(name, start + row, OTHER, text, reason, hint))

    if target.kind == "multiclass":
        labels = _labels(column)
        code = {label: float(i) for i, label in enumerate(target.classes)} | {"": np.nan}
        for row in [i for i, label in enumerate(labels) if label not in code]:
            hint = f"its classes are: {', '.join(target.classes)}"[:300]
            fault(row, labels[row], f"target {name!r} holds {labels[row]!r}, which is none of its classes", hint)
        return np.array([code.get(label, np.nan) for label in labels], dtype=np.float64), odd
    values, wrong = parse_numbers(column, name, words=words or target.kind == "binary")
    texts = as_text(column)[wrong]
    for_others = f"a binary target is 1 or 0, or in words {', '.join(WORDS)}; for others"
    hint = for_others if target.kind == "binary" else "if these are classes,"
    hint += f" ask for {with_kind(name, 'multiclass')}"
    for row, text in zip(wrong.tolist(), map(str.strip, texts), strict=True):
        fault(row, text, no_number(name, text), advice(text) or hint)
    misfit, rule, hint = misfits(target, values)
    for row in misfit.tolist():
        fault(row, f"{values[row]:g}", f"target {name!r} is {values[row]:g}; {rule}", hint)
    values[misfit] = np.nan
    return values, odd


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
    if is_missing(text):
        return None
    missing = None
    if marker := _MARKER.match(text):
        missing, text = marker[1], text[marker.end() :]
    if text[0] in "[(" and text[-1] in "])":
        text = text[1:-1].strip()
    values = text.split(",") if "," in text else text.split()
    return ["" if value == missing else value.strip().strip("\"'") for value in values]


def _flat_values(column: pa.ChunkedArray, *, numbers: bool) -> pa.ChunkedArray:
    """The values of all cells, one after another, as text; with ``numbers`` those alone that are some."""
    values = [value for cell in map(split_list, as_text(column)) if cell for value in cell]
    texts = pa.chunked_array([pa.array(values, pa.string())])
    return texts.filter(pc.match_substring_regex(texts, _NUMBER)) if numbers else texts


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
    for value in reversed(odd):  # the first fault of a cell is the one that stays
        i = cell_of[value.row]
        reason[i], counts[i] = f"{target.level} {value.row - at[i] + 1}: {value.reason}", 0
    return Packed(offsets_of(counts), values[counts[cell_of] > 0]), reason
