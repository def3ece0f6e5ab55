"""Check hyper-parameters against the types that a constructor's annotations name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, get_type_hints

from pydantic import ConfigDict, TypeAdapter, ValidationError

from molgraph.base.contracts import Method
from molgraph.base.errors import UsageError
from molgraph.base.size import Shapes, Size

LARGEST = 2**63 - 1  # what libraries in C take as a whole number


def check_types(make: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse JSON values that are of another type than the constructor's annotations.

    Args:
        make: a class, or a function that makes something.
        values: keyword arguments by name; a name that ``make`` does not take is passed over.

    Raises:
        UsageError: the first value of another type, or that no number of a machine can be.

    Example:
        >>> def make(depth: int = 3, share: float | None = None): ...
        >>> check_types(make, {"depth": 4, "share": 1})
        >>> check_types(make, {"depth": 3.5})
        Traceback (most recent call last):
        ...
        molgraph.base.errors.UsageError: depth is 3.5, expected int
    """
    for name, (words, adapter) in _adapters(make).items():
        if name not in values:
            continue
        try:
            same = adapter.validate_python(values[name]) == values[name]  # 15.0 is a whole number too, "15" is not
        except (ValidationError, RecursionError):
            same = False
        if not same:
            raise UsageError(f"{name} is {repr(values[name])[:40]}, expected {words}")
    for name, value in values.items():
        if _beyond(value):
            raise UsageError(f"{name} is {repr(value)[:40]}, which is too large")


def measure(method: type[Method], meta: Mapping[str, Any], shapes: Shapes) -> Size:
    """What a stored method will need, once its parameters are of their types.

    Raises:
        ModelFileError, UsageError: a parameter of another type, or a state that no method leaves.
    """
    check_types(method, dict(meta.get("params", {})))
    return method.size_of(meta, shapes)


def _beyond(value: Any) -> bool:
    """Whether a whole number, also a nested one, is too large for a machine's word."""
    if isinstance(value, Mapping):
        return any(map(_beyond, value.values()))
    if isinstance(value, list | tuple):
        return any(map(_beyond, value))
    return isinstance(value, int) and abs(value) > LARGEST


@lru_cache(maxsize=256)
def _adapters(make: Callable[..., Any]) -> dict[str, tuple[str, TypeAdapter[Any]]]:
    """A checker for each annotated argument, with its type in words."""
    call = make.__init__ if inspect.isclass(make) else make
    config = ConfigDict(arbitrary_types_allowed=True, allow_inf_nan=False)
    hints = get_type_hints(call)
    written = {name: str(p.annotation) for name, p in inspect.signature(call).parameters.items()}
    return {
        name: (written.get(name, str(hint)), TypeAdapter(hint, config=config))
        for name, hint in hints.items()
        if name != "return"
    }
