"""Apply a function to items in other processes, a few items ahead of the caller."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from queue import SimpleQueue
from typing import TypeVar

from molgraph.base.errors import MolgraphError
from molgraph.base.worker import POSSIBLE, Worker, start_worker

T = TypeVar("T")
R = TypeVar("R")


def map_ahead(function: Callable[[T], R], items: Iterable[T], workers: int) -> Generator[R]:
    """``function`` of each item, in order; at most ``workers + 1`` items are under way at any moment.

    The processes are fresh interpreters (``molgraph.base.worker``), so nothing is forked beside torch's threads.

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
    if workers < 1 or not POSSIBLE:
        yield from map(function, items)
        return
    idle: SimpleQueue[Worker] = SimpleQueue()
    started = []
    waiting: deque[Future[R]] = deque()
    pool = ThreadPoolExecutor(workers, thread_name_prefix="molgraph-ahead")

    def ask(item: T) -> R:
        worker = idle.get()
        try:
            worker.send(function, item)
            return worker.receive()
        except (EOFError, OSError):
            raise MolgraphError(
                "a process that works ahead has died",
                hint="killed, or out of memory? --threads 1 needs no such process",
            ) from None
        finally:
            idle.put(worker)

    try:
        for _ in range(workers):
            started.append(start_worker())
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
