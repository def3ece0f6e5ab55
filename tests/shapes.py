"""Check the shapes that annotations of ``nn`` and ``models`` say, in each function's first calls of each test.

jaxtyping checks every call, which takes longer than the arithmetic of small networks; a test that trains makes the
same calls hundreds of times.
"""

from __future__ import annotations

import functools
import inspect
from collections import Counter
from typing import Any

import jaxtyping
from jaxtyping import install_import_hook

FIRST = 3  # calls of a function that are checked in each test
_every_call = jaxtyping.jaxtyped
calls = Counter[Any]()


def install(modules: list[str]) -> None:
    """Check the functions of modules that are imported from here on."""
    jaxtyping.jaxtyped = jaxtyped  # by this name the import hook decorates them
    install_import_hook(modules, "beartype.beartype")


def jaxtyped(fn: Any = None, *, typechecker: Any) -> Any:
    """The decorator that stands in the place of jaxtyping's own."""
    if fn is None:
        return functools.partial(jaxtyped, typechecker=typechecker)
    checked = _every_call(fn, typechecker=typechecker)
    if not inspect.isfunction(fn) or inspect.isgeneratorfunction(fn):
        return checked

    @functools.wraps(fn)
    def first_calls(*args: Any, **kwargs: Any) -> Any:
        if calls[fn] >= FIRST:
            return fn(*args, **kwargs)
        calls[fn] += 1
        return checked(*args, **kwargs)

    return first_calls
