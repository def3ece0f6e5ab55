"""Run a benchmark: compute every cell that its folder lacks, one process each."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path

from molgraph.base import progress
from molgraph.base.errors import UsageError, nearest
from molgraph.base.paths import storage_error
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.cells import FAILED, Cell, in_order
from molgraph.evaluate.benchmark.engine_ray import RayEngine
from molgraph.evaluate.benchmark.folder import check_folder, check_unchanged, open_folder
from molgraph.evaluate.benchmark.job import load_factory
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.locks import Claims
from molgraph.evaluate.benchmark.loop import NO_WRITING, Engine, Loop
from molgraph.evaluate.benchmark.missing_libraries import check_installed
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan, check_recipe, prepare
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.run_folder import read_records
from molgraph.evaluate.benchmark.scoring import write_scores
from molgraph.evaluate.benchmark.store import read_manifest

ENGINES = ("local", "ray")
ONLY = ("dataset", "split", "method", "seed", "repeat", "fold")
logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class Ran:
    """What a run did.

    Args:
        out: the benchmark's folder.
        recipe: what was asked for.
        wanted: cells that the recipe asks for (those of ``only``).
        there: how many of them stood there before.
        made: status -> how many cells ended so in this run.
        failures: each cell that did not end well in this run, with status and reason.
        problems: the datasets that were asked for, by name, as their plans have them.
        stale: folders of cells that this recipe does not ask for; they are kept and not read.
        seconds: wall time.
    """

    out: Path
    recipe: BenchRecipe
    wanted: int
    there: int
    made: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[tuple[Cell, str, str], ...] = ()
    problems: Mapping[str, DatasetPlan] = field(default_factory=dict)
    stale: int = 0
    seconds: float = 0.0

    @property
    def refused(self) -> dict[str, str]:
        """Dataset -> why it was refused."""
        return {name: problem.refused for name, problem in self.problems.items() if problem.refused}

    @property
    def refused_splits(self) -> dict[tuple[str, str], str]:
        """Dataset and split label -> why that split cannot divide it."""
        return {(n, label): why for n, p in self.problems.items() for label, why in p.refused_splits.items()}

    @property
    def refusals(self) -> tuple[str, ...]:
        """Datasets and splits that were refused, and why, a line each."""
        return tuple(line for problem in self.problems.values() for line in problem.refusals)

    @property
    def none_ok(self) -> bool:
        """Whether cells were computed and all of them failed."""
        return bool(self.made) and not self.made.get("ok")

    @property
    def unused(self) -> tuple[str, ...]:
        """Rows of the datasets that no method is given, and why, a line each."""
        return tuple(problem.unused for problem in self.problems.values() if problem.unused)


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
    """Compute the cells of a benchmark that its folder lacks.

    Args:
        recipe: datasets, splits, methods, seeds, budget.
        out: the folder; a run that was killed goes on where it was, and several may work in it at once.
        factory: dotted name of the function that makes methods, ``module:function``.
        imports: modules that a cell's process needs, imported once ahead.
        tables: datasets that are no card's, by name.
        jobs: cells at once; the recipe's where not given.
        engine: ``local``, ``ray``, or one that is open already, which is not closed.
        retry: statuses (``crashed``, ``timeout``, ``memory``, ``refused``; ``failed`` for all) to compute again.
        only: which datasets, splits, methods, seeds, repeats or folds to compute.
        dry_run: compute nothing and write nothing.
        source: the file that the recipe was read from.

    Raises:
        UsageError: something in the recipe or the arguments that nobody knows, or a file that is read and would be
            written over, before anything runs.
        StorageError: the folder holds other things than a benchmark, another run works in it with another recipe, it
            cannot be written, or the disk is full; cells that were done are kept.
    """
    started = time.perf_counter()
    tables, only = dict(tables or {}), {k: set(map(str, v)) for k, v in (only or {}).items()}
    again = _statuses(retry)
    if isinstance(engine, str) and engine not in ENGINES:
        raise UsageError(f"no engine is named {engine!r}", hint=nearest(engine, ENGINES))
    _import(recipe.run.imports)
    make = load_factory(factory)
    check_recipe(recipe, make, tables)
    _check_only(recipe, only)
    check_folder(out, recipe, source)
    made_by = None
    if not dry_run:
        open_folder(out, recipe)
        made_by = _engine(engine, jobs or recipe.run.jobs, recipe.run.threads, [*imports, *recipe.run.imports])
    try:
        problems = _prepare(recipe, out, tables, only, write=not dry_run)
        cells = [c for p in problems.values() for c in p.cells if _asked(c, only)]
        cells = in_order(recipe, cells, {name: p.rows for name, p in problems.items()})
        todo = [c for c in cells if _missing(out, c, again)]
        if engine != "ray":  # its nodes have environments of their own
            check_installed(recipe, make, {c.method for c in todo})
        ran = Ran(out, recipe, len(cells), len(cells) - len(todo), {}, (), problems, _stale(out, problems))
        if dry_run or made_by is None:
            return ran
        loop = Loop(recipe, out, factory, problems, made_by, again)
        loop.run(todo)
        check_unchanged(out, recipe)
        write_scores(read_records(out))
    except OSError as error:
        if error.errno not in NO_WRITING:
            raise
        raise storage_error(f"cannot write the benchmark's folder {out}", error) from error
    finally:
        if made_by is not None and made_by is not engine:
            made_by.close()
    seconds = time.perf_counter() - started
    return replace(ran, made=dict(loop.made), failures=tuple(loop.failures), seconds=seconds)


def _import(modules: Sequence[str]) -> None:
    """Import the modules that a recipe names, so that what they register is known."""
    for module in modules:
        try:
            import_module(module)
        except Exception as error:  # it is somebody else's code, which may raise anything
            hint = "is it installed?" if isinstance(error, ImportError) else "import it in Python to see where"
            raise UsageError(f"the recipe imports {module!r}, which fails: {error}", hint=hint) from error


def _statuses(retry: Collection[str]) -> frozenset[str]:
    for word in retry:
        if word not in (*FAILED, "failed"):
            raise UsageError(f"no cell ends as {word!r}", hint=nearest(word, (*FAILED, "failed")))
    return frozenset(FAILED if "failed" in retry else retry)


def _check_only(recipe: BenchRecipe, only: Mapping[str, Collection[str]]) -> None:
    splits = [s for s in recipe.split if s.name in only.get("split", [s.name])]
    parts = [part for s in splits for part in s.parts]
    known: dict[str, list[str]] = {
        "dataset": list(recipe.datasets),
        "split": [s.name for s in recipe.split],
        "method": [m.row for m in recipe.method],
        "seed": [str(seed) for s in splits for seed in recipe.seeds_of(s)],
        "repeat": [str(repeat) for repeat, _ in parts],
        "fold": [str(fold) for _, fold in parts],
    }
    for key in (*ONLY, *only):  # the splits first, as they say which folds there are
        if key not in known:
            raise UsageError(f"cells have no {key!r}", hint=nearest(key, ONLY))
        for value in only.get(key, ()):
            if value not in known[key]:
                numbers = "known: " + ", ".join(dict.fromkeys(known[key]))
                hint = numbers if key in ("seed", "repeat", "fold") else nearest(value, known[key])
                raise UsageError(f"the recipe has no {key} {value!r}", hint=hint)


def _asked(cell: Cell, only: Mapping[str, Collection[str]]) -> bool:
    return all(str(getattr(cell, key)) in values for key, values in only.items())


def _missing(out: Path, cell: Cell, again: Collection[str]) -> bool:
    manifest = read_manifest(out, cell)
    return manifest is None or manifest["status"] in again


def _engine(name: str | Engine, jobs: int, threads: int, imports: Sequence[str]) -> Engine:
    if not isinstance(name, str):
        return name
    if name == "ray":
        return RayEngine(imports, jobs, threads)
    return LocalEngine(imports, jobs)


def _prepare(
    recipe: BenchRecipe, out: Path, tables: Mapping[str, Table], only: Mapping[str, Collection[str]], *, write: bool
) -> dict[str, DatasetPlan]:
    """Every dataset that is asked for, one run at a time: another may freeze the same splits."""
    found = {}
    for name in progress.track(recipe.datasets, label="reading and splitting"):
        if name in only.get("dataset", recipe.datasets):
            with _alone(out / WORK / "claims", f"prepare-{name}", write):
                found[name] = prepare(recipe, out, name, tables.get(name), write=write)
                if write:
                    check_unchanged(out, recipe)
                    found[name].save(out)
            for line in found[name].refusals:
                logger.warning("%s", line)
    return found


def _stale(out: Path, problems: Mapping[str, DatasetPlan]) -> int:
    """Folders of cells, in the datasets at hand, that the recipe does not ask for."""
    usable = {name: problem for name, problem in problems.items() if not problem.refused}  # of others nothing is known
    wanted = {c.folder(out) for p in usable.values() for c in p.cells}
    return sum(folder not in wanted for name in usable for folder in (out / "cells" / name).glob("*/*/*"))


@contextmanager
def _alone(folder: Path, key: str, write: bool) -> Iterator[None]:
    claims = Claims(folder)
    while write and not claims.take(key):
        time.sleep(0.1)
    try:
        yield
    finally:
        claims.close()
