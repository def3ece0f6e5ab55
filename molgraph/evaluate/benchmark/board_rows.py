"""Find methods that predicted too few of a fold's rows.

A method that declines the rows it finds hard is scored on easier ones than the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import pandas as pd

#: share of the rows that the most willing method predicted in a fold and task: who has fewer, and not just one row
#: fewer, lacks the fold
LEAST_ROWS = 0.99
_LOST = re.compile(r"(\d+) of \d+ measured rows have no prediction")


@dataclass(frozen=True)
class RowsPredicted:
    """Which rows of a board's scores stand on too few predictions.

    Args:
        n: int [scores], rows scored.
        asked: int [scores], measured rows, those without a prediction too.
        good: bool [scores], whether there is a score.
        short: bool [scores], whether the score stands on less than 99% of what another method predicted there, and on
            two rows fewer at least.
    """

    n: np.ndarray
    asked: np.ndarray
    good: np.ndarray
    short: np.ndarray

    def words(self, i: int, task: str = "") -> str:
        """How many rows a score stands on, of how many."""
        return f"{self.n[i]:,} of {self.asked[i]:,} measured rows" + (f" of {task}" if task else "")

    def worst(self, m: np.ndarray, ranked: np.ndarray) -> dict[int, int]:
        """Of each ranked method that left measured rows unpredicted: the score with the smallest share of them.

        Args:
            m: int [scores], each score's method.
            ranked: bool [methods].
        """
        lacking = np.flatnonzero(self.good & ranked[m] & (self.n < self.asked))
        out: dict[int, int] = {}
        for i in lacking[np.argsort(self.n[lacking] / self.asked[lacking], kind="stable")]:
            out.setdefault(int(m[i]), int(i))
        return dict(sorted(out.items()))


def rows_predicted(
    part: pd.DataFrame, f: np.ndarray, t: np.ndarray, shape: tuple[int, ...], good: np.ndarray, notes: np.ndarray
) -> RowsPredicted:
    """Hold each score's rows against those of the method with most in its fold and task.

    Args:
        part: scores of a board; without a column ``n`` nothing is short.
        f, t: int [scores], fold and task.
        shape: numbers of folds and tasks.
        good: bool [scores], whether there is a score.
        notes: object [scores], which name measured rows that have no prediction.
    """
    if "n" not in part:
        none = np.zeros(len(part), dtype=np.int64)
        return RowsPredicted(none, none, good, none > 0)
    n = part["n"].to_numpy(dtype=np.int64)
    most = np.zeros(shape, dtype=np.int64)
    np.maximum.at(most, (f[good], t[good]), n[good])
    lost = np.zeros(len(n), dtype=np.int64)
    for i in np.flatnonzero(notes != ""):
        found = _LOST.search(notes[i])
        lost[i] = int(found[1]) if found else 0
    enough = np.minimum(LEAST_ROWS * most[f, t], most[f, t] - 1)
    return RowsPredicted(n, np.maximum(n + lost, most[f, t]), good, good & (n < enough))
