"""Read TOML and JSON text that people write, check it against a class of sections, and write TOML."""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, get_args

from pydantic import BaseModel, ConfigDict, ValidationError

from molgraph.base.errors import BadValueError, MissingOptionError, UnknownNameError, UsageError, nearest
from molgraph.base.paths import missing_file, storage_error

LARGEST = 10_000_000  # characters of a recipe; a device may give them without end


class Section(BaseModel):
    """One part of a recipe: known keys only, and nothing edits it."""

    called: ClassVar[str] = "recipe"  # in messages
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, protected_namespaces=())

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Self:
        """Check nested plain values; raise ``UsageError`` naming the key and the nearest known ones."""
        try:
            return cls.model_validate(dict(values))
        except ValidationError as error:
            raise recipe_error(error, cls) from None


def parse_toml(text: str) -> dict[str, Any]:
    """TOML text as plain values; whatever is wrong with it is a ``ValueError``.

    Example:
        >>> parse_toml("a = [1, 2]")
        {'a': [1, 2]}
    """
    try:
        values = tomllib.loads(text)
        parse_json(json.dumps(values, default=str))  # which knows what is too large
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None
    return values


def parse_json(text: str) -> Any:
    """JSON text as plain values; whatever is wrong with it is a ``ValueError``."""
    try:
        return json.loads(text, parse_int=_whole)
    except RecursionError:
        raise ValueError("its brackets are nested too deeply") from None


def _whole(digits: str) -> int:
    """A whole number of at most 64 bits, as TOML has them; Python itself refuses those of more than 4,300 digits."""
    if len(digits) > 20 or not -(2**63) <= int(digits) < 2**63:
        raise ValueError(f"{digits[:20]}... is too large a number")
    return int(digits)


def read_toml(path: str | Path, example: str, called: str = "recipe") -> dict[str, Any]:
    """The plain values of a recipe's file, or another that is ``called`` so; ``example``: a right line, for hints."""
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(LARGEST + 1)
        if len(text) > LARGEST:
            raise ValueError(f"it is longer than {LARGEST:,} characters")
        return parse_toml(text)
    except FileNotFoundError:
        raise missing_file(path, called) from None
    except OSError as error:
        raise storage_error(f"cannot read the {called} {path}", error) from error
    except ValueError as error:  # no TOML, or no UTF-8
        raise UsageError(f"the {called} {path} is not TOML: {error}", hint=f"a line reads like: {example}") from error


def write_toml(values: Mapping[str, Any]) -> str:
    r"""Plain values as TOML text; keys whose value is None are left out.

    Example:
        >>> print(write_toml({"run": {"jobs": 2, "params": {"k": 5}}, "method": [{"name": "knn"}], "seeds": [0, 1]}))
        seeds = [0, 1]
        <BLANKLINE>
        [run]
        jobs = 2
        <BLANKLINE>
        [run.params]
        k = 5
        <BLANKLINE>
        [[method]]
        name = "knn"
        <BLANKLINE>
    """
    return "\n".join(_lines(values)).strip() + "\n"


def recipe_error(error: ValidationError, whole: type[Section], section: str = "") -> UsageError:
    """What is wrong with a recipe, in its own words, with the nearest known keys or the value that was given.

    Args:
        error: pydantic's.
        whole: the recipe's class.
        section: the part of it that was checked alone.
    """
    problem = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")  # a slip explains what is missing
    loc = (section,) * bool(section) + tuple(problem["loc"])
    where = ".".join(str(part) for part in loc)
    if problem["type"] == "extra_forbidden":
        hint = nearest(str(loc[-1]), _known(whole, loc[:-1]))
        return UnknownNameError(f"the {whole.called} has no key {where!r}", hint=hint)
    if problem["type"] == "missing":
        examples = "; recipes ship with molgraph as examples" * (whole.called == "recipe")
        hint = f"the keys there: {', '.join(_known(whole, loc[:-1]))}{examples}"
        return MissingOptionError(f"the {whole.called} lacks {where!r}", hint=hint)
    if problem["type"] in ("too_short", "string_too_short") and not problem["input"]:
        return BadValueError(f"{whole.called}, {where}: it is empty", hint="give at least one")
    words, value = problem["msg"].removeprefix("Value error, "), problem["input"]
    detail = "" if isinstance(value, Mapping | Section) else f"it is {_shown(value)}"
    return BadValueError(f"{whole.called}{', ' * bool(where)}{where}: {words[:1].lower() + words[1:]}", hint=detail)


def _shown(value: Any) -> str:
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, brackets without end
        return f"too large a {type(value).__name__}"
    return text if len(text) <= 200 else f"{text[:200]}..."


def _known(section: Any, loc: tuple[str | int, ...]) -> list[str]:
    """Keys of the section at a place of the recipe."""
    for part in loc:
        if isinstance(part, str):
            hint = section.model_fields[part].annotation
            inner = [a for a in (hint, *get_args(hint)) if isinstance(a, type) and issubclass(a, Section)]
            section = inner[0] if inner else section
    return list(section.model_fields)


def _lines(values: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Plain keys, then sections, then lists of sections, whose own sections stand in one line."""
    sections = {k: v for k, v in values.items() if isinstance(v, Mapping)}
    lists = {k: v for k, v in values.items() if isinstance(v, list) and v and isinstance(v[0], Mapping)}
    yield from _pairs({k: v for k, v in values.items() if k not in sections and k not in lists})
    for key, value in sections.items():
        if value:
            yield from ("", f"[{path}{_key(key)}]")
            yield from _lines(value, f"{path}{_key(key)}.")
    for key, several in lists.items():
        for table in several:
            yield from ("", f"[[{path}{_key(key)}]]")
            yield from _pairs(table)


def _pairs(values: Mapping[str, Any]) -> Iterator[str]:
    return (f"{_key(key)} = {toml_value(value)}" for key, value in values.items() if value is not None)


def _key(key: str) -> str:
    return key if key.replace("_", "").replace("-", "").isalnum() and key.isascii() else toml_value(key)


def toml_value(value: Any) -> str:
    """A plain value as TOML writes it in one line.

    Example:
        >>> toml_value({"epochs": 50, "sizes": [1, 2], "layer": None})
        '{ epochs = 50, sizes = [1, 2] }'
    """
    if isinstance(value, Mapping):
        return "{ " + ", ".join(_pairs(value)) + " }"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(toml_value, value)) + "]"
    # JSON's text, numbers and booleans are TOML's too, but for the one control character that JSON leaves bare
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
