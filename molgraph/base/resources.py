"""Find the cards, recipes and models that ship beside the code."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path

from molgraph.base.errors import MissingFileError, UnknownNameError, close_names, did_you_mean, nearest
from molgraph.base.paths import cache_dir, storage_error

_PACKAGE = Path(__file__).resolve().parents[1]
PUBLISHED = {"minimol": ("molgraph.train.minimol_weights", "minimol-1.mgm")}
"""Models that others published, by name: the module whose ``write_published`` makes the file, and its name in the
cache, whose number is raised when the file comes out otherwise."""


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
    path = Path(name)
    if path.suffix == ".toml" and path.is_file():
        return path
    known = recipe_names()
    stem = path.name.removesuffix(".toml")
    if stem in known and path.parent in (Path("."), Path("pipelines")):
        return shipped_dir("pipelines") / f"{stem}.toml"
    words = f"there is no recipe {str(name)!r}, neither as a file nor shipped"
    raise UnknownNameError(words, hint=nearest(stem, known))


def model_names() -> list[str]:
    """Names of the trained models that ship with molgraph."""
    return sorted(path.stem for path in (shipped_dir("pipelines") / "models").glob("*.mgm"))


def model_path(name: str | os.PathLike[str]) -> Path:
    """The file of a model: the path itself, or, where there is no such file, the model of that name that ships.

    A model that others published is made of their weights when its name is asked for first, and kept in the cache.

    Raises:
        MissingFileError: a name without an ending that is neither a file nor a model's.
        NotInstalledError: the package that holds the weights of a published model is not there.

    Example:
        >>> model_path("mine.mgm").name, model_path("jtvae-zinc").name
        ('mine.mgm', 'jtvae-zinc.mgm')
    """
    path, known = Path(name), model_names()
    if path.is_file() or path.name != str(name):
        return path
    if path.name in known:
        return shipped_dir("pipelines") / "models" / f"{name}.mgm"
    if path.name in PUBLISHED:
        return _published(path.name)
    if not path.suffix and not path.is_dir():
        words = f"there is no file {path.name!r}, and no model of that name comes with molgraph"
        close = close_names(path.name, [*known, *PUBLISHED])
        raise MissingFileError(
            words, hint=did_you_mean(close) if close else f"by name: {', '.join([*known, *PUBLISHED])}"
        )
    return path


def _published(name: str) -> Path:
    """The file of a model that others published."""
    module, file = PUBLISHED[name]
    path = cache_dir() / "models" / file
    if not path.is_file():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise storage_error(f"cannot write {path}", error) from error
        import_module(module).write_published(path)
    return path
