"""Check, before the first cell, that the libraries of all cells are installed."""

from __future__ import annotations

from collections.abc import Callable, Collection

from molgraph.base.contracts import Method
from molgraph.base.errors import UsageError
from molgraph.base.optional import how_to_install, missing
from molgraph.evaluate.benchmark.recipe import BenchRecipe


def check_installed(recipe: BenchRecipe, factory: Callable[..., Method], rows: Collection[str]) -> None:
    """Refuse a run whose cells would be refused one by one.

    Args:
        recipe: the benchmark.
        factory: from a method's name and parameters to the method.
        rows: the recipe's methods, by their rows' names, that have cells to compute.

    Raises:
        UsageError: a method's library is not installed; the hint installs it, or leaves the method out.
    """
    lacks = {}
    for method in recipe.method:
        if method.row in rows:
            needs = (*factory(method.name, **method.params).needs, *(["optuna"] if method.search else []))
            if gone := missing(needs):
                lacks[method.row] = gone
    if lacks:
        said = ", ".join(f"{row} needs {' and '.join(gone)}" for row, gone in lacks.items())
        others = [m.row for m in recipe.method if m.row in rows and m.row not in lacks]
        without = f"\nor leave them out: --only method={','.join(others)}" if others else ""
        install = how_to_install(name for gone in lacks.values() for name in gone)
        raise UsageError(f"not installed here: {said}", hint=install + without)
