"""Run benchmarks: datasets, splits, methods and seeds from a recipe, each cell in a process of its own."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.bench_sides import with_sides
from molgraph.base.errors import CannotReadError, CellError, LabelError, StorageError
from molgraph.base.resources import recipe_path
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.recipe import BenchRecipe, OwnTable
from molgraph.evaluate.benchmark.result import BenchmarkResult
from molgraph.evaluate.benchmark.run import run_benchmark

CENSORED = ("<", ">", "<=", ">=", "<<", ">>")
FACTORY = "molgraph.auxiliary.own_method:make_any"
#: what a cell's process needs and would else import anew each time; none of it starts a thread
IMPORTS: tuple[str, ...] = (
    "molgraph.train.make_method",
    "molgraph.auxiliary",
    "molgraph.trust",
    "molgraph.generate.language",
    "molgraph.data.datasets",
)
IMPORTS += ("pyarrow.parquet", "sklearn.ensemble", "lightning.fabric", "optuna", "xgboost", "catboost", "gpytorch")


def benchmark(
    recipe: BenchRecipe | Mapping[str, Any] | str | Path,
    out: str | Path | None = None,
    *,
    tables: Mapping[str, Any] | None = None,
    jobs: int | None = None,
    engine: str = "local",
    retry: Collection[str] = (),
    only: Mapping[str, Collection[str]] | None = None,
    dry_run: bool = False,
) -> BenchmarkResult:
    """Run a benchmark: datasets x splits x methods x seeds, each cell a process of its own with a budget.

    A run that was killed goes on where it was, and nothing is computed twice. Beside each graph model of pairs or
    complexes the same model of one side alone is a row, unless the recipe has rows of that side or ``sides = false``.

    Args:
        recipe: a TOML file, the name of one that ships with molgraph (``molgraph.base.resources.recipe_names()``: such
            as ``quick``), or its content as plain values, whose ``name`` is ``unnamed`` where they say none.
        out: the folder of cells; ``bench/NAME`` where not given.
        tables: datasets of your own by name, which the recipe's ``datasets`` name: anything that ``read_table`` reads
            with its targets, such as a table. A recipe's own ``[[table]]`` says the same of a file.
        jobs: cells at once; the recipe's where not given.
        engine: ``local``, or ``ray`` for a Ray cluster.
        retry: statuses to compute again: ``crashed``, ``timeout``, ``memory``, ``refused``, or ``failed`` for all.
        only: which ``dataset``, ``split``, ``method``, ``seed``, ``repeat`` or ``fold`` to compute.
        dry_run: compute and write nothing; ``result.ran`` says what there is to do.

    Returns:
        Scores, manifests and a summary, as frames.

    Raises:
        UsageError: a key, dataset, split, method, parameter or metric that nobody knows, or a file that is read and
            would be written over, before anything runs.
        StorageError: the folder holds other things than a benchmark, or cannot be written.

    Example:
        >>> import molgraph
        >>> result = molgraph.benchmark("quick", "bench/quick", jobs=2)  # doctest: +SKIP
        >>> result.summary, result.scores, result.cells  # doctest: +SKIP
    """
    source = None
    if isinstance(recipe, str | Path):
        source = recipe_path(recipe)
        recipe = BenchRecipe.from_toml(source)
    elif not isinstance(recipe, BenchRecipe):
        recipe = BenchRecipe.from_dict({"name": "unnamed"} | dict(recipe))  # a file's name is its own
    own_tables = {entry.name: read_own_table(entry) for entry in recipe.table if entry.name not in (tables or {})}
    own_tables |= {name: read_table(data) for name, data in (tables or {}).items()}
    recipe = with_sides(recipe, own_tables)
    ran = run_benchmark(
        recipe,
        Path("bench") / recipe.name if out is None else Path(out),
        factory=FACTORY,
        imports=IMPORTS,
        tables=own_tables,
        jobs=jobs,
        engine=engine,
        retry=retry,
        only=only,
        dry_run=dry_run,
        source=source,
    )
    return BenchmarkResult(ran)


def read_own_table(own: OwnTable) -> Table:
    """A recipe's own table; where its file is missing, the error says from where paths are counted."""
    if os.path.exists(own.path) and not os.path.isfile(own.path) and not os.path.isdir(own.path):
        hint = "its rows are read more than once: write them to a file first"
        raise CannotReadError(f"the [[table]] {own.name!r}: {own.path} is a pipe or a device", hint=hint)
    try:
        table = read_table(own.path, **own.columns, targets=own.targets or None, split=own.split_column)
        return table if own.censoring is None else _uncensored(own, table)
    except StorageError as error:
        if os.path.exists(own.path):
            raise
        where = f"paths of a [[table]] are counted from the folder that the run is started in, {Path.cwd()}"
        hint = "; ".join(filter(None, (error.hint, where)))
        raise type(error)(f"the [[table]] {own.name!r}: {error.message}", hint=hint) from None


def _uncensored(own: OwnTable, table: Table) -> Table:
    """The table without the labels that its censoring column marks, or with all of them, as ``qualifiers`` says."""
    signs = read_table(own.path, **own.columns, split=own.censoring).split
    assert signs is not None
    marks = np.array([str(sign).strip() for sign in signs])
    known = np.isin(marks, ["", "=", "==", "nan", "None", *CENSORED])
    if not known.all():
        raise CellError(
            f"the [[table]] {own.name!r}: its censoring column says {str(marks[~known][0])!r}", hint="<, > or ="
        )
    if table.y is None:
        return table
    numbers = np.array([target.kind in ("regression", "bounded") for target in table.row_targets])
    there = numbers & np.isfinite(table.y)
    censored = np.isin(marks, CENSORED)[:, None] & there
    if censored.any() and own.qualifiers == "refuse":
        words = f"the [[table]] {own.name!r} has {censored.sum():,} censored labels"
        raise LabelError(words, hint='say qualifiers = "drop" to leave them out, or "strip" to take them as they are')
    kept = own.qualifiers == "strip"
    fate = "are read as if they were exact" if kept else "were taken out"
    notes = (f"{censored.sum():,} of {there.sum():,} labels are censored and {fate}",) * bool(censored.any())
    return replace(table, y=table.y if kept else np.where(censored, np.nan, table.y), notes=(*table.notes, *notes))
