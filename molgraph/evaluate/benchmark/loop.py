"""Keep an engine busy with the missing cells until each stands in its folder."""

from __future__ import annotations

import errno
import logging
import shutil
import time
from collections import Counter, deque
from collections.abc import Collection, Mapping
from itertools import count
from pathlib import Path
from typing import Protocol

from molgraph.base import progress
from molgraph.base.errors import StorageError
from molgraph.base.paths import storage_error
from molgraph.evaluate.benchmark.cells import Cell, file_of_split
from molgraph.evaluate.benchmark.forecast import Forecast, in_words
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.locks import Claims
from molgraph.evaluate.benchmark.plan import WORK, DatasetPlan
from molgraph.evaluate.benchmark.recipe import BenchRecipe
from molgraph.evaluate.benchmark.store import keep, read_manifest, work_folder

# what a disk or a folder answers where it can take nothing more
NO_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM)
LOOK = 2.0  # seconds between two looks at cells that another run works on
logger = logging.getLogger("molgraph")


class Engine(Protocol):
    """Where cells run, ``slots`` of them at once."""

    slots: int

    @property
    def free(self) -> int:
        """How many more cells may start."""

    def start(self, number: int, job: Job) -> None:
        """Start a cell; ``number`` is the run's name for it."""

    def wait(self, seconds: float = ...) -> list[tuple[int, Outcome]]:
        """Outcomes of cells that ended; waits that long for one at most."""

    def close(self) -> None:
        """End everything."""


