"""Works in, the median seconds of each out: every figure of the speed table is measured this way."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from statistics import median


def in_turn(
    works: list[Callable[[], None]], rounds: int, clock: Callable[[], float] = time.perf_counter
) -> list[float]:
    """Median seconds of each work, all of them run once a round so that a busy moment meets them all."""
    taken: list[list[float]] = [[] for _ in works]
    for turn in range(rounds + 1):  # the first round warms up and does not count
        for seconds, work in zip(taken, works, strict=True):
            start = clock()
            work()
            if turn:
                seconds.append(clock() - start)
    return [median(seconds) for seconds in taken]


def cpu_seconds() -> float:
    """Processor time of this process, to the microsecond, and of its children that have ended."""
    return time.process_time() + sum(os.times()[2:4])


def figure(value: float) -> str:
    """A rate or a time as a whole number, or where it is small with three digits."""
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
