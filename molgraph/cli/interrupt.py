"""Answer Ctrl-C within two seconds, whatever the process is doing.

Python runs a signal's handler between two of its own instructions, so a long call into a library (a Cholesky factor,
a support vector machine) delays it without limit; and rdkit puts a handler of its own in Python's place, which forgets
the signal. So the shell's process blocks SIGINT before any other thread exists, and one thread waits for it: it wakes
the main thread with another signal, whose handler raises ``KeyboardInterrupt`` as Python would, and where the process
has not ended ``GRACE_SECONDS`` later, it ends the process. That is as safe as a kill at any moment, which every verb
survives: files appear whole or not at all, and journals and checkpoints stand on the disk.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import FrameType
from typing import Any

GRACE_SECONDS = 1.5
EXIT_CODE = 130
ENDED = "stopped; files and checkpoints that were already written are kept"
_WAKE = getattr(signal, "SIGURG", None)  # ignored by default and used by nothing here
_at_work = _lost = _pressed = False
_journal: Path | None = None


def answer_ctrl_c() -> None:
    """Install the waiting thread, unless SIGINT is ignored (``nohup``) or cannot be waited for (Windows)."""
    if _WAKE is None or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    signal.signal(_WAKE, _pass_on)
    sys.unraisablehook = _note_loss
    threading.Thread(target=_wait, args=(threading.main_thread().ident,), name="molgraph-ctrl-c", daemon=True).start()


@contextmanager
def at_work() -> Iterator[None]:
    """While a verb runs, Ctrl-C raises ``KeyboardInterrupt``; before and after it, there is nothing to keep."""
    global _at_work
    _at_work = True
    try:
        yield
    finally:
        with suppress(OSError, ValueError):  # nobody reads any more
            sys.stdout.flush()
        _at_work = False


def goes_on_from(journal: Path) -> None:
    """Name the file from which the same command goes on, for a process that is ended before its verb can."""
    global _journal
    _journal = journal


def pressed() -> bool:
    """Whether Ctrl-C was pressed: what fails from then on is its doing, such as a pool whose processes have ended."""
    return _pressed


def _pass_on(number: int, frame: FrameType | None) -> None:
    """In the main thread: do as Python would on SIGINT."""
    handler = signal.getsignal(signal.SIGINT)
    if callable(handler):
        handler(signal.SIGINT, frame)


def _note_loss(lost: Any) -> None:
    """Note a ``KeyboardInterrupt`` that came where Python lets no exception pass (a finalizer, a hook of ``fork``)."""
    global _lost
    if issubclass(lost.exc_type, KeyboardInterrupt):
        _lost = True
    else:
        sys.__unraisablehook__(lost)


def _wait(main: int) -> None:
    global _lost, _pressed
    signal.sigwait({signal.SIGINT})
    _pressed = True
    if not _at_work:
        end_process("stopped")
    signal.pthread_kill(main, _WAKE)  # type: ignore[arg-type]
    deadline = time.monotonic() + GRACE_SECONDS
    while _at_work and time.monotonic() < deadline:
        time.sleep(0.02)
        if _lost:
            _lost = False
            signal.pthread_kill(main, _WAKE)  # type: ignore[arg-type]
    end_process(_ended() if _at_work else "")  # a verb that has come to its end has said so


def _ended() -> str:
    """What a process that does not stop by itself leaves."""
    if _journal is None or not _journal.exists():
        return ENDED
    return (
        f"stopped before the results could be written; what was computed is kept in {_journal}\n"
        "  run the same command again to go on from there"
    )


def end_process(words: str = "") -> None:
    """End this process and those that multiprocessing started for it, as Ctrl-C does."""
    children = getattr(sys.modules.get("multiprocessing.process"), "active_children", None)
    for child in children() if children is not None else ():
        child.kill()
    with suppress(OSError):
        if os.isatty(2):
            os.write(2, b"\x1b[?25h\r\x1b[K")  # a progress bar hides the cursor
        os.write(2, f"{words}\n".encode() if words else b"")
    os._exit(EXIT_CODE)
