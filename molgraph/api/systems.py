"""List the published methods that molgraph implements, each with its command and the state of its checks."""

from __future__ import annotations

import ast
import csv
import hashlib
import inspect
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from molgraph.api.built_system import Built
from molgraph.api.catalogue import command_of
from molgraph.api.verb_systems import VERBS
from molgraph.api.verb_systems_generation import GENERATION_VERBS
from molgraph.base import registry
from molgraph.base.registry import Entry
from molgraph.base.resources import shipped_dir
from molgraph.base.systems import System, SystemCard, table

STATES = ("absent", "built", "exact", "works", "honest null", "stale")


class Check(NamedTuple):
    """A line of the results: a check that was run, with its sabotage."""

    system: str
    rung: str
    check: str
    outcome: str
    expected: str
    got: str
    beside: str
    seconds: str
    commit: str
    source: str


@dataclass(frozen=True)
class Status:
    """Where a system stands.

    Args:
        id: of the table, or another published name.
        system: its row of the table, if it has one.
        built: what implements it.
        checks: what its checks found.
        state: absent, built, exact, works, honest null or stale.
    """

    id: str
    system: System | None
    built: tuple[Built, ...]
    checks: tuple[Check, ...]
    state: str

    @property
    def shown(self) -> str:
        """The state, and whether a part alone stands."""
        return self.state + ", in part" * bool(self.built and self.missing)

    @property
    def missing(self) -> bool:
        """Whether all or a part of it is still to be written."""
        return not self.built or all(entry.card.part for entry in self.built)

    def matches(self, words: str) -> bool:
        """Whether each of some words stands in its id, paper, summary, or what implements it."""
        row = self.system
        names = [f"{entry.name} {entry.place} {entry.paper}" for entry in self.built]
        text = " ".join([self.id, *([row.paper, row.family, row.summary] if row else []), *names]).lower()
        return all(word in text for word in words.lower().split())


def built() -> list[Built]:
    """The verbs, and every registered thing with a card, by id and name.

    Example:
        >>> next(each.place for each in built() if each.card.id == "dmpnn")
        'molgraph/models/dmpnn.py'
    """
    entries = [registry.entry(kind, name) for kind in registry.kinds() for name in registry.names(kind)]
    systems = [_built(entry, card) for entry in entries for card in entry.systems]
    return sorted([*VERBS, *GENERATION_VERBS, *systems], key=lambda each: (each.card.id, each.kind, each.name))


def _built(entry: Entry, card: SystemCard) -> Built:
    value = entry.value if inspect.isclass(entry.value) or inspect.isfunction(entry.value) else type(entry.value)
    return Built(card, entry.kind, entry.name, value.__module__, entry.paper, card.command or command_of(entry))


def statuses(results: Path | None = None) -> list[Status]:
    """All systems of the table in its order, then other published names that are implemented.

    Args:
        results: the file of results; the one that ships with molgraph if not given.
    """
    by_id: dict[str, list[Built]] = {}
    for entry in built():
        by_id.setdefault(entry.card.id, []).append(entry)
    checks = read_checks(results)
    others = [name for name in by_id if name not in table()]
    result = []
    for name in [*table(), *others]:
        here, rows = tuple(by_id.get(name, ())), tuple(row for row in checks if row.system == name)
        result.append(Status(name, table().get(name), here, rows, _state(here, rows)))
    return result


def read_checks(path: Path | None = None) -> list[Check]:
    """The lines of a file of results; none where there is no such file."""
    path = path or shipped_dir("pipelines") / "systems.csv"
    if not path.is_file():
        return []
    with path.open(encoding="utf-8", newline="") as file:
        return [Check(**row) for row in csv.DictReader(file)]


def _state(here: Iterable[Built], rows: Iterable[Check]) -> str:
    if not here:
        return "absent"
    rows = list(rows)
    if any(row.source != source_of(here) for row in rows):
        return "stale"
    reached = {row.rung for row in rows if row.outcome != "failed"} - {
        row.rung for row in rows if row.outcome == "failed"
    }
    if "exact" not in reached:
        return "built"
    null = any(row.outcome == "null" for row in rows)
    return "honest null" if null else "works" if "works" in reached else "exact"


def source_of(here: Iterable[Built]) -> str:
    """A hash of the code of the modules that implement a system: without blank lines, comments and docstrings."""
    modules = sorted({name for entry in here for name in (entry.module, *entry.card.modules)})
    return hashlib.sha256("".join(_code(name) for name in modules).encode()).hexdigest()[:12]


@cache
def _code(module: str) -> str:
    spec = find_spec(module)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        return module
    text = Path(spec.origin).read_text(encoding="utf-8")
    words: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            words |= set(range(node.lineno, (node.end_lineno or node.lineno) + 1))
    lines = [line.strip() for n, line in enumerate(text.splitlines(), 1) if n not in words]
    return "\n".join(line for line in lines if line and not line.startswith("#"))
