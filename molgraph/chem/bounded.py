"""Call functions of unusual molecules in a process of their own, which ends when one takes too long."""

from __future__ import annotations

import atexit
import os
import re
import signal
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from molgraph.base.worker import POSSIBLE, Worker, start_worker

R = TypeVar("R")
SECONDS = 0.5  # of CPU time a call: a row that goes through several calls stays under two seconds
ALONE = 0.8  # the same where the other calls for a row are quick
PATIENCE = 30.0  # seconds by the clock, on a machine so busy that the CPU time does not pass
MEMORY = 4 << 30  # bytes of address space
#: characters up to which a text is no unusual one, from which it is; and ring closures that make it one between them
SHORT, LONG, RINGS = 100, 400, 12
_CLOSURE = re.compile(r"%\(\d+\)|%\d\d|\d")
_BRACKET = re.compile(r"\[[^\]]*\]")

_lock = threading.Lock()
_worker: Worker | None = None
_is_new = False  # the worker has not yet answered that it is ready
_inherited: list[Worker] = []  # a forked process neither asks its parent's worker nor ends it
_inside = False  # whether this process is such a worker


class TooHardError(Exception):
    """A call took too long or ended its process; the text says which."""


def is_hard(text: str) -> bool:
    """Whether a text is long or has so many rings that a function of its molecule may take seconds or years.

    Example:
        >>> is_hard("CC(=O)Oc1ccccc1C(=O)O"), is_hard("C" * 1_000)
        (False, True)
    """
    if len(text) <= SHORT or _inside:
        return False
    if len(text) > LONG:
        return True
    return len(_CLOSURE.findall(_BRACKET.sub("", text))) > 2 * RINGS


def bounded(function: Callable[[Any], R], item: Any, *, seconds: float | None = None) -> R:
    """``function(item)`` in another process, ended after ``SECONDS`` of CPU time.

    The limit is CPU time, so that a busy machine comes to the same answer as an idle one, as far as it computes as
    fast. On Windows everything is computed in this process, without a limit.

    Raises:
        TooHardError: it took longer, or ended its process.
        RuntimeError: the function failed.
    """
    if _inside or not POSSIBLE:
        return function(item)
    seconds = SECONDS if seconds is None else seconds
    with _lock:
        for last in (False, True):
            worker = _ready()
            try:
                worker.send(_timed, (function, item, seconds))
            except OSError as error:  # the process was ended from outside since the last call
                _end()
                if last:
                    raise TooHardError(f"its process ended: {error}") from None
                continue
            break
        try:
            if worker.line.poll(PATIENCE):
                return worker.receive()
            reason = f"takes longer than {PATIENCE:g} s by the clock"
        except (EOFError, OSError):
            code = worker.process.wait()
            reason = f"takes longer than {seconds:g} s" if code == -signal.SIGPROF else f"RDKit crashes on it ({code})"
        except BaseException:  # Ctrl-C: the answer must not be taken for that of the next call
            _end()
            raise
        _end()
        _start()  # gets ready while this process goes on
        raise TooHardError(reason)


def _ready() -> Worker:
    global _is_new
    worker = _start()
    if _is_new:
        try:
            if not worker.line.poll(2 * PATIENCE):
                raise EOFError
            worker.receive()
        except BaseException as error:
            _end()
            if isinstance(error, (EOFError, OSError)):
                raise TooHardError("needs a process of its own, and that did not start") from None
            raise
        _is_new = False
    return worker


def _start() -> Worker:
    global _worker, _is_new
    if _worker is None:
        try:
            _worker = start_worker()
        except OSError as error:
            raise TooHardError(f"needs a process of its own, and none can be started: {error}") from None
        _is_new = True
        with suppress(OSError):
            _worker.send(_prepare, None)
    return _worker


def _end() -> None:
    global _worker
    if _worker is not None:
        _worker.stop()
        _worker = None


def _prepare(_: None) -> None:
    """Import what the functions need, and set the limits of a worker."""
    global _inside
    import resource

    from rdkit import rdBase
    from rdkit.Chem import Descriptors  # noqa: F401 - with nearly all of rdkit, which takes half a second
    from scipy.sparse import csgraph  # noqa: F401 - of the states of large molecules

    _inside = True
    rdBase.DisableLog("rdApp.*")
    signal.signal(signal.SIGPROF, signal.SIG_DFL)
    if sys.platform == "linux":
        with suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.getrlimit(resource.RLIMIT_AS)[1]))


def _timed(call: tuple[Callable[[Any], Any], Any, float]) -> Any:
    function, item, seconds = call
    signal.setitimer(signal.ITIMER_PROF, seconds)  # its signal ends the process
    try:
        return function(item)
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)


def _after_fork() -> None:
    global _worker, _lock
    _lock = threading.Lock()
    if _worker is not None:
        _inherited.append(_worker)
        _worker = None


atexit.register(_end)
if POSSIBLE:
    os.register_at_fork(after_in_child=_after_fork)
