"""Threads as somebody asked for them in; how many cores to use out."""

from __future__ import annotations

import os
from numbers import Integral

from molgraph.base.errors import UsageError


def cores(threads: int | None = None) -> int:
    """The cores to use: those asked for, else all that this process may use.

    Raises:
        UsageError: not a whole number from 1.

    Example:
        >>> cores(3), cores() >= 1
        (3, True)
    """
    if threads is None:
        return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise UsageError(f"threads is {threads!r}, expected a whole number from 1, or None for all")
    return int(threads)
