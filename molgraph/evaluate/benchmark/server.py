"""Start a process for each cell of a benchmark, end those that exceed their budget, and tell how each ended.

It runs in a process of its own, which imports everything once and starts no thread, so that a fork of it is whole. A
cell is such a fork. It is a fresh process instead where the imports started threads, on other systems than Linux, and
where the cell uses another device than the processor.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import signal
import sys
import time
from dataclasses import dataclass, field
from importlib import import_module
from multiprocessing import Pipe
from multiprocessing.connection import Connection, wait
from pathlib import Path
from subprocess import Popen
from typing import Any, NoReturn

from molgraph.base.paths import disk_full
from molgraph.base.process_tree import adopt_orphans, end_orphans, memory_mb
from molgraph.base.worker import die_with, start_worker
from molgraph.evaluate.benchmark.cells import LOG, end_of
from molgraph.evaluate.benchmark.job import Job, Outcome, machine, versions
from molgraph.evaluate.benchmark.worker import THREADS, compute

TICK = 0.05  # seconds between two looks at what runs
MOST_PRINTED = 100_000_000  # bytes of what a cell prints; it is stopped beyond
IMPORT_SECONDS = 300.0  # that a fresh process may take before its cell begins
_MAXRSS = 2**20 if sys.platform == "darwin" else 2**10  # the unit of the system's count, as a part of a megabyte


@dataclass
class _Running:
    """The process of a cell, which begins to compute once its imports are done."""

    job: Job
    pid: int
    line: Connection
    process: Popen | None = None  # a fresh one; else a fork
    began: float = field(default_factory=time.monotonic)
    peak_mb: float = 0.0
    ahead: float = IMPORT_SECONDS  # that it may take more than its budget, until it says that it began


def serve(line: Connection) -> NoReturn:
    """Run the cells that come in as ``(number, job)``, and send ``(number, outcome)`` of each that ended.

    What comes first is the runner's process number, the modules to import ahead, and whether cells may be forked; the
    first answer is ``(-1, number of threads)``. When the line is closed, everything ends.
    """
    parent, imports, forks = line.recv()
    die_with(parent)
    adopt_orphans()
    for module in imports:
        with contextlib.suppress(Exception):  # an extra that is not installed, or one that a cell names in its turn
            import_module(module)
    versions(), machine()  # looked up once; the forks have them
    gc.collect()
    gc.freeze()  # so that no collection in a fork touches, and copies, what they share
    n_threads = len(os.listdir("/proc/self/task")) if sys.platform == "linux" else 0
    running: dict[int, _Running] = {}
    with contextlib.suppress(EOFError, OSError):  # the runner is gone
        line.send((-1, n_threads))
        while True:
            ready = wait([line, *(child.line for child in running.values())], TICK if running else None)
            if line in ready:
                number, job = line.recv()
                inherited = [line, *(child.line for child in running.values())]
                try:
                    running[number] = _start(job, inherited, forks and n_threads == 1 and job.on_cpu)
                except OSError as error:
                    status = "disk" if disk_full(error) else "crashed"
                    line.send((number, Outcome(status, f"its process did not start: {error.strerror}")))
            for number, child in list(running.items()):
                outcome = _look(child)
                if outcome is not None:
                    del running[number]
                    end_orphans({other.pid for other in running.values()})
                    line.send((number, outcome))
    for child in running.values():
        for kill in (os.killpg, os.kill):  # a group of its own it may not have made yet
            with contextlib.suppress(OSError):
                kill(child.pid, signal.SIGKILL)
    end_orphans(set())
    os._exit(0)  # the runner waits for it, and what was imported takes its time to end


def _start(job: Job, inherited: list[Connection], fork: bool) -> _Running:
    """Begin a cell as a fork, which closes what it inherited, or as a fresh process."""
    log = os.open(Path(job.folder) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    if fork:
        server, (ours, theirs) = os.getpid(), Pipe()
        pid = os.fork()
        if pid == 0:
            _become(job, theirs, log, server, inherited)
        theirs.close()
        child = _Running(job, pid, ours)
    else:
        env = dict(os.environ) | dict.fromkeys(THREADS, str(job.run.threads))
        worker = start_worker(_fresh, stdout=log, stderr=log, env=env)
        worker.line.send((job, os.getpid()))
        child = _Running(job, worker.process.pid, worker.line, worker.process)
    os.close(log)
    return child


def _become(job: Job, line: Connection, log: int, server: int, inherited: list[Connection]) -> NoReturn:
    """In the forked process: leave the server's pipes, compute the cell, end."""
    code = 70
    try:
        die_with(server)
        adopt_orphans()
        os.setsid()
        for connection in inherited:
            connection.close()
        nothing = os.open(os.devnull, os.O_RDONLY)
        for target, source in ((0, nothing), (1, log), (2, log)):
            os.dup2(source, target)
        compute(line, job)
        code = 0
    finally:
        os._exit(code)  # without the server's clean-up


