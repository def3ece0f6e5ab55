"""Measure the memory of a process and its child processes, and kill child processes whose parent has ended."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from pathlib import Path

import psutil

MOST_GENERATIONS = 100  # of orphans that are looked for
_PAGE = os.sysconf("SC_PAGE_SIZE")


def children(pid: int) -> list[int]:
    """The processes that one started or adopted; on Linux alone.

    psutil reads every process of the machine to find the children of one.
    """
    pids: list[int] = []
    for path in Path(f"/proc/{pid}").glob("task/*/children"):
        with contextlib.suppress(OSError):  # it has ended
            pids += map(int, path.read_text().split())
    return pids


def memory_mb(pid: int) -> float:
    """Resident memory of a process and everything that it started, in megabytes; pages that they share count twice."""
    held, todo = 0, [pid]
    if sys.platform != "linux":
        with contextlib.suppress(psutil.Error):
            process = psutil.Process(pid)
            held = sum(member.memory_info().rss for member in (process, *process.children(recursive=True)))
        return held / 2**20
    while todo:
        process_id = todo.pop()
        with contextlib.suppress(OSError, IndexError):  # it has ended
            held += int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * _PAGE
            todo += children(process_id)
    return held / 2**20


def adopt_orphans() -> None:
    """Let the system give this process those that its descendants leave behind (Linux)."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(36, 1)  # PR_SET_CHILD_SUBREAPER


def end_orphans(kept: set[int]) -> None:
    """End the children of this process, but those that are kept, and what they leave in their turn."""
    for _ in range(MOST_GENERATIONS):
        left = {*children(os.getpid())} - kept
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                os.waitpid(pid, 0)
        if not left:
            return
