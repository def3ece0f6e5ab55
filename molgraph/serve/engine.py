"""Batch the requests that wait, and have processes of their own answer them; a process that dies is started again."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from typing import Any

from molgraph.base.errors import MolgraphError
from molgraph.base.worker import Worker, start_worker
from molgraph.serve.calls import Call, Reply
from molgraph.serve.launch import answer, prepare
from molgraph.serve.limits import Limits
from molgraph.serve.refusal import RefusedError, overloaded

PIECE = 256  # rows that are predicted in one go, at most
START_SECONDS = 300.0  # that a process may take to load the models
PAUSE_SECONDS = 5  # after a process that could not be started


class _Asked:
    """A call that waits, the future of its reply, and how often a process has ended on it."""

    def __init__(self, call: Call) -> None:
        self.call, self.future, self.lost = call, Future[Reply](), 0


class Engine:
    """Processes that hold the models, a thread each, and the queue that they share.

    Whatever waits when a process is free is answered in one batch of up to 256 rows, so that many small requests cost
    little more than one (and a lone one never waits for others). Long calls, an explanation or a piece of a large
    request, have a queue of their own, which the first process leaves to the others, so that small ones never wait for
    them. A batch whose process ends, or takes longer than ``limits.seconds``, is tried again, each call alone: a call
    fails only where it alone ends the process twice, or takes too long.

    Args:
        given: what ``molgraph.serve.answers.prepare`` takes: ``models``, ``running``, ``measured``, ``explain``.
        limits: sizes and times.
        workers: processes; each holds all models.
    """

    def __init__(self, given: dict[str, Any], limits: Limits, workers: int = 2) -> None:
        self.given, self.limits = given, limits
        self.models: list[dict[str, Any]] = []
        self.ready = 0
        self._workers: list[Worker | None] = [None] * workers
        self._threads: list[threading.Thread] = []
        self._quick: deque[_Asked] = deque()
        self._slow: deque[_Asked] = deque()
        self._change = threading.Condition()
        self._waiting, self._closed, self._rate, self._turn = 0, False, 100.0, False

    def start(self) -> Engine:
        """Start the processes; the descriptions of the models are ``models`` from then on.

        Raises:
            MolgraphError: a model or table that cannot be read.
        """
        started = [start_worker() for _ in self._workers]
        self._workers = [*started]
        try:
            for worker in started:
                worker.send(prepare, self.given)
            for worker in started:
                self.models = self._loaded(worker)
        except BaseException:
            self.close()
            raise
        self.ready = len(started)
        self._threads = [threading.Thread(target=self._run, args=(i,), daemon=True) for i in range(len(started))]
        for thread in self._threads:
            thread.start()
        return self

    def close(self) -> None:
        """End the processes; what still waits is refused."""
        with self._change:
            self._closed = True
            left = [*self._quick, *self._slow]
            self._change.notify_all()
        for worker in self._workers:
            if worker is not None:
                worker.process.kill()  # which its thread sees
        for asked in left:
            _fail(asked, overloaded("the server is stopping", PAUSE_SECONDS))
        for thread in self._threads:
            thread.join(timeout=5)
        for number in range(len(self._workers)):
            self._drop(number)

    @property
    def waiting(self) -> int:
        """Rows that wait or are being worked on."""
        return self._waiting

    @property
    def processes(self) -> list[int]:
        """Process numbers of the processes that run."""
        return [worker.process.pid for worker in self._workers if worker is not None]

    def submit(self, call: Call) -> Future[Reply]:
        """Put a call into the queue.

        Raises:
            RefusedError: ``limits.waiting`` rows wait already (503), or the server stops.
        """
        asked, slow = _Asked(call), call.kind == "explain" or call.given.get("large", False)
        with self._change:
            if self._closed or self._waiting + call.rows > max(self.limits.waiting, call.rows):
                seconds = math.ceil(min(self._waiting / max(self._rate, 1.0), 60.0))
                raise overloaded(f"{self._waiting:,} rows wait already", max(seconds, 1))
            self._waiting += call.rows
            (self._slow if slow else self._quick).append(asked)
            self._change.notify()
        asked.future.add_done_callback(lambda _: self._left(call.rows))
        return asked.future

    def _left(self, rows: int) -> None:
        with self._change:
            self._waiting -= rows

    def _run(self, number: int) -> None:
        while batch := self._take(number):
            started = time.perf_counter()
            self._work(number, batch)
            seconds, rows = time.perf_counter() - started, sum(asked.call.rows for asked in batch)
            self._rate = 0.8 * self._rate + 0.2 * rows / max(seconds, 1e-6)

    def _take(self, number: int) -> list[_Asked]:
        """The next batch for a process; empty where the engine is closed."""
        alone = len(self._workers) == 1
        with self._change:
            while not self._closed:
                self._turn = not self._turn
                first = self._turn if alone else number == 0
                for queue in (self._quick, self._slow) if first else (self._slow, self._quick):
                    if batch := self._gathered(queue, spare=number == 0 and not alone):
                        return batch
                self._change.wait(1.0)
            return []

    def _gathered(self, queue: deque[_Asked], spare: bool) -> list[_Asked]:
        """Calls from the front of a queue, up to 256 rows; of long ones a single one."""
        if queue is self._slow and spare:
            return []
        batch: list[_Asked] = []
        rows = 0
        while queue and (not batch or rows + queue[0].call.rows <= PIECE):
            asked = queue.popleft()
            if not asked.future.set_running_or_notify_cancel():  # nobody waits for it any more
                continue
            batch.append(asked)
            rows += asked.call.rows
            if queue is self._slow:
                break
        return batch

    def _work(self, number: int, batch: Sequence[_Asked]) -> None:
        try:
            worker = self._worker(number)
        except MolgraphError as error:
            for asked in batch:
                _fail(asked, overloaded(f"the models cannot be loaded: {error.message}", PAUSE_SECONDS))
            time.sleep(1.0)
            return
        try:
            worker.send(answer, [asked.call for asked in batch])
            slow = not worker.line.poll(self.limits.seconds)
            replies = None if slow else worker.receive()
        except (EOFError, OSError):
            slow, replies = False, None
        except Exception as error:  # the answer itself failed, which no call should be able to do
            print(f"molgraph serve: {error}", file=sys.stderr)
            slow, replies = False, None
        if replies is not None:
            for asked, reply in zip(batch, replies, strict=True):
                asked.future.set_result(reply)
            return
        self._drop(number)
        if self._closed:
            for asked in batch:
                _fail(asked, overloaded("the server is stopping", PAUSE_SECONDS))
        elif len(batch) > 1:
            for asked in batch:
                self._work(number, [asked])
        elif slow:
            _fail(batch[0], too_slow(self.limits.seconds))
        else:
            batch[0].lost += 1
            if batch[0].lost < 2:
                self._work(number, batch)
            else:
                hint = "try its molecules one by one, or start the server with fewer models"
                words = "the process that computes ended twice on this request"
                _fail(batch[0], RefusedError(500, "worker-ended", words, hint=hint))

    def _worker(self, number: int) -> Worker:
        """The process of a thread, started again where it has ended."""
        worker = self._workers[number]
        if worker is None:
            worker = self._workers[number] = start_worker()
            try:
                worker.send(prepare, self.given)
                self._loaded(worker)
            except BaseException:
                self._drop(number)
                raise
            self.ready += 1
        return worker

    def _loaded(self, worker: Worker) -> list[dict[str, Any]]:
        try:
            if not worker.line.poll(START_SECONDS):
                raise EOFError
            models: list[dict[str, Any]] = worker.receive()
        except (EOFError, OSError):
            hint = "is there enough memory for all models? --workers 1 needs half"
            raise MolgraphError("the process that holds the models ended while it loaded them", hint=hint) from None
        return models

    def _drop(self, number: int) -> None:
        worker, self._workers[number] = self._workers[number], None
        if worker is not None:
            self.ready = max(self.ready - 1, 0)
            with suppress(OSError):
                worker.stop()


def too_slow(seconds: float) -> RefusedError:
    """The answer to who waited too long."""
    words = f"no answer within {seconds:g} s"
    return RefusedError(504, "too-slow", words, hint="ask for fewer molecules at once, or upload a file", retry=5)


def _fail(asked: _Asked, error: RefusedError) -> None:
    with suppress(Exception):  # it was cancelled, or has its answer
        asked.future.set_exception(error)
