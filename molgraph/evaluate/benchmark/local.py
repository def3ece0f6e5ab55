"""Run the cells of a benchmark on this machine, in the processes of a server."""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import Sequence

from molgraph.base.worker import Worker, start_worker
from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.server import serve
from molgraph.evaluate.benchmark.worker import THREADS

ENVIRONMENT = dict.fromkeys(THREADS, "1") | {
    "MOLGRAPH_QUIET": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",  # pyarrow's allocator would start a thread
    "PYTHONIOENCODING": "utf-8:backslashreplace",  # logs are read so
    "MALLOC_MMAP_THRESHOLD_": "1000000000",  # glibc keeps what was freed: DiffPool takes half the time on graphs of
    "MALLOC_TRIM_THRESHOLD_": "4000000000",  # 300 nodes, each of whose matrices would be mapped anew
}
logger = logging.getLogger("molgraph")


class LocalEngine:
    """Runs cells on this machine: forked from a server that has done the imports, or as fresh processes.

    Args:
        imports: modules that the server imports ahead.
        slots: cells at once.
        forks: whether cells may be forked.
    """

    def __init__(self, imports: Sequence[str], slots: int = 1, *, forks: bool = sys.platform == "linux") -> None:
        self.imports, self.slots, self.forks = list(imports) if forks else [], slots, forks
        self.running: set[int] = set()
        self.server = self._open()  # its imports take seconds, in which the runner reads data

    def start(self, number: int, job: Job) -> None:
        """Start the process of a cell."""
        self.running.add(number)
        with contextlib.suppress(OSError):  # the server is gone, and the next wait begins another
            self.server.line.send((number, job))

    def wait(self, seconds: float = 0.1) -> list[tuple[int, Outcome]]:
        """Outcomes of the cells that ended; waits that long for one at most."""
        if not self.server.line.poll(seconds):
            return []
        try:
            number, outcome = self.server.line.recv()
        except (EOFError, OSError):
            lost = [(number, Outcome("lost", "its server died with it")) for number in self.running]
            self.close()
            self.server = self._open()
            return lost
        if number >= 0:
            self.running.remove(number)
            return [(number, outcome)]
        self.ready = True
        if self.forks and outcome != 1:
            logger.warning("cells start slowly: none is forked, as the imports started %s threads", outcome - 1)
        return []

    def close(self) -> None:
        """End every process."""
        started = self.running and (self.ready or self.server.line.poll())  # else it is still busy with its imports
        self.server.line.close()  # which ends the server, and everything that it started
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.server.process.wait(5 if started else 0)
        self.server.process.kill()
        self.server.process.wait()
        self.running.clear()

    def _open(self) -> Worker:
        # what a library prints while it is imported is no result: it goes to the error stream
        server = start_worker(serve, stdout=2, env=dict(os.environ) | ENVIRONMENT)
        server.line.send((os.getpid(), self.imports, self.forks))
        self.ready = False
        return server
