"""Run a benchmark: compute every cell that its folder lacks, one process each."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from molgraph.base import progress
from molgraph.base.cluster import check_engine
from molgraph.base.errors import NotInstalledError, UnknownNameError, UsageError, nearest
from molgraph.base.locks import Claims
from molgraph.base.optional import how_to_install, missing
from molgraph.base.paths import storage_error
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import FAILED, Cell, in_order
from molgraph.evaluate.benchmark.engine_ray import RayEngine
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.loop import NO_WRITING, Engine, Loop
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan, Planned, Resolved, check_recipe, prepare
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run_folder import SUBMITTED, check_unchanged, open_folder, read_records
from molgraph.evaluate.benchmark.scoring import write_scores
from molgraph.evaluate.benchmark.store import read_manifest

logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class Ran(Planned):
    """What a run did."""

    out: Path
    recipe: BenchRecipe
    wanted: int  # cells that the recipe asks for (those of ``only``)
    there: int  # how many of them stood there before
    made: Mapping[str, int] = field(default_factory=dict)  # status -> how many cells ended so in this run
    failures: tuple[tuple[Cell, str, str], ...] = ()  # cells that did not end well, now or before, status, reason
    problems: Mapping[str, DatasetPlan] = field(default_factory=dict)  # the datasets that were asked for, by name
    stale: int = 0  # folders of cells that this recipe does not ask for; they are kept and not read
    seconds: float = 0.0

    @property
    def none_ok(self) -> bool:
        """Whether cells were computed and all of them failed."""
        return bool(self.made) and not self.made.get("ok")

    @property
    def unused(self) -> tuple[str, ...]:
        """Rows of the datasets that no method is given, and why, a line each."""
        return tuple(f"{name}: {problem.row_count}" for name, problem in self.problems.items() if problem.left_out)


def run_benchmark(
    recipe: BenchRecipe,
    out: Path,
    *,
    factory: str,
    imports: Sequence[str] = (),
    tables: Mapping[str, Table] | None = None,
    jobs: int | None = None,
    engine: str | Engine = "local",
    retry: Collection[str] = (),
    only: Mapping[str, Collection[str]] | None = None,
    dry_run: bool = False,
    source: Path | None = None,
) -> Ran:
    """Compute the cells of a benchmark that its folder lacks; several runs may work in a folder at once.

    The arguments are those of ``molgraph.benchmark``, and these.

    Args:
        factory: dotted name of the function that makes methods, ``module:function``.
        imports: modules that a cell's process needs, imported once ahead.
        engine: ``local``, ``ray``, or one that is open already, which is not closed.
        source: the file that the recipe was read from.
    """
    started = time.perf_counter()
    tables, only = dict(tables or {}), {k: set(map(str, v)) for k, v in (only or {}).items()}
    for word in retry:
        if word not in (*FAILED, "failed"):
            raise UnknownNameError(f"no cell ends as {word!r}", hint=nearest(word, (*FAILED, "failed")))
    again = FAILED if "failed" in retry else tuple(retry)
    if isinstance(engine, str):
        check_engine(engine)
    _import(recipe.run.imports)
    resolved, needs = check_recipe(recipe, factory, tables)
    _check_only(recipe, only)
    open_folder(out, recipe, source, write=not dry_run)
    here = engine != "ray"  # the nodes of a cluster have environments of their own
    try:
        with ExitStack() as opened:
            if not dry_run and isinstance(engine, str):
                ahead, slots = [*imports, *recipe.run.imports], jobs or recipe.run.jobs
                backend = LocalEngine(ahead, slots) if here else RayEngine(ahead, slots, recipe.run.threads)
                engine = opened.enter_context(closing(backend))
            problems, wanted = {}, only.get("dataset", recipe.datasets)
            for name in progress.track([n for n in recipe.datasets if n in wanted], label="reading and splitting"):
                asked = (recipe, out, name, tables.get(name), resolved)
                problems[name] = prepare(*asked, write=False) if dry_run else _prepare_alone(*asked)
                for line in () if dry_run else problems[name].refusals:
                    logger.warning("%s", line)
            planned = [c for problem in problems.values() for c in problem.cells]
            cells = [c for c in planned if all(str(getattr(c, key)) in values for key, values in only.items())]
            manifests = {c: read_manifest(out, c) for c in cells}
            todo = [c for c, manifest in manifests.items() if manifest is None or manifest["status"] in again]
            if here:
                _check_installed({row: needs[row] for row in needs if any(c.method == row for c in todo)})
            ran = Ran(out, recipe, len(cells), len(cells) - len(todo), problems=problems, stale=_stale(out, problems))
            if dry_run or isinstance(engine, str):  # none was opened
                return ran
            loop = Loop(recipe, out, factory, problems, engine)
            loop.run(in_order(recipe, todo, {name: p.rows for name, p in problems.items()}))
            check_unchanged(out, recipe)
            write_scores(read_records(out))
    except OSError as error:
        if error.errno not in NO_WRITING:
            raise
        raise storage_error(f"cannot write the benchmark's folder {out}", error) from error
    seconds = time.perf_counter() - started
    lost = [(c, m["status"], m["reason"]) for c, m in manifests.items() if m and m["status"] not in ("ok", *again)]
    return replace(ran, made=dict(loop.made), failures=(*loop.failures, *lost), seconds=seconds)


def _prepare_alone(recipe: BenchRecipe, out: Path, name: str, table: Table | None, resolved: Resolved) -> DatasetPlan:
    """Prepare a dataset and write its plan, one run at a time, as another may freeze the same splits."""
    with closing(Claims(out / WORK / "claims")) as claims:
        claims.take(f"prepare-{name}", wait=True)
        problem = prepare(recipe, out, name, table, resolved)
        check_unchanged(out, recipe)
        problem.save(out)
    return problem


def _import(modules: Sequence[str]) -> None:
    """Import the modules that a recipe names, so that what they register is known."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # it is somebody else's code, which may raise anything
            hint = "is it installed?" if isinstance(error, ImportError) else "import it in Python to see where"
            raise UsageError(f"the recipe imports {module!r}, which fails: {error}", hint=hint) from error