class Loop:
    """Keeps the engine busy until no cell is left."""

    def __init__(
        self,
        recipe: BenchRecipe,
        out: Path,
        factory: str,
        problems: Mapping[str, DatasetPlan],
        engine: Engine,
        again: Collection[str],
    ) -> None:
        self.recipe, self.out, self.factory, self.problems = recipe, out, factory, problems
        self.engine, self.again = engine, again
        self.claims = Claims(out / WORK / "claims")
        self.running: dict[int, tuple[Cell, Job]] = {}
        self.made: Counter[str] = Counter()
        self.forecast = Forecast({name: problem.rows for name, problem in problems.items()})
        self.failures: list[tuple[Cell, str, str]] = []
        self.before = {c.key: made_at(out, c) for p in problems.values() for c in p.cells} if again else {}

    def run(self, todo: list[Cell]) -> None:
        """Compute the cells; those that another run works on are waited for, and taken over where it gives them up.

        Raises:
            StorageError: the disk is full, or the folder takes nothing more; the cell at hand is not kept.
        """
        left, elsewhere, numbers, look = deque(todo), list[Cell](), count(), 0.0
        with progress.bar(self.recipe.name, total=len(todo)) as bar:
            try:
                while left or elsewhere or self.running:
                    if elsewhere and not left and time.monotonic() >= look:
                        left, elsewhere, look = deque(elsewhere), [], time.monotonic() + LOOK
                    while left and self.engine.free:
                        state = self._begin(left[0], next(numbers))
                        cell = left.popleft()
                        if state == "elsewhere":
                            elsewhere.append(cell)
                        bar.advance(state == "there")
                    for number, outcome in sorted(self.engine.wait(), key=lambda each: each[1].status == "disk"):
                        cell = self._end(number, outcome)
                        bar.advance()
                        self._tell(cell, [*left, *elsewhere])
                    bar.describe(self._words([*left, *elsewhere]))
            except KeyboardInterrupt as stop:
                stop.add_note(self._kept)
                raise
            except OSError as error:
                if error.errno not in NO_WRITING:
                    raise
                found = storage_error(f"cannot write the benchmark's folder {self.out}", error)
                raise self._no_room(found.message, error) from error
            finally:
                self.claims.close()

    def _begin(self, cell: Cell, number: int) -> str:
        """Start a cell unless another run has done it (``there``) or is at it (``elsewhere``)."""
        if not self.claims.take(cell.key):
            return "elsewhere"
        if not self._still_missing(cell):
            self.claims.release(cell.key)
            return "there"
        job = self._job(cell)
        self.engine.start(number, job)
        self.running[number] = cell, job
        return "running"

    def _still_missing(self, cell: Cell) -> bool:
        manifest = read_manifest(self.out, cell)
        if manifest is None:
            return True
        return manifest["status"] in self.again and manifest["made"] == self.before.get(cell.key)

    def _end(self, number: int, outcome: Outcome) -> Cell:
        cell, job = self.running.pop(number)
        problem, split = self.problems[cell.dataset], self.recipe.of_split(cell.split)
        if outcome.status == "disk":
            shutil.rmtree(job.folder, ignore_errors=True)
            raise self._no_room(f"{cell} was not computed: {outcome.reason}", OSError(errno.ENOSPC, ""))
        label = {"recipe": split.recipe, "params": split.params, "seed": split.seeds[0 if split.folds else cell.repeat]}
        try:
            keep(self.out, cell, problem, job, label, outcome)
        except OSError:
            shutil.rmtree(job.folder, ignore_errors=True)
            raise
        self.claims.release(cell.key)
        self.made[outcome.status] += 1
        if outcome.status != "ok":
            self.failures.append((cell, outcome.status, outcome.reason))
            logger.info("%s: %s: %s", cell, outcome.status, outcome.reason)
        self.forecast.add(cell, outcome.seconds)
        return cell

    @property
    def _kept(self) -> str:
        return f"{sum(self.made.values())} cells were kept; the same command goes on from here"

    def _no_room(self, message: str, error: OSError) -> StorageError:
        """What ends the run, with what to do about it and what is kept."""
        return StorageError(message, hint=f"{storage_error('', error).hint}\n{self._kept}")

    def _tell(self, ended: Cell, left: list[Cell]) -> None:
        """Say so when the last fold of a method on a dataset has ended: the progress of a run without a terminal."""
        row = (ended.dataset, ended.split, ended.method)
        rest = [*left, *(cell for cell, _ in self.running.values())]
        if any((cell.dataset, cell.split, cell.method) == row for cell in rest):
            return
        hours = in_words(self.forecast.left(rest, self.engine.slots))
        logger.info("%s: done%s", " ".join(row), f"; {len(rest):,} cells are left, about {hours}" if rest else "")

    def _job(self, cell: Cell) -> Job:
        problem, method = self.problems[cell.dataset], self.recipe.of_method(cell.method)
        return Job(
            name=str(cell),
            folder=str(work_folder(self.out, cell).resolve()),
            table=str(problem.table_file(self.out).resolve()),
            split=str(file_of_split(self.out, cell.dataset, cell.split, cell.repeat, cell.fold).resolve()),
            factory=self.factory,
            imports=self.recipe.run.imports,
            method=method.name,
            params=method.params,
            inputs=method.inputs,
            seed=cell.seed,
            search=None if method.search is None else method.search.model_dump(mode="json"),
            metrics=problem.metrics,
            threads=self.recipe.run.threads,
            store=str((self.out / WORK / "features").resolve()),
            seconds=self.recipe.budget.seconds,
            memory_gb=self.recipe.budget.memory_gb,
        )

    def _words(self, left: list[Cell]) -> str:
        """What runs now, what failed, and for how long it will go on, as cells of other methods cost other times."""
        now = ", ".join(f"{cell.dataset} {cell.method}" for cell, _ in list(self.running.values())[:2])
        failed = f", {len(self.failures)} failed" if self.failures else ""
        hours = self.forecast.left([*left, *(cell for cell, _ in self.running.values())], self.engine.slots)
        return f"{now or self.recipe.name}{failed}{f', about {in_words(hours)}' if hours else ''}"


def made_at(out: Path, cell: Cell) -> str | None:
    """When a cell was computed, or None."""
    manifest = read_manifest(out, cell)
    return None if manifest is None else manifest["made"]
