"""Reward term: REINVENT's diversity filter; a scaffold with enough good molecules scores no more."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from molgraph.base.ranges import Count, Range
from molgraph.base.registry import register
from molgraph.chem.scaffold import scaffolds
from molgraph.generate.rewards.reward import Reward


@register("reward", "scaffold-filter", summary="scaffolds that are full of good molecules score no more",
          paper="Blaschke et al. 2020, J. Cheminform. 12:68")  # fmt: skip
class ScaffoldFilter(Reward):
    """A molecule's score is the lowest so far once ``size`` molecules of its scaffold had ``least`` or more.

    The scaffold is that of Bemis and Murcko; molecules without rings are one scaffold each, as Blaschke et al. 2020
    have it for identical molecules. A bucket takes each molecule once.

    Args:
        size: good molecules of a scaffold before it is full.
        least: score of a good one.
    """

    def __init__(self, *, size: Count = 25, least: Annotated[float, Range(-1e30, 1e30)] = 0.4) -> None:
        self.size, self.least = size, least

    def begin(self, *args: Any, **how: Any) -> None:
        """Empty the buckets."""
        super().begin(*args, **how)
        self.full, self.met, self.worst = Counter[str](), set[str](), 0.0

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores, those of full scaffolds lowered."""
        out = score.copy()
        self.worst = min([self.worst, *score[np.isfinite(score)].tolist()])
        good = np.flatnonzero(score >= self.least)  # not those without a score
        keys = scaffolds([smiles[row] for row in good.tolist()]).values
        for row, key in zip(good.tolist(), keys, strict=True):
            text, scaffold = smiles[row], str(key) or smiles[row]
            if text not in self.met:
                self.met.add(text)
                self.full[scaffold] += 1
            if self.full[scaffold] > self.size:
                out[row] = self.worst
        return out
