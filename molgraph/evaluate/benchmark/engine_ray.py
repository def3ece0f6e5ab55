"""Run the cells of a benchmark on a Ray cluster."""

from __future__ import annotations

import platform
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from molgraph.base.cluster import Cluster
from molgraph.base.paths import disk_full
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.local import LocalEngine

LEAVE = 10.0  # seconds for the nodes to tidy up


class Seat:
    """Lives on a node of the cluster and runs one cell at a time there, as ``LocalEngine`` does on one machine.

    Files travel as bytes, so that no file system has to be shared; features are kept on the node.
    """

    def __init__(self, imports: Sequence[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="molgraph-"))
        self.engine = LocalEngine(imports)

    def run(self, job: Job, table: bytes, split: bytes) -> tuple[Outcome, dict[str, bytes]]:
        """Run a cell; its outcome and the files that its process wrote."""
        work, here, split_file = self.folder / "cell", self.folder / Path(job.table).name, self.folder / "split.json"
        try:
            if not here.exists():  # the name holds the data's hash
                here.write_bytes(table)
            shutil.rmtree(work, ignore_errors=True)
            work.mkdir()
            split_file.write_bytes(split)
            features = str(self.folder / "features")
            self.engine.start(0, replace(job, folder=str(work), table=str(here), split=str(split_file), store=features))
            while not (ended := self.engine.wait(1.0)):
                pass
            return ended[0][1], {path.name: path.read_bytes() for path in work.iterdir() if path.is_file()}
        except OSError as error:
            if not disk_full(error):
                raise
            return Outcome("disk", f"{platform.node()}: {error.strerror}"), {}

    def leave(self) -> None:
        """End what runs and take the seat's files off the node."""
        self.engine.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class RayEngine:
    """Runs cells on a Ray cluster (Moritz et al. 2018, OSDI): the one that ``RAY_ADDRESS`` names, else this machine.

    Args:
        imports: modules that each node's server imports ahead.
        slots: cells at once, over the whole cluster.
        threads: cores that a cell is given.
    """

    def __init__(self, imports: Sequence[str], slots: int = 1, threads: int = 1) -> None:
        self.cluster = Cluster()
        ray = self.ray = self.cluster.ray
        self.slots = slots
        self.make: Any = lambda: ray.remote(Seat).options(num_cpus=threads).remote(list(imports))
        self.idle: list[Any] = [self.make() for _ in range(slots)]
        self.busy: dict[Any, tuple[int, Job, Any]] = {}
        self.tables: dict[str, Any] = {}

    def start(self, number: int, job: Job) -> None:
        """Start a cell on a node that has room."""
        if job.table not in self.tables:  # once for all cells of a dataset
            self.tables[job.table] = self.ray.put(Path(job.table).read_bytes())
        seat: Any = self.idle.pop()
        promise = seat.run.remote(job, self.tables[job.table], Path(job.split).read_bytes())
        self.busy[promise] = number, job, seat

    def wait(self, seconds: float = 0.05) -> list[tuple[int, Outcome]]:
        """Outcomes of the cells that ended; waits that long for one at most."""
        if not self.busy:
            time.sleep(seconds)
            return []
        ready, ended = self.ray.wait(list(self.busy), timeout=seconds)[0], []
        for promise in ready:
            number, job, seat = self.busy.pop(promise)
            try:
                outcome, files = self.ray.get(promise)
            except self.ray.exceptions.RayError as error:  # its node or worker went away
                words = " ".join(str(error).split())[:300]
                seat, outcome, files = self.make(), Outcome("lost", f"its Ray worker was lost: {words}"), {}
            self.idle.append(seat)
            for name, content in files.items():
                (Path(job.folder) / name).write_bytes(content)
            ended.append((number, outcome))
        return ended

    def close(self) -> None:
        """End the seats, and the cluster where this engine began it."""
        if self.idle:
            self.ray.wait([seat.leave.remote() for seat in self.idle], num_returns=len(self.idle), timeout=LEAVE)
        for seat in [*self.idle, *(seat for _, _, seat in self.busy.values())]:
            self.ray.kill(seat)
        self.cluster.close()