def _fresh(line: Connection) -> None:
    """In a fresh process: compute the cell that comes in."""
    job, server = line.recv()
    die_with(server)
    adopt_orphans()
    compute(line, job)


def _look(each: _Running) -> Outcome | None:
    """How a cell ended: by its own word where it sent one, else by its budget, signal or exit code."""
    ended, code, usage = os.wait4(each.pid, os.WNOHANG)
    message: dict[str, Any] = {}
    over = bool(ended)
    try:
        while not message and each.line.poll():
            message = json.loads(each.line.recv_bytes())
            if "began" in message:  # the imports of a fresh process do not count
                each.began, each.ahead, message = message["began"], 0.0, {}
    except (EOFError, OSError):
        over = True
    each.peak_mb = max(each.peak_mb, memory_mb(each.pid))
    seconds, budget = time.monotonic() - each.began, each.job.budget
    status, reason = message.get("status", ""), message.get("reason", "")
    if not message and seconds > budget.seconds + each.ahead:
        status, reason = "timeout", f"ran longer than its budget of {budget.seconds:g} s"
    elif not message and each.peak_mb > budget.memory_gb * 1024:
        held = f"held {each.peak_mb / 1024:.1f} GB of memory"
        status, reason = "memory", f"{held}, more than its budget of {budget.memory_gb:g} GB"
    elif not message and (Path(each.job.folder) / LOG).stat().st_size > MOST_PRINTED:
        status, reason = "crashed", f"it printed more than {MOST_PRINTED / 1e6:g} MB"
    if not (over or status):
        return None
    with contextlib.suppress(OSError):  # it has made no group of its own yet, or none is left
        os.killpg(each.pid, signal.SIGKILL)
    if not ended:
        os.kill(each.pid, signal.SIGKILL)
        _, code, usage = os.wait4(each.pid, 0)
    if each.process is not None:
        each.process.returncode = os.waitstatus_to_exitcode(code)
    each.line.close()
    if not status:
        log = Path(each.job.folder) / LOG
        last = [line.strip()[:300] for line in end_of(log).split("\n") if line.strip()][-1:]
        status, reason = "crashed", "; ".join([_ending(os.waitstatus_to_exitcode(code)), *last])
    peak = max(each.peak_mb, usage.ru_maxrss / _MAXRSS)
    return Outcome(status, reason, message, seconds, usage.ru_utime + usage.ru_stime, peak)


def _ending(code: int) -> str:
    """An exit code in words.

    Example:
        >>> _ending(-9), _ending(3)
        ('ended by SIGKILL, which the system sends where memory runs out', 'its process ended with exit code 3')
    """
    if code >= 0:
        return f"its process ended with exit code {code}"
    name = signal.Signals(-code).name
    return f"ended by {name}" + ", which the system sends where memory runs out" * (name == "SIGKILL")
