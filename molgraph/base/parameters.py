"""Check hyper-parameters against the types and ranges that the constructor's annotations declare."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterable, Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from molgraph.base.errors import BadValueError, UnknownNameError, nearest
from molgraph.base.ranges import Range

_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    NoneType: "none",
    dict: "a mapping",
    Mapping: "a mapping",
    list: "a list",
    tuple: "a list",
    Sequence: "a list",
}


def check_params(cls: type, params: Mapping[str, Any], *, owner: str = "") -> None:
    """Refuse hyper-parameters that a constructor does not have, or of another type or range than it declares.

    Raises:
        UsageError: the constructor has no such parameter, or the value is of another type or out of its range.

    Example:
        >>> class Tree:
        ...     def __init__(self, depth: Annotated[int, Range(1, 12)] = 3, rate: float | None = None) -> None: ...
        >>> check_params(Tree, {"depth": 4, "rate": 1})
        >>> check_params(Tree, {"depth": 0}, owner="tree")
        Traceback (most recent call last):
        molgraph.base.errors.BadValueError: tree: depth is 0, expected a whole number from 1 to 12
          its default is 3
    """
    check_names(cls, params, owner=owner)
    check_types(cls, params, owner=owner)


def check_names(cls: type, params: Iterable[str], *, owner: str = "") -> None:
    """Refuse names of hyper-parameters that a constructor does not have, with the nearest that it has.

    Raises:
        UnknownNameError: the first such name.
    """
    known = _arguments(cls)
    for name in params:
        if name not in known and name not in getattr(cls, "older", ()):
            candidates = [key for key, argument in known.items() if argument.default is not argument.empty] or known
            raise UnknownNameError(f"{owner or cls.__name__} has no parameter {name!r}", hint=nearest(name, candidates))


def check_types(cls: type, params: Mapping[str, Any], *, owner: str = "") -> None:
    """Refuse values of another type or range than a constructor declares; names that it does not take are passed over.

    NumPy's numbers count as numbers, a whole number as a ``float``, and a list as a tuple. NaN and infinity are no
    numbers, nor is a whole number of more than 64 bits. A parameter whose annotation is missing or cannot be resolved
    takes any value.

    Raises:
        BadValueError: the first value of another type, or out of its range.
    """
    known, hints = _arguments(cls), type_hints(cls)
    for name, value in params.items():
        if not _in_64_bits(value):
            raise BadValueError(f"{owner or cls.__name__}: {name} is {repr(value)[:40]}, which is too large")
        if name in known and not _fits(value, hints.get(name, Any)):
            default = known[name].default
            hint = "" if default is inspect.Parameter.empty else f"its default is {default!r}"
            shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:80]}..."
            message = f"{owner or cls.__name__}: {name} is {shown}, expected {_in_words(hints.get(name, Any))}"
            raise BadValueError(message, hint=hint)


def refuse_unread(cls: type, form: str, given: Mapping[str, Any]) -> None:
    """Refuse options that a form of a model does not read, where they differ from the constructor's defaults.

    Raises:
        ValueError: the first such options, by name.

    Example:
        >>> class Pool:
        ...     def __init__(self, kind: str = "topk", k: int = 10) -> None: ...
        >>> refuse_unread(Pool, "topk", {"k": 4})
        Traceback (most recent call last):
        ValueError: topk does not read k 4: leave it out
    """
    known = _arguments(cls)
    unread = [f"{name} {value}" for name, value in given.items() if value != known[name].default]
    if unread:
        raise ValueError(f"{form} does not read {', '.join(unread)}: leave {'it' if len(unread) == 1 else 'them'} out")


def _arguments(cls: type) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(cls).parameters)


def _in_64_bits(value: Any) -> bool:
    """Whether all whole numbers, also nested ones, fit into 64 bits, as libraries in C take them."""
    if isinstance(value, Mapping):
        return all(map(_in_64_bits, value.values()))
    if isinstance(value, list | tuple):
        return all(map(_in_64_bits, value))
    return not isinstance(value, int) or -(2**63) <= value < 2**63


def type_hints(cls: type) -> dict[str, Any]:
    """The types and ranges that a constructor or function declares; none where they cannot be resolved."""
    declared = cls.__init__ if inspect.isclass(cls) else getattr(cls, "func", cls)
    try:
        return get_type_hints(declared.__init__ if inspect.isclass(declared) else declared, include_extras=True)
    except (NameError, TypeError, AttributeError):  # a name that is imported for type checkers alone
        return {}


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _fits(value, arguments[0]) and all(r.holds(value) for r in arguments[1:] if isinstance(r, Range))
    if origin in (Union, UnionType):
        return any(_fits(value, item) for item in arguments)
    if origin is Literal:
        return any(type(value) is type(item) and value == item for item in arguments)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and math.isfinite(value)
    kind = origin or hint
    if isinstance(value, Mapping) and isinstance(kind, type) and issubclass(kind, Mapping) and arguments:
        return all(_fits(key, arguments[0]) and _fits(item, arguments[1]) for key, item in value.items())
    if kind in (list, tuple, Sequence):
        inner = [item for item in arguments if item is not Ellipsis] or [Any]
        types = inner * len(value) if isinstance(value, list | tuple) and len(inner) == 1 else inner
        return isinstance(value, list | tuple) and len(types) == len(value) and all(map(_fits, value, types))
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _in_words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return " ".join([_in_words(arguments[0]), *(str(r) for r in arguments[1:] if isinstance(r, Range))])
    if origin in (Union, UnionType):
        return " or ".join(_in_words(argument) for argument in arguments)
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    kind = origin or hint
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))
