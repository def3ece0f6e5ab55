"""Decide how many cores to use."""

from __future__ import annotations

import os
from numbers import Integral

from molgraph.base.errors import BadValueError

MOST = 256  # threads that a machine of fewer cores may still be asked for
_limit: list[int] = []  # of this process


def limit_cores(n: int) -> None:
    """Let this process use no more than ``n`` cores where nobody asks for more: others run beside it.

    Example:
        >>> limit_cores(1)
        >>> cores(), cores(2)
        (1, 2)
        >>> _limit.clear()
    """
    _limit[:] = [n]


def cores(threads: int | None = None) -> int:
    """The cores to use: those asked for, else all that this process may use.

    Raises:
        BadValueError: not a whole number from 1, or more than a machine can start.

    Example:
        >>> cores(3), cores() >= 1
        (3, True)
    """
    here = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    here = min([here, *_limit])
    if threads is None:
        return here
    if not isinstance(threads, Integral) or isinstance(threads, bool) or threads < 1:
        raise BadValueError(f"threads is {threads!r}, expected a whole number from 1, or None for all")
    if threads > max(here, MOST):
        raise BadValueError(
            f"threads is {threads}, at most {max(here, MOST)} make sense here", hint="leave it out for all"
        )
    return int(threads)
