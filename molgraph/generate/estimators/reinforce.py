"""REINFORCE's loss: policy gradient by the score function, with a leave-one-out or a running baseline."""

from __future__ import annotations

from typing import Literal

from torch import Tensor

from molgraph.base.ranges import Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.estimators.estimator import Episodes, Estimator, leave_one_out


@register(
    "estimator",
    "reinforce",
    summary="score function with the mean of the other texts, or a running mean, as the baseline",
    paper="Williams 1992, Mach. Learn. 8:229; Kool et al. 2019, ICLR workshop",
    systems=(
        SystemCard(
            "reinforce-with-baseline",
            left_out="a learned value function as the baseline (estimator=vtrace has one)",
            off="--search 'policy(estimator=reinforce(baseline=zero))'",
            beside=("no baseline", "its own sample in the baseline"),
            command="molgraph optimise prior --search 'policy(estimator=reinforce)' --objective qed -o found.csv",
        ),
    ),
)
class Reinforce(Estimator):
    """``- (1/k) sum_i (f(x_i) - b_i) log p(x_i)``, whose gradient is unbiased where ``b_i`` does not depend on ``x_i``.

    ``loo``: ``b_i`` is the mean reward of the other k - 1 texts of the batch (Kool et al. 2019, equation 8). ``ema``: a
    running mean of the batches before. ``zero``: 0.

    Args:
        baseline: which.
        decay: of the running mean, the weight of what was.
    """

    def __init__(self, *, baseline: Literal["loo", "ema", "zero"] = "loo", decay: Probability = 0.9) -> None:
        super().__init__()
        self.baseline, self.decay = baseline, decay
        self.mean, self.batches = 0.0, 0

    def forward(self, episodes: Episodes) -> Tensor:
        """The surrogate: its gradient is minus that of the expected reward."""
        return -(self.advantage(episodes.reward) * episodes.total).mean()

    def advantage(self, reward: Tensor) -> Tensor:
        """float [n]: rewards less their baseline."""
        if self.baseline == "loo":
            return leave_one_out(reward)
        if self.baseline == "zero":
            return reward
        before = self.mean / (1 - self.decay**self.batches) if self.batches else 0.0
        self.mean = self.decay * self.mean + (1 - self.decay) * float(reward.mean())
        self.batches += 1
        return reward - before