def _check_only(recipe: BenchRecipe, only: Mapping[str, Collection[str]]) -> None:
    splits = [s for s in recipe.split if s.name in only.get("split", [s.name])]
    parts = [part for s in splits for part in s.parts]
    known = {
        "dataset": list(recipe.datasets),
        "split": [s.name for s in recipe.split],
        "method": [m.row for m in recipe.method],
        "seed": [str(seed) for s in splits for seed in recipe.seeds_of(s)],
        "repeat": [str(repeat) for repeat, _ in parts],
        "fold": [str(fold) for _, fold in parts],
    }
    for key in (*known, *only):  # the splits first, as they say which folds there are
        if key not in known:
            raise UnknownNameError(f"cells have no {key!r}", hint=nearest(key, known))
        for value in only.get(key, ()):
            if value not in known[key]:
                numbers = "known: " + ", ".join(dict.fromkeys(known[key]))
                hint = numbers if key in ("seed", "repeat", "fold") else nearest(value, known[key])
                raise UnknownNameError(f"the recipe has no {key} {value!r}", hint=hint)


def _check_installed(needs: Mapping[str, Sequence[str]]) -> None:
    """Refuse, before the first cell, a run whose cells would be refused one by one for want of a library."""
    lacks = {row: gone for row, libraries in needs.items() if (gone := missing(libraries))}
    if lacks:
        details = ", ".join(f"{row} needs {' and '.join(gone)}" for row, gone in lacks.items())
        others = ",".join(row for row in needs if row not in lacks)
        without = f"\nor leave them out: --only method={others}" if others else ""
        install = how_to_install(name for gone in lacks.values() for name in gone)
        raise NotInstalledError(f"not installed here: {details}", hint=install + without)


def _stale(out: Path, problems: Mapping[str, DatasetPlan]) -> int:
    """Folders of cells, in the datasets at hand, that the recipe does not ask for."""
    usable = {name: problem for name, problem in problems.items() if not problem.refused}  # of others nothing is known
    wanted = {cell.folder(out) for problem in usable.values() for cell in problem.cells}
    rows = {path.stem for path in (out / SUBMITTED).glob("*.json")}
    there = [folder for name in usable for folder in (out / "cells" / name).glob("*/*/*")]
    return sum(folder not in wanted and folder.parent.name not in rows for folder in there)
