"""Read and build parts: registered things with their settings, ``NAME(key=value)``, joined by ``+``.

One grammar serves shell, recipe and Python: ``sgd(momentum=0.5)``, ``set2set(steps=5)``, ``lp-ft+l2-sp(alpha=1)``.
A value is a Python literal, ``true``, ``false`` or ``none``; anything else is text, as another part. A value without
a key is the next of the part's parameters: ``group(4)``.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from molgraph.base.errors import BadValueError, UnknownNameError, UsageError, nearest
from molgraph.base.registry import get

_OPEN, _CLOSE = "([{", ")]}"
_WORDS = {"true": True, "false": False, "none": None}


class Part(NamedTuple):
    """A name with its settings; ``values`` are those without a key."""

    name: str
    settings: Mapping[str, Any]
    values: tuple[Any, ...] = ()


def read_parts(text: str, kind: str = "part") -> list[Part]:
    """The parts that a text names, in order.

    Args:
        text: one or several, joined by ``+``.
        kind: of part, for the message.

    Raises:
        BadValueError: the text is not of this grammar.

    Example:
        >>> [tuple(part) for part in read_parts("lp-ft+l2-sp(alpha=1, on=encoder)")]
        [('lp-ft', {}, ()), ('l2-sp', {'alpha': 1, 'on': 'encoder'}, ())]
        >>> read_parts("contrast(0.5, views=mask+drop(p=0.1))")[0].settings
        {'views': 'mask+drop(p=0.1)'}
    """
    try:
        return [_part(piece) for piece in _pieces(text, "+")]
    except (ValueError, RecursionError, MemoryError):
        hint = "write a name and settings, such as set2set(steps=5) or group(n_groups=4)"
        raise BadValueError(f"the {kind} {text[:80]!r} cannot be read", hint=hint) from None


def read_part(text: str, kind: str = "part") -> Part:
    """The one part that a text names; several are a ``UsageError``.

    Example:
        >>> read_part("sgd(momentum=0.5)").settings
        {'momentum': 0.5}
    """
    part, *more = read_parts(text, kind)
    if more:
        words = f"{text!r} names {1 + len(more)} parts, where one {kind} is expected"
        raise BadValueError(words, hint="leave the + out")
    return part


def part_names(text: str) -> list[str]:
    """The names alone; of a text that is not of the grammar the text itself.

    Example:
        >>> part_names("dmpnn(depth=4)+deepdta")
        ['dmpnn', 'deepdta']
    """
    try:
        return [part.name for part in read_parts(text)]
    except UsageError:
        return [text]


def settings_of(make: Any, part: Part, *, first: int = 0, fixed: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A part's settings by the names of its class's parameters, checked against their types and ranges.

    Args:
        make: the class or function.
        part: the name and settings.
        first: how many of its first parameters are no settings, such as a width.
        fixed: names of others that are none.

    Raises:
        UsageError: an unknown setting, or a value that it cannot have.
    """
    from molgraph.base.parameters import (  # here, for it imports numpy, which the shell's help need not
        check_types,
        type_hints,
    )

    names = [name for name in [*inspect.signature(make).parameters][first:] if name not in (fixed or {})]
    settings = {**dict(zip(names, part.values, strict=False)), **part.settings}
    if len(part.values) > len(names):
        raise BadValueError(f"{part.name} has {len(names)} parameters, and {len(part.values)} values are written")
    for setting in settings:
        if setting not in names:
            raise UnknownNameError(f"{part.name} has no parameter {setting!r}", hint=nearest(setting, names))
    check_types(make, settings, owner=part.name)
    hints = type_hints(make)
    return {key: float(value) if _is_float(hints.get(key), value) else value for key, value in settings.items()}


def _is_float(hint: Any, value: Any) -> bool:
    """Whether a whole number stands for a fraction, as in ``ode(time=1)``."""
    return type(value) is int and getattr(hint, "__origin__", hint) is float


