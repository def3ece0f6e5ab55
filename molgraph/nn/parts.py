"""Build a registered readout or norm from its name and settings, such as ``set2set(steps=5)``."""

from __future__ import annotations

import ast
import inspect
from typing import Any, Literal

from torch import nn

from molgraph.base.errors import UsageError, nearest
from molgraph.base.parameters import check_params
from molgraph.base.registry import get


def make_part(kind: Literal["readout", "norm"], text: str, d: int) -> Any:
    """The readout or norm for rows of width ``d``.

    Args:
        kind: of part.
        text: its name, with settings in parentheses where they are not the defaults.
        d: width of the rows.

    Raises:
        UsageError: an unknown name or setting, or a value that the setting cannot have.

    Example:
        >>> import molgraph.nn.attention_readouts
        >>> make_part("readout", "set2set(steps=5)", 8).steps
        5
    """
    name, settings = _parse(kind, text)
    make = get(kind, name)
    own = list(inspect.signature(make).parameters)[1:]  # the first is the width
    for setting in settings:
        if setting not in own:
            raise UsageError(f"{name} has no parameter {setting!r}", hint=nearest(setting, own))
    check_params(make, settings, owner=name)
    made: nn.Module = make(d, **settings)
    return made


def _parse(kind: str, text: str) -> tuple[str, dict[str, Any]]:
    name, bracket, rest = text.partition("(")
    if not bracket:
        return name, {}
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
        assert isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.args
        return name.strip(), {str(each.arg): ast.literal_eval(each.value) for each in call.keywords}
    except (SyntaxError, ValueError, AssertionError, RecursionError, MemoryError):
        hint = "write a name and settings, such as set2set(steps=5) or group(n_groups=4)"
        raise UsageError(f"the {kind} {text[:80]!r} cannot be read", hint=hint) from None
