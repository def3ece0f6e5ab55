"""Keep an engine busy with the missing cells until each stands in its folder."""

from __future__ import annotations

import errno
import itertools
import logging
import shutil
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import log, sqrt
from pathlib import Path
from statistics import mean

from molgraph.base import progress
from molgraph.base.errors import CannotWriteError, StorageError
from molgraph.base.locks import Claims
from molgraph.base.paths import storage_error
from molgraph.base.printable import count
from molgraph.evaluate.benchmark.cells import Cell, file_of_split
from molgraph.evaluate.benchmark.engine_ray import RayEngine
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.local import LocalEngine
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.store import keep, make_manifest, read_manifest, work_folder
from molgraph.evaluate.label_check import label_noise

# what a disk or a folder answers where it can take nothing more
NO_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
RESTARTS = 2  # of a cell whose server died under it, or whose node of a cluster went away
Engine = LocalEngine | RayEngine
logger = logging.getLogger("molgraph")


class Loop:
    """Keeps the engine busy until no cell is left."""

    def __init__(
        self, recipe: BenchRecipe, out: Path, factory: str, problems: Mapping[str, DatasetPlan], engine: Engine
    ) -> None:
        self.recipe, self.out, self.factory, self.problems, self.engine = recipe, out, factory, problems, engine
        self.claims = Claims(out / WORK / "claims")
        self.numbers, self.left = itertools.count(), deque[Cell]()
        self.running: dict[int, tuple[Cell, Job]] = {}
        self.made, self.lost = Counter[str](), Counter[int]()  # by status; how often a running cell's server died
        self.seconds: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
        self.failures: list[tuple[Cell, str, str]] = []

    def run(self, todo: list[Cell]) -> None:
        """Compute the cells; those that another run works on are waited for, and taken over where it gives them up."""
        self.left = deque(todo)
        before = {cell: read_manifest(self.out, cell) for cell in todo}
        with progress.bar(self.recipe.name, total=len(todo)) as bar:
            try:
                while self.left or self.running:
                    for _ in range(len(self.left)):
                        if len(self.running) >= self.engine.slots:
                            break
                        cell = self.left.popleft()
                        if not self.claims.take(cell.key):  # another run works on it: once more after the others
                            self.left.append(cell)
                        elif read_manifest(self.out, cell) not in (None, before[cell]):  # another run has done it
                            self.claims.release(cell.key)
                            bar.advance()
                        else:
                            self._start(cell)
                    for number, outcome in sorted(self.engine.wait(), key=lambda each: each[1].status == "disk"):
                        if outcome.status == "lost" and self.lost[number] < RESTARTS:
                            self.lost[number] += 1
                            self.engine.start(number, self.running[number][1])
                        else:
                            self._end(number, outcome)
                            bar.advance()
                    bar.describe(self._words())
            except KeyboardInterrupt as stop:
                stop.add_note(self._kept)
                raise
            except (OSError, StorageError) as error:
                if isinstance(error, OSError):
                    if error.errno not in NO_WRITING:
                        raise
                    error = storage_error(f"cannot write the benchmark's folder {self.out}", error)
                raise type(error)(error.message, hint=f"{error.hint}\n{self._kept}") from error
            finally:
                self.claims.close()

    def _start(self, cell: Cell) -> None:
        problem, recipe = self.problems[cell.dataset], self.recipe
        job = Job(
            folder=str(work_folder(self.out, cell).resolve()),
            table=str(problem.table_file(self.out).resolve()),
            split=str(file_of_split(self.out, cell.dataset, *cell.part).resolve()),
            factory=self.factory,
            method=recipe.of_method(cell.method),
            seed=cell.seed,
            metrics=problem.metrics,
            run=recipe.run,
            budget=recipe.budget,
            generation=recipe.generation,
            noise=label_noise(cell.dataset),
            store=str((self.out / WORK / "features").resolve()),
        )
        number = next(self.numbers)
        self.engine.start(number, job)
        self.running[number] = cell, job

    def _end(self, number: int, outcome: Outcome) -> None:
        cell, job = self.running.pop(number)
        if outcome.status == "lost":
            outcome = replace(outcome, status="crashed")
        try:
            if outcome.status == "disk":
                hint = storage_error("", OSError(errno.ENOSPC, "")).hint
                raise CannotWriteError(f"{cell} was not computed: {outcome.reason}", hint=hint)
            manifest = make_manifest(cell, self.problems[cell.dataset], self.recipe, outcome)
            keep(self.out, cell, Path(job.folder), manifest)
        except (OSError, StorageError):
            shutil.rmtree(job.folder, ignore_errors=True)
            raise
        self.claims.release(cell.key)
        self.made[outcome.status] += 1
        if outcome.status != "ok":
            self.failures.append((cell, outcome.status, outcome.reason))
            logger.info("%s: %s: %s", *self.failures[-1])
        self.seconds[cell.method][cell.dataset].append(outcome.seconds)
        self._tell(cell)

    @property
    def _kept(self) -> str:
        return f"{sum(self.made.values())} cells were kept; the same command goes on from here"

    @property
    def _rest(self) -> list[Cell]:
        """Cells that are not done."""
        return [*self.left, *(cell for cell, _ in self.running.values())]

    def _tell(self, ended: Cell) -> None:
        """Say so when the last fold of a method on a dataset has ended: the progress of a run without a terminal."""
        row = (ended.dataset, ended.split, ended.method)
        if all((cell.dataset, cell.split, cell.method) != row for cell in self._rest):
            n = len(self._rest)
            logger.info("%s: done%s", " ".join(row), f"; {count(n, 'cell')} left{self._time_left}" if n else "")

    def _words(self) -> str:
        """What runs now, what failed, and for how long it will go on, as cells of other methods cost other times."""
        now = ", ".join(f"{cell.dataset} {cell.method}" for cell, _ in [*self.running.values()][:2])
        failed = f", {len(self.failures)} failed" if self.failures else ""
        return f"{now or self.recipe.name}{failed}{self._time_left}"

    @property
    def _time_left(self) -> str:
        seconds = seconds_left(self._rest, self.seconds, {name: task.rows for name, task in self.problems.items()})
        return f", about {in_words(seconds / self.engine.slots)}" if seconds else ""


def seconds_left(cells: Iterable[Cell], known: Mapping[str, dict[str, list[float]]], rows: Mapping[str, int]) -> float:
    """Seconds of work in these cells: as of the method on the set nearest in rows, times the root of the ratio of rows.

    The root stands between forests, which take time with the rows, and networks with a least number of steps. A method
    that has not run yet is taken for the dearest that has, as cheap ones come first; 0 where none has.
    """
    total = 0.0
    for (dataset, method), n in Counter((cell.dataset, cell.method) for cell in cells).items():
        times = []
        for done in [known[method]] if method in known else known.values():
            near = min(done, key=lambda each: abs(log(rows[each] / rows[dataset])))
            times.append(n * mean(done[near]) * sqrt(rows[dataset] / rows[near]))
        total += max(times, default=0.0)
    return total


def in_words(seconds: float) -> str:
    """A duration as people say it.

    Example:
        >>> in_words(40), in_words(400), in_words(9000)
        ('40 s', '7 min', '2.5 h')
    """
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
