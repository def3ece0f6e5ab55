"""One registry: everything that a user can name is found here by its kind and name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, TypeVar

import molgraph
from molgraph.base.errors import UsageError, nearest

ENTRY_POINT_GROUP = "molgraph"
T = TypeVar("T")


@dataclass(frozen=True)
class Entry:
    """One registered thing.

    Args:
        kind: ``encoder``, ``method``, ``metric``, ``split``, ``standardiser``, ``readout``, ...
        name: the one word that stands for it everywhere.
        value: the class or function.
        summary: one line for people.
        paper: the source, such as ``Yang et al. 2019, J. Chem. Inf. Model. 59:3370``.
        line: its line of the design's table: rows, relation, message, update, readout, objective.
    """

    kind: str
    name: str
    value: Any
    summary: str = ""
    paper: str = ""
    line: tuple[str, ...] = ()


_entries: dict[str, dict[str, Entry]] = {}
_aliases: dict[tuple[str, str], str] = {}
_plugins_loaded = False
_kinds_loaded: set[str] = set()


def register(
    kind: str, name: str, *, summary: str = "", paper: str = "", line: tuple[str, ...] = ()
) -> Callable[[T], T]:
    """Register the decorated object under ``kind`` and ``name``.

    A definition that is run again, as a notebook's cell is, takes the place of the one before.

    Raises:
        UsageError: another definition has that name.

    Example:
        >>> @register("readout", "example", summary="sum over atoms")
        ... def example(): ...
        >>> get("readout", "example") is example
        True
    """

    def add(value: T) -> T:
        known = _entries.setdefault(kind, {})
        if name in known and known[name].value is not value and not _same_place(known[name].value, value):
            raise UsageError(f"the {kind} {name!r} is registered twice", hint="choose another name for yours")
        known[name] = Entry(kind, name, value, summary, paper, line)
        return value

    return add


def alias(kind: str, short: str, name: str) -> None:
    """Let a short name stand for a registered one; lists show the registered one alone."""
    _aliases[kind, short] = name


def full_name(kind: str, name: str) -> str:
    """The registered name that a short one stands for; any other name as it is.

    Example:
        >>> full_name("split", "scaffold"), full_name("split", "random")
        ('scaffold/balanced', 'random')
    """
    load_kind(kind)
    return _aliases.get((kind, name), name)


def _same_place(one: Any, two: Any) -> bool:
    """Whether two classes or functions were defined under one name in one module."""
    places = [(getattr(v, "__module__", None), getattr(v, "__qualname__", None)) for v in (one, two)]
    return places[0] == places[1] and None not in places[0]


def load_plugins() -> None:
    """Import what other packages offer under the entry point group ``molgraph``."""
    global _plugins_loaded
    if not _plugins_loaded:
        _plugins_loaded = True
        for point in entry_points(group=ENTRY_POINT_GROUP):
            point.load()


def load_kind(kind: str) -> None:
    """Import what registers things of a kind: molgraph's own rooms (``molgraph.REGISTRARS``), then plug-ins."""
    if kind not in _kinds_loaded:
        _kinds_loaded.add(kind)  # first: a room asks the registry itself while it is imported
        for room in molgraph.REGISTRARS.get(kind, ()):
            import_module(room)
    load_plugins()


def kinds() -> list[str]:
    """Kinds that have at least one name, sorted."""
    for kind in molgraph.REGISTRARS:
        load_kind(kind)
    return sorted(kind for kind, known in _entries.items() if known)


def names(kind: str) -> list[str]:
    """Names of one kind, sorted."""
    load_kind(kind)
    return sorted(_entries.get(kind, {}))


def entry(kind: str, name: str) -> Entry:
    """The entry of that kind and name; an unknown name raises ``UsageError`` with the nearest known ones."""
    name = full_name(kind, name)
    known = _entries.get(kind, {})
    if name not in known:
        raise UsageError(f"no {kind} is named {name!r}", hint=nearest(name, sorted(known)))
    return known[name]


def get(kind: str, name: str) -> Any:
    """The registered object itself."""
    return entry(kind, name).value
