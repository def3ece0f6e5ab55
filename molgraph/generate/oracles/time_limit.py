"""Limit the time of an oracle's calls."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any

ABANDONED = 8  # calls that never came back and still run, from which no other is begun


class TooLongError(Exception):
    """A call of the oracle that did not come back in time."""


class TimeLimit:
    """Calls functions in threads that are left alone when they take too long.

    Example:
        >>> TimeLimit().call(len, ["C", "CC"], 1.0)
        2
    """

    def __init__(self) -> None:
        self._hung: list[threading.Thread] = []

    def call(self, function: Callable[[list[str]], Any], items: list[str], limit: float) -> Any:
        """``function(items)``, for ``limit`` seconds an item at most.

        Raises:
            TooLongError: it did not come back, or too many earlier calls have not.
        """
        self._hung = [thread for thread in self._hung if thread.is_alive()]
        if len(self._hung) >= ABANDONED:
            raise TooLongError(f"{ABANDONED} earlier calls of the oracle have not come back")
        answers: queue.SimpleQueue[tuple[bool, Any]] = queue.SimpleQueue()

        def work() -> None:
            try:
                answers.put((True, function(items)))
            except Exception as error:  # raised again below, in the caller's thread
                answers.put((False, error))

        thread = threading.Thread(target=work, name="molgraph-oracle", daemon=True)
        thread.start()
        try:
            done, answer = answers.get(timeout=limit * len(items))
        except queue.Empty:
            self._hung.append(thread)
            suffix = f" for each of {len(items)} molecules" if len(items) > 1 else ""
            raise TooLongError(f"the oracle takes longer than {limit:g} s{suffix}") from None
        if not done:
            raise answer
        return answer
