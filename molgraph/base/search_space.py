"""Declare the ranges of hyper-parameters that a search may try."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Numbers:
    """Numbers between two bounds, both included; with ``log`` even in the logarithm, where a factor matters."""

    low: float
    high: float
    log: bool = False

    def __post_init__(self) -> None:
        low, high = self.low, self.high
        if not (math.isfinite(low) and math.isfinite(high) and low <= high):
            raise ValueError(f"low is {low}, high is {high}: expected finite numbers, the lower first")
        if self.log and low <= 0:
            raise ValueError(f"low is {low}: a logarithm needs a number above 0")


class Float(_Numbers):
    """A number between two bounds, both included.

    Args:
        low, high: the bounds.
        log: even in the logarithm, where a factor matters and not a difference.

    Example:
        >>> Float(0.01, 100.0, log=True)
        Float(low=0.01, high=100.0, log=True)
    """


class Int(_Numbers):
    """A whole number between two bounds, both included.

    Args:
        low, high: the bounds.
        log: even in the logarithm.
    """

    low: int
    high: int


@dataclass(frozen=True)
class Categorical:
    """One of a few values.

    Args:
        choices: the values: None, truth values, numbers or texts.
    """

    choices: tuple[Any, ...]

    def __post_init__(self) -> None:
        if not self.choices:
            raise ValueError("a choice among no values")


Range = Float | Int | Categorical
Space = Mapping[str, Range]
