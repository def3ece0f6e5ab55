"""Measure the seconds of several calls in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

ROUNDS = 3
TIMED = 2_000  # rows that are predicted for molecules/s, at most


def seconds_in_turn(calls: Sequence[Callable[[], Any]], rounds: int = ROUNDS) -> list[float]:
    """The median seconds of each call, in turn; the first of each is not counted."""
    taken: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + 1):
        for times, call in zip(taken, calls, strict=True):
            start = time.perf_counter()
            call()
            times.extend([time.perf_counter() - start] if turn else [])
    return [float(np.median(times)) for times in taken]
