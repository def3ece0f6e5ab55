"""Check hyper-parameters against the annotations of the constructor that takes them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from molgraph.base.errors import UsageError, nearest

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
    """Refuse hyper-parameters that a constructor does not have, or of another type than it declares.

    NumPy's numbers count as numbers, a whole number as a ``float``, and a list as a tuple. NaN and infinity are no
    numbers. A parameter whose annotation is missing or cannot be resolved takes any value.

    Args:
        cls: the class whose constructor takes the parameters.
        params: values by name; the constructor's other parameters keep their defaults.
        owner: the name for messages, such as ``dmpnn``; the class's own name where empty.

    Raises:
        UsageError: the constructor has no such parameter, or the value is of another type.

    Example:
        >>> class Tree:
        ...     def __init__(self, depth: int = 3, rate: float | None = None) -> None: ...
        >>> check_params(Tree, {"depth": 4, "rate": 1})
        >>> check_params(Tree, {"depth": "four"}, owner="tree")
        Traceback (most recent call last):
        molgraph.base.errors.UsageError: tree: depth is 'four', expected a whole number
          its default is 3
    """
    known = {name: p for name, p in inspect.signature(cls.__init__).parameters.items() if name != "self"}  # type: ignore[misc]
    hints = type_hints(cls)
    for name, value in params.items():
        if name not in known:
            raise UsageError(f"{owner or cls.__name__} has no parameter {name!r}", hint=nearest(name, known))
        if not _fits(value, hints.get(name, Any)):
            default = known[name].default
            hint = "" if default is inspect.Parameter.empty else f"its default is {default!r}"
            shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:80]}..."
            said = f"{owner or cls.__name__}: {name} is {shown}, expected {_in_words(hints[name])}"
            raise UsageError(said, hint=hint)


def type_hints(cls: type) -> dict[str, Any]:
    """The types that a constructor declares, by parameter; without those that cannot be resolved."""
    try:
        return get_type_hints(cls.__init__)  # type: ignore[misc]
    except (NameError, TypeError, AttributeError):  # a name that is imported for type checkers alone
        return {}


def _fits(value: Any, hint: Any) -> bool:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, each) for each in arguments)
    if origin is Literal:
        return any(type(value) is type(each) and value == each for each in arguments)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    if hint is int:
        return isinstance(value, Integral) and not isinstance(value, bool)
    if hint is float:
        return isinstance(value, Real) and not isinstance(value, bool | np.bool_) and math.isfinite(value)
    kind = origin or hint
    if kind in (list, tuple, Sequence):
        inner = [each for each in arguments if each is not Ellipsis] or [Any]
        types = inner * len(value) if isinstance(value, list | tuple) and len(inner) == 1 else inner
        return isinstance(value, list | tuple) and len(types) == len(value) and all(map(_fits, value, types))
    return kind is Any or not isinstance(kind, type) or isinstance(value, kind)


def _in_words(hint: Any) -> str:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return " or ".join(_in_words(each) for each in arguments)
    if origin is Literal:
        return " or ".join(map(repr, arguments))
    kind = origin or hint
    return _WORDS.get(kind, getattr(kind, "__name__", str(kind)))
