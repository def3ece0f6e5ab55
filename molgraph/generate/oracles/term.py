"""Define ``Term``, one part of a combined oracle: its weight, transform and bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from molgraph.base.errors import ConflictError
from molgraph.generate.oracles.oracle import Oracle
from molgraph.generate.transforms.transform import Transform

DESIRABILITY = 0.2  # a typical difference between the desirabilities of two molecules, from 0 to 1


class Bounds(NamedTuple):
    """The bounds of a ``Term``: inclusive unless ``above`` or ``below``."""

    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False


@dataclass(frozen=True)
class Term:
    """One oracle's part in a combined one.

    Args:
        oracle: whose score it is.
        label: the name of its column.
        weight: how much an improvement of 1 counts; 0 for one that only has bounds. Improvement is in the oracle's
            better direction: with weight 1 the synthetic accessibility falls. With a transform it is the desirability
            that counts, and higher is better.
        low, high: bounds of the score as it is, before a transform.
        above, below: whether the bounds themselves are outside, as in ``sa<4``.
        transform: from scores to desirabilities, 0 to 1; None for none.
    """

    oracle: Oracle
    label: str
    weight: float = 1.0
    low: float = -math.inf
    high: float = math.inf
    above: bool = False
    below: bool = False
    transform: Transform | None = None

    def __post_init__(self) -> None:
        if self.weight < 0 and self.oracle.cautious:
            words = f"the weight of {self.label} is below 0, which would reward what its caution lowers"
            raise ConflictError(
                words, hint="say that lower is better, as in model(FILE.mgm, pessimistic=true, lower=true)"
            )

    @property
    def words(self) -> str:
        """The term as a person would write it."""
        both = ((">", self.low, self.above), ("<", self.high, self.below))
        bounds = "".join(f"{sign}{'' if open_ else '='}{n:g}" for sign, n, open_ in both if math.isfinite(n))
        curve = "" if self.transform is None else f"={self.transform.text.replace(' ', '')}"
        weight = f":{self.weight:g}" if self.weight != 1 and (self.weight or not bounds) else ""
        return self.label + curve + weight + bounds

    @property
    def content(self) -> tuple[object, ...]:
        """What the term's part in a score depends on; its second value is empty where nothing tells."""
        plain = (self.label, self.weight, self.low, self.high, self.above, self.below)
        curve = () if self.transform is None else (self.transform.text.replace(" ", ""),)
        return (type(self.oracle).__name__, self.oracle.content, *plain, *curve)

    @property
    def scale(self) -> float:
        """A typical difference between the values of two molecules, before the weight."""
        return self.oracle.scale if self.transform is None else DESIRABILITY

    @property
    def unit(self) -> bool:
        """Whether the values lie from 0 to 1, and higher is better, as a product of them needs."""
        return self.oracle.unit or self.transform is not None

    def value(self, score: np.ndarray) -> np.ndarray:
        """float64 [n]: what the weight counts, higher is better; NaN where there is no score."""
        return self.oracle.better * score if self.transform is None else self.transform(score)

    def excludes(self, other: Term) -> bool:
        """Whether no score is within the bounds of both; terms of different oracles or parameters never exclude."""
        low, above = max((self.low, self.above), (other.low, other.above))
        high, closed = min((self.high, not self.below), (other.high, not other.below))
        if low < high or (low == high and closed and not above):
            return False
        mine, theirs = self.oracle, other.oracle
        alike = type(mine) is type(theirs) and mine.name == theirs.name and mine.content
        return mine is theirs or bool(alike and mine.content == theirs.content)

    def outside(self, score: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """bool [n], whether each score misses a bound, and float64 [n], by how much."""
        missed, distance = np.zeros(len(score), dtype=bool), np.zeros(len(score))
        for gap, open_ in ((self.low - score, self.above), (score - self.high, self.below)):
            out = gap >= 0 if open_ else gap > 0
            distance[out] += gap[out] + self.oracle.step * open_
            missed |= out
        return missed, distance
