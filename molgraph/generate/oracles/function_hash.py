"""Hash a function by its code and the plain values that it reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import partial
from types import CodeType, FunctionType
from typing import Any

PLAIN = (str, int, float, complex, bytes, bool, type(None), type(...))


def function_hash(function: Callable[..., Any]) -> str:
    """Hash the code, the defaults, and what closures and globals hold under the names that the code reads.

    Functions of the same module are followed. Values of other types (lists, models, tables) count by their type alone:
    the hash must not depend on what a function has collected.

    Returns:
        Hexadecimal; empty for what is no plain function, as a method or an object that can be called.

    Example:
        >>> def longer_than(n):
        ...     return lambda text: len(text) - n
        >>> function_hash(longer_than(2)) == function_hash(longer_than(2))
        True
        >>> function_hash(longer_than(2)) == function_hash(longer_than(3)), function_hash(print)
        (False, '')
    """
    inner = function.func if isinstance(function, partial) else function
    if not isinstance(inner, FunctionType):
        return ""
    return hashlib.sha256(_described(function, inner.__module__, set()).encode()).hexdigest()[:16]


def _described(value: Any, module: str, seen: set[Any]) -> str:
    """The value as a text that is the same in every process; each function once."""
    if isinstance(value, PLAIN):
        return repr(value)
    if isinstance(value, tuple):
        return f"({','.join([_described(each, module, seen) for each in value])})"
    if isinstance(value, frozenset):
        return f"{{{','.join(sorted(_described(each, module, seen) for each in value))}}}"
    if isinstance(value, CodeType):
        return f"{value.co_code.hex()} {value.co_names} {_described(value.co_consts, module, seen)}"
    if isinstance(value, partial):
        return _described((value.func, value.args, *sorted(value.keywords.items())), module, seen)
    if isinstance(value, FunctionType) and value.__module__ == module and value not in seen:
        seen.add(value)
        cells = [cell.cell_contents for cell in value.__closure__ or () if _filled(cell)]
        known = [value.__globals__.get(name) for name in _names(value.__code__)]
        parts = (value.__code__, value.__defaults__, *sorted((value.__kwdefaults__ or {}).items()), *cells, *known)
        return f"{value.__qualname__} {_described(parts, module, seen)}"
    return str(getattr(value, "__qualname__", None) or getattr(value, "__name__", None) or type(value).__qualname__)


def _filled(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018 - a cell may be empty
    except ValueError:
        return False
    return True


def _names(code: CodeType) -> list[str]:
    """The names that the code and the functions in it read."""
    inner = [name for const in code.co_consts if isinstance(const, CodeType) for name in _names(const)]
    return [*code.co_names, *inner]
