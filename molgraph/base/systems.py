"""Read the table of published methods, and define ``SystemCard``, the description of one that is implemented."""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from pathlib import Path

TABLE = Path(__file__).with_name("systems.csv")


@dataclass(frozen=True)
class System:
    """A row of the table.

    Args:
        id: the word that stands for it everywhere, such as ``maml``.
        paper: its source.
        family: such as ``meta-few-shot``.
        wave: the package of work that it enters with, or ``built`` for those that were there first.
        summary: what a chemist gets of it, in one line.
    """

    id: str
    paper: str
    family: str
    wave: str
    summary: str


@dataclass(frozen=True)
class SystemCard:
    """A published system that a registered thing implements.

    Args:
        id: of the table, or another published name.
        left_out: what of the paper is left out; empty where it is whole.
        off: what takes the mechanism out of ``command``: another name in the place of the thing's own, or options.
        beside: the rows that every effect is printed beside.
        command: one shell command that shows it on data that comes with molgraph, where it is not that of its kind.
        modules: further modules that hold the mechanism; results are stale once one of them changes.
        part: whether only a part of the system stands, so that it is still listed as missing.
    """

    id: str
    left_out: str = ""
    off: str = ""
    beside: tuple[str, ...] = ()
    command: str = ""
    modules: tuple[str, ...] = ()
    part: bool = False


@cache
def table() -> dict[str, System]:
    """All systems of the table by id, in its order.

    Example:
        >>> len(table()), table()["maml"].family
        (253, 'meta-few-shot')
    """
    with TABLE.open(encoding="utf-8", newline="") as file:
        return {row["id"]: System(**row) for row in csv.DictReader(file)}
