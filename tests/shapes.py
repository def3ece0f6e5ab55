"""Check the shapes that annotations of ``nn`` and ``models`` say, each pattern of them once for every object.

jaxtyping checks each call, which takes longer than the arithmetic of small networks. Here a call is not checked again
where the same function of the same object was checked on arguments of the same types and shapes, but for the number of
rows: that may differ by less than a factor of two, is 0 or 1 in both or neither, and is shared by the same arguments.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable
from types import CodeType
from typing import Any, get_args
from weakref import WeakKeyDictionary

import jaxtyping
from beartype import beartype
from jaxtyping import AbstractArray, install_import_hook
from jaxtyping._decorator import _destring_annotation

_every_call = jaxtyping.jaxtyped
_SPOKEN = re.compile(r"{([^}]*)}")  # what a shape asks of an argument, as in "{relation.n_target} d"


def install(modules: list[str]) -> None:
    """Check the functions of modules that are imported from here on."""
    jaxtyping.jaxtyped = jaxtyped  # by this name the import hook decorates them
    install_import_hook(modules, "beartype.beartype")


def jaxtyped(fn: Any = None, *, typechecker: Any) -> Any:
    """The decorator that stands in the place of jaxtyping's own."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    if inspect.isclass(fn):
        if "__dataclass_fields__" in vars(fn) and "__init__" in vars(fn):
            fn.__init__ = jaxtyped(fn.__init__, typechecker=typechecker)
        return fn
    if not inspect.isfunction(fn) or inspect.isgeneratorfunction(fn):
        return _every_call(fn, typechecker=typechecker)
    hints = _hints(fn.__code__, fn)
    shaped = [hint for hint in hints.values() if _has_shape(hint)]
    if shaped:
        return _once(fn, _every_call(fn, typechecker=typechecker), str(shaped))
    return _plain(fn, hints)


_known: dict[CodeType, dict[str, Any]] = {}


def _hints(code: CodeType, fn: Any) -> dict[str, Any]:
    """The annotations of a function; of one that is defined anew with each call they are read once."""
    if code not in _known:
        _known[code] = {name: _destring_annotation(hint, fn.__globals__) for name, hint in fn.__annotations__.items()}
    return _known[code]


def _has_shape(hint: Any) -> bool:
    """Whether there is an array's shape in an annotation."""
    return (inspect.isclass(hint) and issubclass(hint, AbstractArray)) or any(map(_has_shape, get_args(hint)))


def _plain(fn: Any, hints: dict[str, Any]) -> Any:
    """A function without shapes, whose types alone are checked."""
    if not hints or "<locals>" in fn.__qualname__:
        return fn
    fn.__annotations__, given = hints, fn.__annotations__
    try:
        checked = beartype(fn)
    finally:
        fn.__annotations__ = given
    if checked is not fn:
        checked.__annotations__ = given
    return checked


def _once(fn: Any, checked: Any, shapes: str) -> Callable[..., Any]:
    """A function that is checked where its arguments have a pattern that is new for its object."""
    names = [*inspect.signature(fn).parameters]
    method = names[:1] == ["self"] and fn.__name__ != "__init__"
    asked = [compile(text, fn.__qualname__, "eval") for text in {*_SPOKEN.findall(shapes)}]
    of_object: WeakKeyDictionary[Any, set[Any]] = WeakKeyDictionary()
    of_all = set[Any]()

    @functools.wraps(fn)
    def once(*args: Any, **kwargs: Any) -> Any:
        pattern, numbers = list[Any](kwargs), dict[int, int]()
        for value in args[1:] if names[:1] == ["self"] else args:
            _describe(value, pattern, numbers)
        for value in kwargs.values():
            _describe(value, pattern, numbers)
        if asked:
            known = dict(zip(names, args, strict=False)) | kwargs
            for text in asked:
                try:
                    pattern.append(_row(eval(text, None, known), numbers))
                except NameError:  # an argument that was not given
                    return checked(*args, **kwargs)
        seen = of_all
        if method:
            if not hasattr(args[0], "_parameters"):  # no module of a network: of no identity, as a named tuple
                return checked(*args, **kwargs)
            if (seen := of_object.get(args[0])) is None:
                seen = of_object[args[0]] = set()
        key = tuple(pattern)
        if key in seen:
            return fn(*args, **kwargs)
        made = checked(*args, **kwargs)
        seen.add(key)
        return made

    return once


def _row(n: int, numbers: dict[int, int]) -> tuple[int, int]:
    """A number of rows: which of the call's different ones it is, and its size."""
    return numbers.setdefault(n, len(numbers)), n.bit_length()


def _describe(value: Any, pattern: list[Any], numbers: dict[int, int]) -> None:
    """Add what decides about an argument's check."""
    if type(value) is int:
        pattern.append(_row(value, numbers) if value in numbers else value)
    elif isinstance(value, (bool, float, str, type, type(None))):
        pattern.append(value)
    elif (dtype := getattr(value, "dtype", None)) is not None:  # a tensor: torch is not imported for the name
        pattern.append(dtype)
        if shape := value.shape:
            pattern += (_row(shape[0], numbers), shape[1:])
    elif isinstance(value, (tuple, list)):
        pattern += (type(value), len(value))
        for each in value:
            _describe(each, pattern, numbers)
    elif isinstance(value, dict):
        pattern.append(tuple(value))
        for each in value.values():
            _describe(each, pattern, numbers)
    else:
        code = getattr(value, "__code__", None)
        pattern.append(code or (id(value) if callable(value) else type(value)))
