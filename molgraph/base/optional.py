"""Find which optional libraries are missing, and the command that installs them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from molgraph.base.errors import NotInstalledError

EXTRAS = {  # importable name -> the extra of molgraph that brings it
    "ase": "ase",
    "botorch": "generate",
    "catboost": "bench",
    "chemprop": "peers",
    "fastapi": "serve",
    "gpytorch": "bench",
    "optuna": "bench",
    "ray": "ray",
    "selfies": "generate",
    "uvicorn": "serve",
    "xgboost": "bench",
}


def need(library: str, what: str = "this method") -> Any:
    """Import an optional library.

    Raises:
        NotInstalledError: it cannot be imported; the hint installs it.
    """
    try:
        return import_module(library)
    except ImportError as error:
        raise NotInstalledError(
            f"{what} needs {library}, which cannot be imported ({error})", hint=how_to_install([library.split(".")[0]])
        ) from error


def missing(libraries: Iterable[str]) -> list[str]:
    """Those that are not installed; none is imported.

    Example:
        >>> missing(["json", "nobody_wrote_this"])
        ['nobody_wrote_this']
    """
    return [name for name in dict.fromkeys(libraries) if find_spec(name) is None]


def how_to_install(libraries: Iterable[str]) -> str:
    """The command that installs libraries.

    Example:
        >>> how_to_install(["catboost", "gpytorch"])
        "pip install 'molgraph-platform[bench]'"
        >>> how_to_install(["optuna", "chemprop", "deepchem"])
        "pip install 'molgraph-platform[bench,peers]' deepchem"
    """
    names = list(dict.fromkeys(libraries))
    extras = sorted({EXTRAS[name] for name in names if name in EXTRAS})
    words = [f"'molgraph-platform[{','.join(extras)}]'"] if extras else []
    return " ".join(["pip install", *words, *(name for name in names if name not in EXTRAS)])
