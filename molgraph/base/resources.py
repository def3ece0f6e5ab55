"""Find the cards, recipes and models that ship beside the code."""

from __future__ import annotations

import os
from pathlib import Path

from molgraph.base.errors import MissingFileError, UnknownNameError, close_names, did_you_mean, nearest

_PACKAGE = Path(__file__).resolve().parents[1]


def shipped_dir(kind: str) -> Path:
    """The folder of shipped ``datasets`` or ``pipelines``: the checkout's own, or ``molgraph/shipped`` of a wheel.

    A top folder ``datasets`` in a wheel would stand in the way of another library of that name.
    """
    inside = _PACKAGE / "shipped" / kind
    return inside if inside.is_dir() else _PACKAGE.parent / kind


def recipe_names() -> list[str]:
    """Names of the recipes that ship with molgraph."""
    return sorted(path.stem for path in shipped_dir("pipelines").glob("*.toml"))


def recipe_path(name: str | Path) -> Path:
    """The file of a recipe: a path that exists, or the name of one that ships with molgraph.

    Raises:
        UnknownNameError: neither, with the nearest known names.
    """
    given = Path(name)
    if given.suffix == ".toml" and given.is_file():
        return given
    known = recipe_names()
    stem = given.name.removesuffix(".toml")
    if stem in known and given.parent in (Path("."), Path("pipelines")):
        return shipped_dir("pipelines") / f"{stem}.toml"
    words = f"there is no recipe {str(name)!r}, neither as a file nor shipped"
    raise UnknownNameError(words, hint=nearest(stem, known))


def model_names() -> list[str]:
    """Names of the trained models that ship with molgraph."""
    return sorted(path.stem for path in (shipped_dir("pipelines") / "models").glob("*.mgm"))


def model_path(name: str | os.PathLike[str]) -> Path:
    """The file of a model: the path itself, or, where there is no such file, the model of that name that ships.

    Raises:
        MissingFileError: there is no such file, and its name is nearly that of a model that ships.

    Example:
        >>> model_path("mine.mgm").name, model_path("jtvae-zinc").name
        ('mine.mgm', 'jtvae-zinc.mgm')
    """
    given, known = Path(name), model_names()
    if given.is_file() or given.name != str(name):
        return given
    if given.name in known:
        return shipped_dir("pipelines") / "models" / f"{name}.mgm"
    if not given.suffix and (close := close_names(given.name, known)):
        words = f"there is no file {given.name!r}, and no model of that name comes with molgraph"
        raise MissingFileError(words, hint=did_you_mean(close))
    return given
