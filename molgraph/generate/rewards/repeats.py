"""Divide the score of a molecule that a batch has several times by how often it has it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.rewards.reward import Reward


@register(
    "reward",
    "repeats",
    summary="a molecule that a batch repeats k times scores a k-th each",
    paper="Guimaraes et al. 2017, arXiv:1705.10843",
    systems=(
        SystemCard(
            "organ-organ",
            off="''",
            beside=("no term",),
            command="molgraph optimise prior --search 'policy(learning_rate=0.3)' --oracle qed --reward repeats "
            "-o found.csv",
            part=True,
        ),
    ),
)
class Repeats(Reward):
    """``low + (S(x) - low) / k``, where the batch has x ``k`` times and ``low`` is 0 or the lowest score so far.

    The penalty of Guimaraes et al. 2017 (section 3), who have scores of 0 to 1: there it is ``S(x) / k``. A molecule
    that is new to a search is told once, however often a batch has it; from then on each of its copies is told.
    """

    def begin(self, *args: Any, **how: Any) -> None:
        """Forget the lowest score."""
        super().begin(*args, **how)
        self.low = 0.0

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores of repeated molecules divided."""
        self.low = min([self.low, *score[np.isfinite(score)].tolist()])
        times = Counter(smiles)
        return self.low + (score - self.low) / np.array([times[text] for text in smiles], dtype=np.float64)
