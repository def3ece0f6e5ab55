"""Fork a process for each job, from a server without threads.

The server imports everything once and starts no thread, so that a fork is whole; it says how many threads it has, and
the runner forks from it only where that is one. A line is a JSON object: ``{"start": number, "job": path}`` and
``{"kill": number}`` come in; ``{"ready": threads}``, ``{"started": number, "pid": pid}`` and ``{"ended": number,
"code": code, "cpu": seconds, "peak_mb": megabytes}`` go out. When standard input ends, everything ends.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import sys
from importlib import import_module
from pathlib import Path
from typing import Any, NoReturn

from molgraph.base.process import die_with
from molgraph.evaluate.benchmark.environment import machine, versions
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.benchmark.worker import DISK_FULL, LOG, carry_out, disk_full


def n_threads() -> int:
    """Threads of this process; 1 where the system does not say."""
    folder = Path("/proc/self/task")
    return len(list(folder.iterdir())) if folder.is_dir() else 1


class Server:
    """The fork server's loop.

    Args:
        replies: file descriptor of the answers.
    """

    def __init__(self, replies: int) -> None:
        self.replies = replies
        self.numbers: dict[int, int] = {}  # process -> the runner's number
        self.wake_read, self.wake_write = os.pipe()
        os.set_blocking(self.wake_write, False)
        signal.set_wakeup_fd(self.wake_write, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def say(self, **words: Any) -> None:
        """Answer with one line."""
        os.write(self.replies, (json.dumps(words) + "\n").encode())

    def loop(self) -> None:
        """Serve until standard input ends, then end every process that is left."""
        waiting = b""
        while True:
            ready, _, _ = select.select([0, self.wake_read], [], [])
            if self.wake_read in ready:
                os.read(self.wake_read, 4096)
            self.reap()
            if 0 in ready:
                got = os.read(0, 65536)
                if not got:
                    break
                *lines, waiting = (waiting + got).split(b"\n")
                for line in lines:
                    self.obey(json.loads(line))
        for pid in self.numbers:
            kill_group(pid)

    def obey(self, order: dict[str, Any]) -> None:
        """Start or kill what the runner names."""
        if "kill" in order:
            for pid in [pid for pid, number in self.numbers.items() if number == order["kill"]]:
                kill_group(pid)
            return
        server = os.getpid()
        pid = os.fork()
        if pid == 0:
            self.become(order["job"], server)
        self.numbers[pid] = order["start"]
        self.say(started=order["start"], pid=pid)

    def become(self, path: str, server: int) -> NoReturn:
        """In the forked process: leave the server's pipes and signals, do the job, end."""
        code = 70
        try:
            signal.set_wakeup_fd(-1)
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            die_with(server)
            os.setsid()
            for descriptor in (self.wake_read, self.wake_write, self.replies):
                os.close(descriptor)
            job = Job.from_json(Path(path).read_text(encoding="utf-8"))
            log = os.open(Path(job.folder) / LOG, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            nothing = os.open(os.devnull, os.O_RDONLY)
            for target, source in ((0, nothing), (1, log), (2, log)):
                os.dup2(source, target)
            code = carry_out(job)
        except OSError as error:
            code = DISK_FULL if disk_full(error) else code
        finally:
            with contextlib.suppress(Exception):
                sys.stdout.flush()
                sys.stderr.flush()
            os._exit(code)  # without the server's clean-up

    def reap(self) -> None:
        """Tell of every process that has ended; what it left behind in its group ends too."""
        while self.numbers:
            pid, status, usage = os.wait4(-1, os.WNOHANG)
            if pid == 0:
                return
            number = self.numbers.pop(pid, None)
            kill_group(pid, ended=True)
            if number is not None:
                cpu, peak = usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024
                self.say(ended=number, code=os.waitstatus_to_exitcode(status), cpu=cpu, peak_mb=peak)


def kill_group(pid: int, *, ended: bool = False) -> None:
    """End a process and its whole group; of one that has ended, what is left of its group."""
    try:
        os.killpg(pid, signal.SIGKILL)
    except OSError:  # it has made no group of its own yet, or none is left
        if not ended:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Import the modules that the arguments name, say how many threads that started, serve."""
    parent, *modules = sys.argv[1:]
    die_with(int(parent))
    replies = os.dup(1)
    os.set_inheritable(replies, False)
    os.dup2(2, 1)  # what a library prints is no answer
    missing = []
    for module in modules:
        try:
            import_module(module)
        except ImportError as error:  # an extra that is not installed, or a module that a cell will name in its turn
            missing.append(f"{module}: {error}")
    versions(), machine()  # looked up once; the children have them
    gc.collect()
    gc.freeze()  # so that no collection in a child touches, and copies, what they share
    server = Server(replies)
    server.say(ready=n_threads(), missing=missing)
    server.loop()


if __name__ == "__main__":
    main()
