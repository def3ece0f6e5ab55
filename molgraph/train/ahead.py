"""Work done ahead in other processes: items in, what a function makes of each out, in order, few at a time."""

from __future__ import annotations

import subprocess
import sys
import traceback
from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from multiprocessing import Pipe
from multiprocessing.connection import Connection
from queue import SimpleQueue
from typing import Any, NamedTuple, TypeVar

from molgraph.base.errors import MolgraphError

T = TypeVar("T")
R = TypeVar("R")
#: finds this package where the parent does, wherever that is
_BOOT = """
import sys
from multiprocessing.connection import Connection
line = Connection(int(sys.argv[1]))
sys.path[:] = line.recv()
from molgraph.train.ahead import serve
serve(line)
"""


class Worker(NamedTuple):
    """A process and the line to it."""

    process: subprocess.Popen[bytes]
    line: Connection


def map_ahead(function: Callable[[T], R], items: Iterable[T], workers: int) -> Generator[R]:
    """``function`` of each item, in order; at most ``workers + 1`` items are under way at any moment.

    The processes are fresh interpreters that are told what to do through a pipe. So nothing is forked beside torch's
    threads, a caller's script needs no ``__main__`` guard, and a process whose parent is gone, however it died,
    finds the pipe closed and ends.

    Args:
        function: at module level, or a ``partial`` of such a one.
        items: taken one at a time, in the caller's thread.
        workers: processes; 0 does all in this one (on Windows always).

    Raises:
        MolgraphError: what the function raised for an item, when that item's turn comes; a process was killed.
        RuntimeError: any other failure of the function, with its traceback.

    Example:
        >>> list(map_ahead(len, ["a", "bb"], workers=1))
        [1, 2]
    """
    if workers < 1 or sys.platform == "win32":
        yield from map(function, items)
        return
    idle: SimpleQueue[Worker] = SimpleQueue()
    started = []
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="molgraph-ahead")

    def ask(item: T) -> R:
        worker = idle.get()
        try:
            return _ask(worker.line, function, item)
        finally:
            idle.put(worker)

    try:
        for _ in range(workers):
            started.append(_start())
            idle.put(started[-1])
        for item in items:
            waiting.append(pool.submit(ask, item))
            if len(waiting) > workers:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for worker in started:
            worker.process.kill()  # a thread that still waits for an answer meets the end of the line
        pool.shutdown(cancel_futures=True)
        for worker in started:
            worker.line.close()
            worker.process.wait()


def _start() -> Worker:
    ours, theirs = Pipe()
    with theirs:
        # in a session of its own, so that Ctrl-C reaches the parent alone, which ends the others
        command = [sys.executable, "-c", _BOOT, str(theirs.fileno())]
        process = subprocess.Popen(
            command, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL, start_new_session=True
        )
    ours.send(sys.path)
    return Worker(process, ours)


def _ask(line: Connection, function: Callable[[Any], Any], item: Any) -> Any:
    try:
        line.send((function, item))
        done, answer = line.recv()
    except (EOFError, OSError):
        raise MolgraphError(
            "a process that works ahead has died", hint="killed, or out of memory? --threads 1 needs no such process"
        ) from None
    if not done:
        raise answer
    return answer


def serve(line: Connection) -> None:
    """What a process does: answer what it is asked, until nobody asks any more."""
    try:
        while True:
            function, item = line.recv()
            try:
                answer = True, function(item)
            except MolgraphError as error:
                answer = False, error
            except Exception:
                answer = False, RuntimeError(traceback.format_exc())  # its own class might not survive the way
            line.send(answer)
    except (EOFError, OSError):
        return
