"""Run cells in processes on this machine, ended where they exceed their budget."""

from __future__ import annotations

import json
import logging
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from molgraph.evaluate.benchmark.job import Job, Outcome
from molgraph.evaluate.benchmark.process_memory import memory_mb
from molgraph.evaluate.benchmark.server import kill_group
from molgraph.evaluate.benchmark.worker import BEGUN, DISK_FULL, FOUND, LOG

TICK = 0.05  # seconds between two looks at what runs
IMPORT_SECONDS = 300.0  # that a process of its own may take before its cell begins
RESTARTS = 2  # of a cell whose server died under it
FORKS = hasattr(os, "fork") and sys.platform != "darwin"  # there the system's own libraries start threads
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
# pyarrow's allocator would start one
ONE_THREAD |= {"MOLGRAPH_QUIET": "1", "JE_ARROW_MALLOC_CONF": "background_thread:false"}
logger = logging.getLogger("molgraph")


@dataclass
class _Running:
    """A cell's process."""

    job: Job
    started: float
    pid: int | None = None
    process: subprocess.Popen | None = None  # of its own; else the server forked it
    peak_mb: float = 0.0
    begun: bool = False
    ended_by: tuple[str, str] | None = None  # status and reason, where its budget ended it
    lost: int = 0


@dataclass
class LocalEngine:
    """Runs cells on this machine: forked from a server that has done the imports, or spawned for other devices.

    Args:
        imports: modules that the server imports ahead.
        slots: cells at once.
    """

    imports: Sequence[str]
    slots: int = 1
    running: dict[int, _Running] = field(default_factory=dict)
    _server: subprocess.Popen | None = None
    _forks: bool | None = None if FORKS else False
    _said: bytes = b""

    def __post_init__(self) -> None:
        if FORKS:
            self._open_server()  # its imports take seconds, in which the runner reads data

    @property
    def free(self) -> int:
        """How many more cells may start."""
        return self.slots - len(self.running)

    def start(self, number: int, job: Job) -> None:
        """Start a cell's process."""
        (Path(job.folder) / "job.json").write_text(job.to_json(), encoding="utf-8")
        self.running[number] = _Running(job, time.monotonic())
        self._launch(number)

    def wait(self, seconds: float = TICK) -> list[tuple[int, Outcome]]:
        """Outcomes of the cells that ended; waits that long for one at most."""
        ended = [(n, self._of_spawned(n, r)) for n, r in self.running.items() if _over(r)]
        ended += self._listen(0.0 if ended else seconds)
        for number, _ in ended:
            del self.running[number]
        for number, running in self.running.items():
            self._watch(number, running)
        return ended

    def close(self) -> None:
        """End every process."""
        for running in self.running.values():
            if running.process is not None:
                kill_group(running.process.pid)
                running.process.wait()
        self._close_server()
        self.running.clear()

    def _launch(self, number: int) -> None:
        running = self.running[number]
        path = str(Path(running.job.folder) / "job.json")
        if running.job.on_cpu and self._can_fork():
            self._tell(start=number, job=path)
            return
        command = [sys.executable, "-P", "-m", "molgraph.evaluate.benchmark.worker", path, str(os.getpid())]
        threads = {k: str(running.job.threads) for k in ONE_THREAD if k.endswith("_NUM_THREADS")}
        with (Path(running.job.folder) / LOG).open("ab") as log:
            running.process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env=_environment() | threads,
                start_new_session=True,
            )  # fmt: skip
        running.pid = running.process.pid

    def _watch(self, number: int, running: _Running) -> None:
        """Measure what a cell holds; end it where it goes beyond its budget."""
        if running.ended_by is not None or running.pid is None:
            return
        running.peak_mb = max(running.peak_mb, memory_mb(running.pid))
        if not running.begun and (Path(running.job.folder) / BEGUN).exists():
            running.begun, running.started = True, time.monotonic()  # a fresh process's imports do not count
        job, spent = running.job, time.monotonic() - running.started
        if spent > job.seconds + (0.0 if running.begun else IMPORT_SECONDS):
            running.ended_by = "timeout", f"ran longer than its budget of {job.seconds:g} s"
        elif running.peak_mb > job.memory_gb * 1024:
            held = f"held {running.peak_mb / 1024:.1f} GB of memory"
            running.ended_by = "memory", f"{held}, more than its budget of {job.memory_gb:g} GB"
        if running.ended_by is not None:
            if running.process is not None:
                kill_group(running.pid)
            else:
                self._tell(kill=number)

    def _of_spawned(self, number: int, running: _Running) -> Outcome:
        assert running.process is not None
        kill_group(running.process.pid, ended=True)
        return _outcome(running, running.process.returncode, None, 0.0)

    def _listen(self, seconds: float) -> list[tuple[int, Outcome]]:
        """What the server says within that time."""
        if self._server is None or self._forks is not True:
            time.sleep(seconds)
            return []
        assert self._server.stdout is not None
        ready, _, _ = select.select([self._server.stdout], [], [], seconds)
        if not ready:
            return []
        got = os.read(self._server.stdout.fileno(), 65536)
        if not got:
            return self._server_died()
        *lines, self._said = (self._said + got).split(b"\n")
        ended = []
        for words in map(json.loads, lines):
            if "started" in words:
                running = self.running[words["started"]]
                running.pid, running.started = words["pid"], time.monotonic()  # waiting for the server does not count
                running.begun = True
            elif "ended" in words:
                running = self.running[words["ended"]]
                ended.append((words["ended"], _outcome(running, words["code"], words["cpu"], words["peak_mb"])))
        return ended

    def _can_fork(self) -> bool:
        """Whether there is a server that started no thread; waits for its imports the first time."""
        if self._forks is None:
            if self._server is None:
                self._open_server()
            assert self._server is not None and self._server.stdout is not None
            line = self._server.stdout.readline()
            threads = json.loads(line)["ready"] if line else 0
            self._forks = threads == 1
            if not self._forks:
                why = f"its imports started {threads - 1} threads" if threads else "it did not start"
                logger.warning("cells start slowly: there is no fork server, %s", why)
                self._close_server()
        return self._forks

    def _open_server(self) -> None:
        command = [sys.executable, "-P", "-m", "molgraph.evaluate.benchmark.server", str(os.getpid()), *self.imports]
        self._said = b""
        self._server = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, env=_environment() | ONE_THREAD,
            start_new_session=True,
        )  # fmt: skip

    def _close_server(self) -> None:
        if self._server is not None:
            assert self._server.stdin is not None and self._server.stdout is not None
            self._server.stdin.close()  # which ends it, and everything that it started
            if self._forks is None:  # it is still busy with its imports, and has started nothing
                self._server.kill()
            try:
                self._server.wait(5)
            except subprocess.TimeoutExpired:
                self._server.kill()
                self._server.wait()
            self._server.stdout.close()
            self._server = None

    def _server_died(self) -> list[tuple[int, Outcome]]:
        """Begin again, with a new server, the cells that died with the old one; twice, then they have crashed."""
        self._close_server()
        self._forks = None
        ended = []
        for number, running in self.running.items():
            if running.process is not None:
                continue
            running.lost, running.started, running.pid = running.lost + 1, time.monotonic(), None
            running.begun = False
            if running.lost > RESTARTS:
                ended.append((number, Outcome("crashed", "its fork server died with it", {}, 0.0, None, None)))
            else:
                (Path(running.job.folder) / FOUND).unlink(missing_ok=True)
                self._launch(number)
        return ended

    def _tell(self, **words: Any) -> None:
        assert self._server is not None and self._server.stdin is not None
        try:
            self._server.stdin.write((json.dumps(words) + "\n").encode())
        except BrokenPipeError:
            logger.debug("the fork server is gone; the next look at its answers begins another")


