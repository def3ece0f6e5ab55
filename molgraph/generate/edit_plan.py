"""Estimate the value of edits several steps ahead from predicted rewards, building the best products alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

import numpy as np


class Planner:
    """The d-step plan of a value prediction network.

    Oh et al. 2017, equations 2 and 3: ``Q_d(s, o) = r(s, o) + gamma V_d(s')``, and ``V_d(s) = V(s)`` for d = 1, else
    ``V(s) / d + (d - 1) / d max_o Q_{d-1}(s, o)``, the maximum being over the ``width`` options with the highest
    rewards. States in which nothing can be done have the value ``V``.

    Args:
        value: ``V(s)``, the value of a state.
        options: what can be done in a state.
        reward: float [k], ``r(s, o)`` of the options of a state, without the states that they lead to.
        step: the state that an option leads to, None where it leads to none; asked for the best options alone.
        discount: ``gamma``.
        width: ``b``, options that are looked at in a state, at most.

    Example:
        >>> plan = Planner(float, lambda s: [1, 2], lambda s, o: np.array(o) * 0.1, lambda s, o: s + o, 1.0, 2)
        >>> plan.value_of(3, 1), round(plan.value_of(3, 2), 6)
        (3.0, 4.1)
    """

    def __init__(
        self,
        value: Callable[[Any], float],
        options: Callable[[Any], Sequence[Any]],
        reward: Callable[[Any, Sequence[Any]], np.ndarray],
        step: Callable[[Any, Any], Any],
        discount: float = 0.9,
        width: int = 4,
    ) -> None:
        self.value, self.options, self.reward, self.step = value, options, reward, step
        self.discount, self.width = discount, width
        self.built: dict[Any, tuple[list[tuple[float, Any]], Iterator[tuple[float, Any]]]] = {}

    def best_options(self, state: Any, n: int) -> list[tuple[float, Any]]:
        """Reward and next state of at most ``n`` options, those with the highest rewards; the same each time."""
        if state not in self.built:
            self.built[state] = [], self._in_order(state)
        known, more = self.built[state]
        known += islice(more, max(n - len(known), 0))
        return known[:n]

    def _in_order(self, state: Any) -> Iterator[tuple[float, Any]]:
        options = self.options(state)
        rewards = np.asarray(self.reward(state, options) if len(options) else [], dtype=np.float64)
        for row in np.argsort(-rewards, kind="stable").tolist():
            if (after := self.step(state, options[row])) is not None:
                yield float(rewards[row]), after

    def value_of(self, state: Any, depth: int) -> float:
        """``V_d(s)``."""
        value = self.value(state)
        if depth == 1 or not (best := self.best_options(state, self.width)):
            return value
        ahead = max(reward + self.discount * self.value_of(after, depth - 1) for reward, after in best)
        return value / depth + (depth - 1) / depth * ahead
