"""Declare the ranges of hyper-parameters that a search may try, and sample them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Float:
    """A number between two bounds, both included.

    Args:
        low, high: the bounds.
        log: even in the logarithm, where a factor matters and not a difference.

    Example:
        >>> round(Float(0.01, 100.0, log=True).at(0.5), 6)
        1.0
    """

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.log)

    def at(self, share: float) -> float:
        """The value at a share from 0 to 1 of the way from ``low`` to ``high``."""
        return _between(self.low, self.high, self.log, share)

    def holds(self, value: object) -> bool:
        """Whether a value lies inside."""
        return isinstance(value, (int, float)) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass(frozen=True)
class Int:
    """A whole number between two bounds, both included.

    Args:
        low, high: the bounds.
        log: even in the logarithm.

    Example:
        >>> [Int(1, 4).at(share) for share in (0.0, 0.5, 1.0)], Int(1, 4).holds(5)
        ([1, 2, 4], False)
    """

    low: int
    high: int
    log: bool = False

    def __post_init__(self) -> None:
        _check_bounds(self.low, self.high, self.log)

    def at(self, share: float) -> int:
        """The value at a share from 0 to 1 of the way from ``low`` to ``high``."""
        return min(self.high, max(self.low, round(_between(self.low, self.high, self.log, share))))

    def holds(self, value: object) -> bool:
        """Whether a value lies inside."""
        return isinstance(value, int) and not isinstance(value, bool) and self.low <= value <= self.high


@dataclass(frozen=True)
class Categorical:
    """One of a few values.

    Args:
        choices: the values: None, truth values, numbers or texts.

    Example:
        >>> Categorical(("sqrt", 0.1, None)).at(0.99) is None
        True
    """

    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.choices:
            raise ValueError("a choice among no values")

    def at(self, share: float) -> Any:
        """The value at a share from 0 to 1 of the way along the choices."""
        return self.choices[min(len(self.choices) - 1, int(share * len(self.choices)))]

    def holds(self, value: object) -> bool:
        """Whether a value is one of them."""
        return any(type(value) is type(choice) and value == choice for choice in self.choices)


Range = Float | Int | Categorical
Space = Mapping[str, Range]


def _between(low: float, high: float, log: bool, share: float) -> float:
    if share <= 0:
        return low
    if share >= 1:
        return high
    if log:
        return math.exp(math.log(low) + share * (math.log(high) - math.log(low)))
    return low + share * (high - low)


def _check_bounds(low: float, high: float, log: bool) -> None:
    if not (math.isfinite(low) and math.isfinite(high) and low <= high):
        raise ValueError(f"low is {low}, high is {high}: expected finite numbers, the lower first")
    if log and low <= 0:
        raise ValueError(f"low is {low}: a logarithm needs a number above 0")
