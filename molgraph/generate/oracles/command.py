"""Score molecules by a program of one's own: SMILES on its standard input, numbers on its standard output."""

from __future__ import annotations

import contextlib
import hashlib
import math
import os
import shlex
import shutil
import signal
import subprocess
import tempfile
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import numpy as np

from molgraph.base.errors import BadValueError, MissingFileError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.chem.smiles import why_unreadable
from molgraph.generate.oracles.oracle import Oracle, Scores

LONGEST = 1 << 20  # characters that a program may write
TAIL = 200  # characters of its last message that a reason has


class Answer(NamedTuple):
    """What a program wrote: its lines, and why it failed; empty where it ended as it should."""

    lines: list[str]
    failure: str


@register("oracle", "command", summary="numbers of a program that reads SMILES: command('./dock.sh', seconds=60)")
class Command(Oracle):
    """The number that a program writes for each SMILES that it reads, a line each, in the same order.

    A program is started for each molecule, ``jobs`` of them at a time, and ended after ``seconds``, with the programs
    that it started. One that crashes, hangs, or writes anything but one number costs that molecule its score and
    nothing else. ``nan`` stands for a molecule that the program has no score for. With ``at_once`` above 1 a program
    reads several molecules, for programs that are slow to start; where it fails, or writes anything but a
    number for each, nobody can tell which molecule it was, and each of them is asked again alone.

    Args:
        program: the command, with its options; no shell reads it.
        seconds: how long a program may take for each molecule.
        jobs: programs that run at the same time.
        at_once: molecules that a program reads.
        lower: whether lower numbers are better, as docking energies are.
        scale: a typical difference between the numbers of two molecules, in which distances from bounds are counted.

    Raises:
        BadValueError: the command is empty. MissingFileError: there is no such program.
    """

    name = "command"
    small = MappingProxyType({"program": "awk '{ print length($0) }'", "at_once": 8})

    def __init__(
        self,
        program: str,
        seconds: Annotated[float, Range(0.0, 1e6, above=True)] = 30.0,
        jobs: Annotated[int, Range(1, 1024)] = 1,
        at_once: Annotated[int, Range(1, 100_000)] = 1,
        lower: bool = False,
        scale: Annotated[float, Range(0.0, 1e12, above=True)] = 1.0,
    ) -> None:
        try:
            self.words = shlex.split(program)
        except ValueError as error:
            raise BadValueError(f"the command {program!r} cannot be read: {error}", hint="close its quotes") from None
        if not self.words:
            raise BadValueError("the command is empty", hint="as in command('python dock.py')")
        if shutil.which(self.words[0]) is None:
            raise MissingFileError(f"there is no program {self.words[0]!r}", hint="give its path, and let it be run")
        self.program, self.seconds, self.jobs, self.at_once = program, seconds, jobs, at_once
        self.lower, self.scale, self.better = lower, scale, -1 if lower else 1
        self.time_limit, self.shard = seconds, jobs * at_once
        self._running: set[subprocess.Popen[bytes]] = set()
        self._lock, self._stop = threading.Lock(), threading.Event()

    def __reduce__(self) -> tuple[Any, ...]:
        return Command, (self.program, self.seconds, self.jobs, self.at_once, self.lower, self.scale)

    @property
    def content(self) -> str:
        """The command with hashes of the files that it names, and the direction."""
        files = [Path(word) for word in [shutil.which(self.words[0]) or "", *self.words[1:]]]
        hashes = [_hash(file) for file in files if file.is_file()]
        return f"{self.words} {hashes} {self.better} {self.scale}"

    def score(self, smiles: Sequence[str]) -> Scores:
        """The number of each SMILES."""
        reason = np.array([why_unreadable(text) for text in smiles], dtype=object)
        value, self._stop = np.full(len(smiles), np.nan), threading.Event()
        rows = np.flatnonzero(reason == "")
        chunks = [rows[i : i + self.at_once] for i in range(0, len(rows), self.at_once)]
        stop, pool = self._stop, ThreadPoolExecutor(self.jobs, "molgraph-command")
        try:
            for chunk, numbers in zip(
                chunks, pool.map(lambda c: self._numbers([smiles[i] for i in c], stop), chunks), strict=True
            ):
                for row, (number, error) in zip(chunk, numbers, strict=True):
                    value[row], reason[row] = number, error
        finally:
            pool.shutdown(wait=False, cancel_futures=True)
        return Scores(value, reason)

    def close(self) -> None:
        """End the programs that run."""
        self._stop.set()
        with self._lock:
            running = [*self._running]
        for process in running:
            _kill(process)

    def _numbers(self, smiles: list[str], stop: threading.Event) -> list[tuple[float, str]]:
        """The number of each molecule or the reason why there is none, of one program or of one for each."""
        answer = self._run(smiles, stop)
        whole, numbers = len(answer.lines) == len(smiles), [_number(line) for line in answer.lines]
        if len(smiles) > 1 and (answer.failure or not whole or any("no number" in reason for _, reason in numbers)):
            return [one for text in smiles for one in self._numbers([text], stop)]
        if answer.failure:
            return [(math.nan, answer.failure)]
        if not whole:
            count = f"{len(answer.lines)} lines" if answer.lines else "nothing"
            return [(math.nan, f"the program wrote {count} in place of a number")]
        return numbers

    def _run(self, smiles: list[str], stop: threading.Event) -> Answer:
        """What a program writes for some molecules; it is ended when its time is over or the search is."""
        late, limit = threading.Event(), self.seconds * len(smiles)
        with tempfile.TemporaryFile() as source, tempfile.TemporaryFile() as messages:
            source.write("".join(f"{text}\n" for text in smiles).encode())
            source.seek(0)
            with self._lock:
                if stop.is_set():
                    return Answer([], "the search was stopped")
                try:
                    process = subprocess.Popen(
                        self.words, stdin=source, stdout=subprocess.PIPE, stderr=messages, start_new_session=True
                    )
                except OSError as error:
                    return Answer([], f"the program cannot be started: {error.strerror}")
                self._running.add(process)
            timer = threading.Timer(limit, _end_late, (process, late))
            timer.daemon = True
            timer.start()
            try:
                assert process.stdout is not None
                written = process.stdout.read(LONGEST)
                if len(written) == LONGEST:
                    return Answer([], f"the program wrote more than {LONGEST:,} characters")
                status = process.wait()
            finally:
                timer.cancel()
                _kill(process)
                process.wait()
                process.stdout.close()  # type: ignore[union-attr]
                with self._lock:
                    self._running.discard(process)
            if late.is_set() or stop.is_set():
                return Answer([], "the search was stopped" if stop.is_set() else f"it takes longer than {limit:g} s")
            if status:
                messages.seek(0, os.SEEK_END)
                messages.seek(max(0, messages.tell() - 4096))
                tail = messages.read().decode("utf-8", "replace").strip().rpartition("\n")[2][-TAIL:]
                return Answer([], f"the program ended with status {status}{': ' * bool(tail)}{tail}")
        return Answer([line for line in written.decode("utf-8", "replace").splitlines() if line.strip()], "")


def _number(line: str) -> tuple[float, str]:
    try:
        number = float(line)
    except ValueError:
        return math.nan, f"the program wrote {line.strip()[:80]!r}, which is no number"
    return (number, "") if math.isfinite(number) else (math.nan, f"the score is {number}")


def _hash(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()[:16]


def _end_late(process: subprocess.Popen[bytes], late: threading.Event) -> None:
    late.set()
    _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a program and those that it started."""
    with contextlib.suppress(OSError):
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
