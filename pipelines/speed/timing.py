"""Works in, the best seconds of each out: every figure of the speed table is measured this way."""

from __future__ import annotations

import time
from collections.abc import Callable


def in_turn(works: list[Callable[[], None]], rounds: int) -> list[float]:
    """Best seconds of each work, all of them run once a round so that a busy moment meets them all."""
    best = [float("inf")] * len(works)
    for turn in range(rounds + 1):  # the first round warms up and does not count
        for i, work in enumerate(works):
            start = time.perf_counter()
            work()
            if turn:
                best[i] = min(best[i], time.perf_counter() - start)
    return best