def make_part(kind: str, text: str, *args: Any, **fixed: Any) -> Any:
    """A registered thing, built from its name and settings.

    Args:
        kind: of part.
        text: its name, with settings in parentheses where they are not the defaults.
        args, fixed: what its constructor takes beside them, such as the width of the rows.

    Raises:
        UsageError: an unknown name or setting, or a value that the setting cannot have.

    Example:
        >>> import molgraph
        >>> make_part("readout", "set2set(steps=5)", 8).steps
        5
    """
    part = read_part(text, kind)
    make = get(kind, part.name)
    return make(*args, **fixed, **settings_of(make, part, first=len(args), fixed=fixed))


def with_older(params: Mapping[str, Any], older: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    """Hyper-parameters with those of older names as settings of the part that another one names, where it has them.

    Args:
        params: by name.
        older: the kind of part of each older name, and the hyper-parameter that names the part.

    Example:
        >>> with_older({"readout": "set2set", "steps": 5}, {"steps": ("readout", "readout")})
        {'readout': 'set2set(steps=5)'}
    """
    new = {name: value for name, value in params.items() if name not in older}
    for name, (kind, owner) in older.items():
        if name in params and name in inspect.signature(get(kind, new[owner])).parameters:
            text, inside, rest = new[owner].partition("(")
            if name not in read_part(new[owner], kind).settings:
                new[owner] = f"{text}({name}={params[name]!r}{', ' if inside else ')'}{rest}"
    return new


def split_model(name: str, params: Mapping[str, Any] | None = None) -> tuple[str, dict[str, Any]]:
    """A model's plain name, and its parameters with those that stand in the name; ``params`` go before them.

    Of several encoders each parameter has its encoder's name before it. A value without a name is the model that a
    wrapper is put around.

    Example:
        >>> split_model("dmpnn(depth=4)+deepdta(width=8)", {"dmpnn.depth": 5})
        ('dmpnn+deepdta', {'dmpnn.depth': 5, 'deepdta.width': 8})
        >>> split_model("random_forest(n_trees=50)")
        ('random_forest', {'n_trees': 50})
        >>> split_model("conformal(ensemble(gin, n=3), coverage=0.9)")
        ('conformal', {'method': 'ensemble(gin, n=3)', 'coverage': 0.9})
    """
    if "(" not in name:
        return name, dict(params or {})
    parts = read_parts(name, "model")
    part_params: dict[str, Any] = {}
    for part in parts:
        if len(part.values) > 1 or ("method" in part.settings and part.values):
            raise BadValueError(f"{part.name} has a value without a name", hint=f"write {part.name}(NAME=VALUE)")
        settings = {**dict(zip(("method",), part.values, strict=False)), **part.settings}
        part_params |= {f"{part.name}.{key}" if len(parts) > 1 else key: value for key, value in settings.items()}
    return "+".join(part.name for part in parts), {**part_params, **(params or {})}


def _part(text: str) -> Part:
    name, bracket, rest = text.partition("(")
    if not name.strip() or (bracket and not rest.rstrip().endswith(")")):
        raise ValueError(text)
    settings: dict[str, Any] = {}
    values: list[Any] = []
    for piece in _pieces(rest.rstrip()[:-1], ",") if rest.rstrip()[:-1].strip() else ():
        key, *value = _pieces(piece, "=", once=True)
        if not value:
            values.append(_value(key))
        elif key.strip().isidentifier() and key.strip() not in settings:
            settings[key.strip()] = _value(value[0])
        else:
            raise ValueError(piece)
    return Part(name.strip(), settings, tuple(values))


def _pieces(text: str, mark: str, *, once: bool = False) -> Iterator[str]:
    """The text between marks that stand outside of brackets and quotes; with ``once`` the first mark alone counts."""
    expected, start, quote = list[str](), 0, ""
    for i, sign in enumerate(text):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in _OPEN:
            expected.append(_CLOSE[_OPEN.index(sign)])
        elif sign in _CLOSE:
            if not expected or expected.pop() != sign:
                raise ValueError(text)
        elif sign == mark and not expected:
            yield text[start:i]
            start = i + 1
            if once:
                break
    else:
        if expected or quote:
            raise ValueError(text)
    yield text[start:]


def _value(text: str) -> Any:
    text = text.strip()
    if not text:
        raise ValueError("no value")
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text
