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
    return takes({name: _shell(name, keyword) for name, keyword in known.items()}, plain=False)


def recipe_values(known: Mapping[str, Keyword], options: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the options that were used, as a recipe takes them."""
    values = {name: value for name, value in options.items() if value is not None and value != []}
    for name, value in values.items():
        if name == SHARES:
            values[name] = numbers(f"--{name}", value)
        elif isinstance(value, list):
            one = len(value) == 1 and str in plain_types(known[name].hint)
            values[name] = value[0] if one else tuple(value)
    return values


def _shell(name: str, keyword: Keyword) -> Keyword:
    types = plain_types(keyword.hint)
    mixed = str in types and types & {int, float}  # a number or a word, as 10 or auto: the recipe reads it
    kind = str if mixed else next(t for t in (bool, list, int, float, str) if t in types)
    panel = "Columns" if name in DataSection.model_fields else "Learning"
    option, default = keyword.option, _default_text(keyword.default)
    parameter = _option(panel, *option.flags, metavar=option.metavar, help=option.help, default=default)
    value: Any = list[str] if kind is list else kind
    return replace(keyword, hint=Annotated[value | None, parameter], default=None)


def _default_text(default: Any) -> str:
    """A default as the help shows it; empty where nothing is the default."""
    if default is True:
        return "on"
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return "" if default is None or default is False else str(default)
