"""Add a command-line option to a verb for each recipe key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, TypeAlias, TypeVar

import typer

from molgraph.base.options import Keyword, plain_types, takes
from molgraph.base.recipe_keys import DataSection
from molgraph.cli.options import numbers

F = TypeVar("F", bound=Callable[..., Any])
SHARES = "fractions"  # the one key that takes numbers with commas between them


def _option(panel: str, *names: str, metavar: str | None = None, help: str = "", default: str = "") -> Any:
    """An option of that panel of the help; its default, which the recipe knows, stands behind its help."""
    text = f"{help} [dim]({default})[/dim]" if default else help
    return typer.Option(*names, metavar=metavar, help=text, show_default=False, rich_help_panel=panel)


output = partial(_option, "Result", metavar="FILE")
_learning = partial(_option, "Learning")
RecipeFile: TypeAlias = Annotated[
    Path | None, _learning("--recipe", "-r", metavar="FILE", help="TOML; options override it.")
]
Assignments: TypeAlias = Annotated[
    list[str] | None, _learning("--set", "-s", metavar="KEY=VALUE", help="A recipe key, or params.NAME.")
]


def takes_recipe(known: Mapping[str, Keyword]) -> Callable[[F], F]:
    """Give a verb that ends in ``**options`` an option for each keyword of a recipe."""
    return takes({name: _shell(name, each) for name, each in known.items()}, plain=False)


def given(known: Mapping[str, Keyword], options: Mapping[str, Any]) -> dict[str, Any]:
    """The values that were given, as a recipe takes them."""
    found = {name: value for name, value in options.items() if value is not None and value != []}
    for name, value in found.items():
        if name == SHARES:
            found[name] = numbers(f"--{name}", value)
        elif isinstance(value, list):
            one = len(value) == 1 and str in plain_types(known[name].hint)
            found[name] = value[0] if one else tuple(value)
    return found


def _shell(name: str, keyword: Keyword) -> Keyword:
    types = plain_types(keyword.hint)
    words = str in types and types & {int, float}  # a number or a word, as 10 or auto: the recipe reads it
    kind = str if words else next(t for t in (bool, list, int, float, str) if t in types)
    panel = "Columns" if name in DataSection.model_fields else "Learning"
    option, told = keyword.option, _told(keyword.default)
    made = _option(panel, *option.flags, metavar=option.metavar, help=option.help, default=told)
    value: Any = list[str] if kind is list else kind
    return replace(keyword, hint=Annotated[value | None, made], default=None)


def _told(default: Any) -> str:
    """A default as the help tells it; empty where nothing is the default."""
    if default is True:
        return "on"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default is None or default is False else str(default)
