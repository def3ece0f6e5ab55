"""Reward term: a bonus that a recurrent network computes from the history of a search, trained on other searches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import torch
from safetensors.numpy import save

from molgraph.base.paths import write_whole
from molgraph.base.ranges import Count, NotNegative
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.rewards.history_bonus import HistoryBonus, prints, trained_bonus
from molgraph.generate.rewards.reward import Reward
from molgraph.train.archive import refused, tensors_of
from molgraph.train.restore import restore_network, stored_weights

LARGEST = 16 << 20  # bytes of a file


@register(
    "reward",
    "learned",
    summary="a bonus that a network computes from the search so far, trained on searches for other molecules",
    paper="Zheng et al. 2020, ICML, arXiv:1912.05500",
    systems=(
        SystemCard(
            "lifetime-learned-intrinsic-reward",
            left_out="the learned value of the rest of a lifetime, which short searches in training do without; the "
            "intrinsic reward alone: it is added to the score",
            off="'learned(weight=0)'",
            beside=("no term", "the fixed bonus novelty"),
            command="molgraph optimise --search graph-ga --oracle qed --reward 'learned(steps=4)' -o found.csv",
            modules=("molgraph.generate.rewards.history_bonus",),
        ),
    ),
)
class LearnedBonus(Reward):
    """``S(x) + weight s b(x | history)`` of Zheng et al. 2020, with the score beside the intrinsic reward ``b``.

    The network is trained once, on searches for molecules of the built-in list, so that whole searches score high
    (their section 3), and does not learn any more. It reads molecules and scores in the order in which they come.

    Args:
        file: a safetensors file with the network; it is made where there is none. If not given, none is kept.
        weight: of the bonus, in units of s, the standard deviation of the scores so far, as in its training.
        steps: of training, where there is no file.
        width: of the network's state, which a file's has to equal.
    """

    small = MappingProxyType({"steps": 2, "width": 8})

    def __init__(self, file: str = "", *, weight: NotNegative = 1.0, steps: Count = 100, width: Count = 32) -> None:
        self.file, self.weight, self.steps, self.width = file, weight, steps, width

    def begin(self, *args: Any, **how: Any) -> None:
        """Read or train the network, and forget the history."""
        super().begin(*args, **how)
        self.h, self.best, self.known = torch.zeros(1, 1, self.width), 0.0, np.zeros(0)
        if not self.weight:
            return
        if self.file and Path(self.file).exists():
            with refused("this is no file of a learned bonus", Path(self.file)):
                data = Path(self.file).read_bytes()[:LARGEST]
                self.network = restore_network("learned bonus", lambda: HistoryBonus(self.width), tensors_of(data))
            return
        self.network = trained_bonus(self.steps, self.width, self.weight)
        if self.file:
            write_whole(self.file, save(stored_weights(self.network)))

    def adjust(self, smiles: Sequence[str], score: np.ndarray) -> np.ndarray:
        """The scores with their bonuses; then the molecules are part of the history."""
        out, rows = score.copy(), np.flatnonzero(np.isfinite(score)).tolist()
        if not self.weight or not len(rows):
            return out
        self.known = np.append(self.known, score[rows])
        mean, deviation = float(self.known.mean()), float(self.known.std()) or 1.0
        before = self.known[: -len(rows)].max(initial=mean)
        z, best = (torch.as_tensor((v - mean) / deviation).float() for v in (score[rows], np.array([before])))
        with torch.inference_mode():
            bonus, self.h = self.network(prints([smiles[row] for row in rows])[None], z[None], best, self.h)
        out[rows] += self.weight * deviation * bonus[0].double().numpy()
        return out
