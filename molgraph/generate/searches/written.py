"""Store a generated SMILES with its score and reward, and scale scores to rewards from 0 to 1."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Written(NamedTuple):
    """A text that was scored.

    Args:
        codes: its tokens.
        reward: from 0 to 1, its score in the range of those that were told so far.
        log_mu: its tokens' log-probabilities when it was drawn; empty of one that the model did not draw.
        score: as the oracle gave it; NaN of a text without one.
    """

    codes: list[int]
    reward: float
    log_mu: np.ndarray
    score: float = np.nan


class Unit:
    """Bring scores to 0 to 1: as they are where all told so far are, else between the lowest and the highest told.

    Example:
        >>> unit, scores = Unit(), np.array([0.2, 0.9, np.nan])
        >>> unit.widen(scores)
        >>> unit(scores).tolist()
        [0.2, 0.9, 0.0]
        >>> unit.widen(np.array([-1.0, 3.0]))
        >>> unit(np.array([-1.0, 3.0, 1.0])).tolist()
        [0.0, 1.0, 0.5]
    """

    def __init__(self) -> None:
        self.low, self.high = np.inf, -np.inf

    def widen(self, score: np.ndarray) -> None:
        """Let the range hold these scores; those that are no finite numbers are passed over."""
        known = score[np.isfinite(score)]
        self.low, self.high = min([self.low, *known.tolist()]), max([self.high, *known.tolist()])

    def __call__(self, score: np.ndarray) -> np.ndarray:
        """float64 [n]; 0 of what has no score."""
        low, high = (0.0, 1.0) if self.low >= 0 and self.high <= 1 else (self.low, self.high)
        return np.nan_to_num(np.clip((score - low) / (high - low or 1.0), 0.0, 1.0))
