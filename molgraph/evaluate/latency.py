"""Weigh the score of a trial by its measured prediction speed, as a product, and find the undominated trials."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from molgraph.base.errors import BadValueError

WEIGHT = -0.07  # of the paper: half the latency is worth 5% of the score


@dataclass(frozen=True)
class Latency:
    """The reward of MnasNet, ``score * (latency / target)^w`` (Tan et al. 2019, CVPR, equation 2, soft constraint).

    The latency of a molecule is 1 over the molecules/s of ``predict``, so that half the target speed multiplies a score
    by ``2^w``, with ``w = -0.07`` by 0.9526. At the target the reward is the score. All trials are compared by it,
    those that are faster than the target too.

    Args:
        target: molecules/s.
        weight: w, 0 or less; 0 leaves the score alone.

    Raises:
        BadValueError: a target that is not above 0, or a weight above 0, which would reward slow models.

    Example:
        >>> round(Latency(5000).reward(1.0, 2500), 4), Latency(5000).reward(0.8, 5000)
        (0.9526, 0.8)
    """

    target: float
    weight: float = WEIGHT

    def __post_init__(self) -> None:
        if not 0 < self.target < math.inf:
            raise BadValueError(f"the latency is {self.target:g} molecules/s", hint="give a speed, such as 5000/s")
        if not -math.inf < self.weight <= 0:
            words = f"the weight of the latency is {self.weight:g}, which would reward slow models"
            raise BadValueError(words, hint="give 0 or less; -0.07 if not given")

    @classmethod
    def read(cls, text: str | float, weight: float = WEIGHT) -> Latency:
        """The reward of a speed such as ``5000/s`` or ``5000``, in molecules/s.

        Raises:
            BadValueError: anything else.

        Example:
            >>> Latency.read("5000/s").target, Latency.read("2,500").target
            (5000.0, 2500.0)
        """
        number = re.fullmatch(r"([0-9]*\.?[0-9]+(?:e[0-9]+)?)\s*(?:/\s*s)?", str(text).strip().lower().replace(",", ""))
        if not number:
            raise BadValueError(f"the latency is {text!r}", hint="give molecules per second, such as 5000/s")
        return cls(float(number[1]), weight)

    def reward(self, score: float, rate: float) -> float:
        """Of a score above 0, of which more is better, and molecules/s."""
        return score * (self.target / rate) ** self.weight

    def of_loss(self, loss: float, rate: float) -> float:
        """Of a trial's value, of which less is better: an error, whose score is 1 / error, or a score's negative."""
        return self.reward(-loss if loss <= 0 else 1 / loss, rate)


def undominated(losses: np.ndarray, rates: np.ndarray) -> np.ndarray:
    """bool [n]: trials than which no other is at least as good in both loss (less) and rate (more), and better in one.

    Trials with a NaN are none of them.

    Example:
        >>> undominated(np.array([1.0, 2.0, 3.0]), np.array([10.0, 20.0, 15.0])).tolist()
        [True, True, False]
    """
    known = np.isfinite(losses) & np.isfinite(rates)
    as_good = (losses[:, None] <= losses) & (rates[:, None] >= rates) & known[:, None]
    better = (losses[:, None] < losses) | (rates[:, None] > rates)
    return known & ~(as_good & better).any(axis=0)
