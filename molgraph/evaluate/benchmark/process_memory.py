"""Measure the memory of a process and its children."""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

_PAGE = os.sysconf("SC_PAGE_SIZE") if hasattr(os, "sysconf") else 4096


def tree(pid: int) -> list[int]:
    """The process and everything that it started, as far as the system tells (Linux, or with psutil)."""
    if sys.platform == "linux":
        found, todo = [], [pid]
        while todo:
            one = todo.pop()
            found.append(one)
            with contextlib.suppress(OSError):
                for task in Path(f"/proc/{one}/task").iterdir():
                    with contextlib.suppress(OSError):
                        todo.extend(int(child) for child in (task / "children").read_text().split())
        return found
    process = _process(pid)
    return [pid] if process is None else [pid, *(child.pid for child in process.children(recursive=True))]


def memory_mb(pid: int) -> float:
    """Resident memory of the process and everything that it started, in megabytes; pages that they share count twice.

    Example:
        >>> memory_mb(os.getpid()) > 1
        True
    """
    return sum(_resident(each) for each in tree(pid)) / 2**20


def _resident(pid: int) -> int:
    if sys.platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE
        except (OSError, IndexError):
            return 0
    process = _process(pid)
    return 0 if process is None else int(process.memory_info().rss)


def _process(pid: int) -> Any:
    try:
        import psutil
    except ImportError:
        return None
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None