def _over(running: _Running) -> bool:
    return running.process is not None and running.process.poll() is not None


def _environment() -> dict[str, str]:
    """This process's own, where it finds modules, and the encoding that logs are read in."""
    own = {"PYTHONPATH": os.pathsep.join(p for p in sys.path if p), "PYTHONIOENCODING": "utf-8:backslashreplace"}
    return dict(os.environ) | own


def _outcome(running: _Running, code: int, cpu: float | None, peak_mb: float) -> Outcome:
    """How a process ended: by its own word where it left one, else by its budget, signal or exit code.

    ``disk``, where there was no room for that word, is no cell's status: the run stops there.
    """
    seconds, folder = time.monotonic() - running.started, Path(running.job.folder)
    found: Mapping[str, Any] = {}
    if (folder / FOUND).is_file():
        found = json.loads((folder / FOUND).read_text(encoding="utf-8"))
        status, reason = found["status"], found["reason"]
    elif running.ended_by is not None:
        status, reason = running.ended_by
    elif code == DISK_FULL:
        status, reason = "disk", _last_line(folder / LOG) or "no space left on device"
    else:
        status = "crashed"
        reason = "; ".join(filter(None, (_ending(code), _last_line(folder / LOG))))
    peak = max(running.peak_mb, peak_mb, found.get("peak_mb", 0.0)) or None
    return Outcome(status, reason, found, seconds, found.get("cpu_seconds") if cpu is None else cpu, peak)


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


def _last_line(log: Path) -> str:
    """The last line that a process printed."""
    text = log.read_text(encoding="utf-8", errors="replace") if log.is_file() else ""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1][:300] if lines else ""
