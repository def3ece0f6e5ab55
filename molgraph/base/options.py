"""Build function signatures, docstrings and command-line options from one description of each recipe key."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from molgraph.base.errors import UnknownNameError, nearest
from molgraph.base.toml_config import Section

F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Option:
    """What a person reads of a key, written into its type: ``Annotated[int, Option("Passes over the data.", "N")]``.

    ``metavar`` stands for its value in the help of the shell; ``flags`` are its names there, where not the key's own.
    """

    help: str
    metavar: str = "VALUE"
    flags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Keyword:
    """A key of a recipe as a keyword argument: its type, its default and what it means."""

    hint: Any
    default: Any
    option: Option


def keywords(section: type[Section], *, leave: Collection[str] = ()) -> dict[str, Keyword]:
    """The keys of a section of a recipe that have an ``Option``, but those of ``leave``, in their order."""
    hints = get_type_hints(section, include_extras=True)
    result = {}
    for name, field in section.model_fields.items():
        options = [option for option in get_args(hints[name])[1:] if isinstance(option, Option)]
        if options and name not in leave:
            result[name] = Keyword(hints[name], field.default, options[0])
    return result


def optional(known: Mapping[str, Keyword]) -> dict[str, Keyword]:
    """The same keywords, each None where it is not given: their defaults are a recipe's, which may name others."""
    return {name: replace(keyword, default=None) for name, keyword in known.items()}


def takes(known: Mapping[str, Keyword], *, plain: bool = True) -> Callable[[F], F]:
    """Give a function that ends in ``**options`` keywords in its signature and their meanings in its docstring.

    A line ``**options`` of the docstring is where the meanings are written. ``plain``: the signature shows types alone,
    without their ranges and options; its annotations have them.

    Example:
        >>> @takes({"epochs": Keyword(int, 50, Option("passes over the data."))})
        ... def fit(table, **options):
        ...     return fill({"epochs": Keyword(int, 50, Option(""))}, options)
        >>> signature(fit), fit("a"), fit("a", epochs=3)
        (<Signature (table, *, epochs: int = 50)>, {'epochs': 50}, {'epochs': 3})
    """

    def add(function: F) -> F:
        original = signature(function, eval_str=True)
        rest = [p for p in original.parameters.values() if p.kind is not p.VAR_KEYWORD]
        params = [Parameter(n, Parameter.KEYWORD_ONLY, default=k.default, annotation=k.hint) for n, k in known.items()]
        first = [p for p in rest if p.kind is not p.KEYWORD_ONLY]
        params = [*first, *params, *rest[len(first) :]]
        function.__annotations__ = {p.name: p.annotation for p in params if p.annotation is not p.empty}
        if plain:
            types = get_type_hints(function)
            params = [p.replace(annotation=types.get(p.name, p.empty)) for p in params]
        function.__signature__ = original.replace(parameters=params)  # type: ignore[attr-defined]
        lines = (function.__doc__ or "").splitlines(keepends=True)
        for i in [i for i, line in enumerate(lines) if line.strip() == "**options"]:
            indent = lines[i].partition("*")[0]
            lines[i] = "".join(f"{indent}{name}: {keyword.option.help}\n" for name, keyword in known.items())
        function.__doc__ = "".join(lines) or None
        return function

    return add


def fill(known: Mapping[str, Keyword], given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of keywords: those that were given, and the defaults of the others.

    Raises:
        UnknownNameError: a name that is none of them.
    """
    for name in given:
        if name not in known:
            raise UnknownNameError(f"there is no option {name!r}", hint=nearest(name, list(known)))
    return {name: given.get(name, keyword.default) for name, keyword in known.items()}


def plain_types(hint: Any) -> set[Any]:
    """The types of one value that a key takes; ``list`` for several values, ``str`` for words and for anything else.

    Example:
        >>> sorted(t.__name__ for t in plain_types(str | tuple[str, ...] | None))
        ['list', 'str']
    """
    arguments = get_args(hint)
    if getattr(hint, "__metadata__", None):
        return plain_types(arguments[0])
    if hint in (bool, int, float):
        return {hint}
    if arguments[1:] == (...,):
        return {list}
    if get_origin(hint) in (Union, UnionType):
        return set().union(*(plain_types(argument) for argument in arguments if argument is not NoneType))
    return {str}
