"""Define splitters: functions that group the rows of a table or assign them to parts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeVar

import numpy as np

from molgraph.base.errors import BadValueError, UnknownNameError, nearest
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.data.table import Table

#: words that name a part in users' and other people's files and columns: 0 train, 1 valid, 2 test
WORDS = {"train": 0, "training": 0, "valid": 1, "val": 1, "validation": 1, "dev": 1, "test": 2, "testing": 2}
T = TypeVar("T", bound=Callable)
CROSSED = "its two entities fall into different parts"


@dataclass(frozen=True)
class Task:
    """What a splitter is asked to do.

    Args:
        table: the whole table.
        rows: int64, the rows that may be used: those that are ``ok``.
        fractions: train, valid, test.
        seed: what shuffling begins from.
        params: the splitter's own settings, defaults filled in.
        left_out: row and reason of those that may not be used.
        parents: object [n], stereo-free parents of the molecules, where the search for leaks needs them.
    """

    table: Table
    rows: np.ndarray
    fractions: tuple[float, float, float]
    seed: int
    params: Mapping[str, Any]
    left_out: Mapping[int, str] = field(default_factory=dict)
    parents: np.ndarray | None = None


@dataclass(frozen=True)
class Grouping:
    """Rows and the group of each: rows of one group stay in one part.

    Args:
        rows: int64 [m].
        group_of: int64 [m], 0, 1, ... in order of first appearance.
        left_out: row and reason of those that could not be grouped.
        second: int64 [m], a second group of each row, or None. Both kinds of group are divided, and a row whose two
            groups fall into different parts is left out.
    """

    rows: np.ndarray
    group_of: np.ndarray
    left_out: Mapping[int, str] = field(default_factory=dict)
    second: np.ndarray | None = None

    @property
    def sizes(self) -> list[np.ndarray]:
        """Rows of each group, and of each second group where there are some."""
        return [np.bincount(groups) for groups in (self.group_of, self.second) if groups is not None]

    def fill(self, fill: Callable[[np.ndarray, int], np.ndarray], seed: int) -> list[np.ndarray]:
        """The part or fold of each row, and that of its second group; ``fill`` gives those of groups of given sizes."""
        seeds = (seed, derive(seed, "second"))
        kinds = zip((self.group_of, self.second), self.sizes, seeds, strict=False)
        return [fill(sizes, its_seed)[groups] for groups, sizes, its_seed in kinds]

    def parts(self, part_of: np.ndarray) -> SplitParts:
        """The parts from the part of each row: 0 train, 1 valid, 2 test, -1 where its two groups disagree."""
        crossed = dict.fromkeys(self.rows[part_of < 0].tolist(), CROSSED)
        return SplitParts.of(self.rows, part_of, {**self.left_out, **crossed})


@dataclass(frozen=True)
class SplitParts:
    """The parts of a splitter: row numbers of each, what was left out, and plain values for the split's ``params``."""

    train: np.ndarray
    valid: np.ndarray
    test: np.ndarray
    left_out: Mapping[int, str] = field(default_factory=dict)
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, rows: np.ndarray, part_of: np.ndarray, left_out: Mapping[int, str]) -> SplitParts:
        """Parts from the rows [m] and the part of each: 0 train, 1 valid, 2 test."""
        return cls(rows[part_of == 0], rows[part_of == 1], rows[part_of == 2], left_out)


@dataclass(frozen=True)
class Splitter:
    """One way to split, registered under kind ``split``; exactly one of ``group`` and ``partition`` is given.

    Args:
        group: says which rows stay together; molgraph then fills the parts and folds.
        partition: makes the parts itself.
        own_folds: says which fold of the user's own tests each row, for a cross-validation; 0, 1, ... in ``group_of``.
        balanced: whether groups larger than half a part go to train.
        stratified: whether each part gets its share of every class, as well as whole groups allow.
        grouped: whether no form of a training molecule can be tested, so that leaks need no search.
        reads: whether it leaves out by itself what cannot be read.
        reproduces: whether it is somebody else's: it is asked of molecules as they are written, and what leaks
            is printed.
        uses_fractions: whether the fractions matter.
        asks: the question that a score on this split answers, in words for people.
        params: names of the splitter's own settings with their defaults.
        sources: those of them that say where rows stand written; the rows count, not the places, which differ from
            machine to machine: they are kept out of the split and its hash.
    """

    name: str
    group: Callable[[Task], Grouping] | None = None
    partition: Callable[[Task], SplitParts] | None = None
    own_folds: Callable[[Task], Grouping] | None = None
    balanced: bool = False
    stratified: bool = False
    grouped: bool = False
    reads: bool = False
    reproduces: bool = False
    uses_fractions: bool = True
    asks: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    sources: tuple[str, ...] = ()

    def settings(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """The settings with defaults filled in; an unknown one, or words for a number, raises ``UsageError``."""
        for name, value in values.items():
            if name not in self.params:
                hint = nearest(name, self.params) if self.params else "it has none"
                raise UnknownNameError(f"the split {self.name!r} has no setting {name!r}", hint=hint)
            default = self.params[name]
            fits = {int: (int,), float: (int, float)}.get(type(default))
            if fits and (not isinstance(value, fits) or isinstance(value, bool)):
                kind = "a number" if float in fits else "a whole number"
                message = f"the setting {name!r} of {self.name!r} is {value!r}, not {kind}"
                raise BadValueError(message, hint=f"such as {default}")
        return {**self.params, **values}


def register_split(
    role: Literal["group", "partition"], name: str, summary: str, paper: str = "", **settings: Any
) -> Callable[[T], T]:
    """Register the decorated function as a splitter.

    Args:
        role: whether it says which rows stay together, or makes the parts itself.
        name: the splitter's name.
        summary: one line for people.
        paper: the source.
        settings: other fields of ``Splitter``.
    """

    def add(function: T) -> T:
        fields: dict[str, Any] = {role: function, **settings}
        register("split", name, summary=summary, paper=paper)(Splitter(name, **fields))
        return function

    return add


def agreed(parts: np.ndarray, *others: np.ndarray) -> np.ndarray:
    """The part that all arrays name; -1 where they differ."""
    for other in others:
        parts = np.where(parts == other, parts, -1)
    return parts


def number(keys: Iterable[Any]) -> np.ndarray:
    """int64 [n]: equal keys get equal numbers 0, 1, ... in order of first appearance.

    Example:
        >>> number(["b", "a", "b"]).tolist()
        [0, 1, 0]
    """
    code_of: dict[Any, int] = {}
    return np.fromiter((code_of.setdefault(key, len(code_of)) for key in keys), np.int64)
