"""Find everything that a user can name, by its kind and its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib import import_module
from importlib.util import find_spec
from pkgutil import iter_modules
from typing import Any, TypeVar

from molgraph.base.errors import ConflictError, UnknownNameError, nearest
from molgraph.base.kinds import KINDS
from molgraph.base.systems import SystemCard

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
        systems: cards of the published systems that it implements (``molgraph systems``).
        tags: further words to find it by.
        command: a command that shows it working, where it is not that of its kind.
    """

    kind: str
    name: str
    value: Any
    summary: str = ""
    paper: str = ""
    line: tuple[str, ...] = ()
    systems: tuple[SystemCard, ...] = ()
    tags: tuple[str, ...] = ()
    command: str = ""


_entries: dict[str, dict[str, Entry]] = {}
_aliases: dict[tuple[str, str], str] = {}
_plugins_loaded = False
_kinds_loaded: set[str] = set()


def register(kind: str, name: str, **fields: Any) -> Callable[[T], T]:
    """Register the decorated object under ``kind`` and ``name``; the keywords are other fields of ``Entry``.

    ``system="weave"`` is short for a card with that id alone. A definition that is run again, as a notebook's cell is,
    takes the place of the one before.

    Raises:
        ConflictError: another definition has that name.

    Example:
        >>> @register("readout", "example", summary="sum over atoms")
        ... def example(): ...
        >>> get("readout", "example") is example
        True
    """

    def add(value: T) -> T:
        known = _entries.setdefault(kind, {})
        if name in known and known[name].value is not value and not _same_place(known[name].value, value):
            raise ConflictError(f"the {kind} {name!r} is registered twice", hint="choose another name for yours")
        cards = (SystemCard(fields.pop("system")),) if "system" in fields else fields.pop("systems", ())
        known[name] = Entry(kind, name, value, systems=cards, **fields)
        return value

    return add


def alias(kind: str, short: str, name: str) -> None:
    """Let a short name stand for a registered one; lists show the registered one alone."""
    _aliases[kind, short] = name


def full_name(kind: str, name: str) -> str:
    """The registered name that a short one stands for; any other name as it is, without settings in parentheses.

    Example:
        >>> full_name("split", "scaffold"), full_name("split", "random")
        ('scaffold/balanced', 'random')
    """
    name = name.partition("(")[0].strip()
    modules = iter(_folders(kind))
    while name not in _entries.get(kind, {}) and (kind, name) not in _aliases:  # the others of the kind can wait
        if (module := next(modules, None)) is None:
            load_kind(kind)
            break
        _import(module, name)
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
        from importlib.metadata import entry_points  # six times as slow as the rest of ``import molgraph``

        for point in entry_points(group=ENTRY_POINT_GROUP):
            point.load()


def load_kind(kind: str) -> None:
    """Import everything that registers things of a kind: molgraph's own modules, then plug-ins."""
    if kind not in _kinds_loaded:
        _kinds_loaded.add(kind)  # first: a module asks the registry itself while it is imported
        for module in _folders(kind):
            _import(module)
    load_plugins()


def _folders(kind: str) -> tuple[str, ...]:
    """The modules of a kind: those of its room, then those of the long tail."""
    return (*(KINDS[kind].folders if kind in KINDS else ()), f"molgraph.auxiliary.{kind}.*")


def _import(module: str, name: str = "") -> None:
    """Import a module; of ``package.word*`` the one that has a name, or all of them where no name is given."""
    package, _, pattern = module.rpartition(".")
    if "*" not in pattern:
        import_module(module)
        return
    if find_spec(package) is None:
        return
    for info in iter_modules(import_module(package).__path__):
        if fnmatch(info.name, pattern) and (not name or info.name == name.replace("-", "_")):
            import_module(f"{package}.{info.name}")


def kinds() -> list[str]:
    """Kinds that have at least one name, sorted."""
    for kind in KINDS:
        load_kind(kind)
    return sorted(kind for kind, known in _entries.items() if known)


def names(kind: str) -> list[str]:
    """Names of one kind, sorted."""
    load_kind(kind)
    return sorted(_entries.get(kind, {}))


def entry(kind: str, name: str) -> Entry:
    """The entry of that kind and name, settings or not; an unknown one is a ``UsageError`` with the nearest."""
    name = full_name(kind, name)
    known = _entries.get(kind, {})
    if name not in known:
        raise UnknownNameError(f"no {kind} is named {name!r}", hint=nearest(name, sorted(known)))
    return known[name]


def get(kind: str, name: str) -> Any:
    """The registered object itself."""
    return entry(kind, name).value
