"""PPO's loss: several passes over each batch of texts, with clipped probability ratios."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

from torch import Tensor

from molgraph.base.ranges import Positive, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.estimators.estimator import Episodes, Estimator, leave_one_out


@register(
    "estimator",
    "ppo",
    summary="several passes over a batch, with clipped probability ratios and a limit on the divergence",
    paper="Schulman et al. 2015, ICML; Schulman et al. 2017, arXiv:1707.06347",
    systems=(
        SystemCard(
            "trpo-surrogate-objective",
            left_out="conjugate gradients and the line search: the clip and an early stop by the divergence stand for "
            "the constraint; the value function",
            off="--search 'policy(estimator=reinforce)'",
            beside=("reinforce with as many calls", "the passes without the clip and the limit"),
            command="molgraph optimise prior --search 'policy(estimator=ppo(passes=4))' --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy",),
        ),
    ),
)
class PPO(Estimator):
    """``- (1/k) sum_i sum_t min(r_it A_i, clip(r_it, 1 - clip, 1 + clip) A_i)`` with ``r_it = pi(x_it) / mu(x_it)``.

    Schulman et al. 2015, equation 14, is the surrogate ``E[r A]``, whose gradient at ``pi = mu`` is the expected
    reward's; Schulman et al. 2017, equation 7, is the clip in the place of the constraint. ``A_i`` is the text's reward
    less the mean of the others. The passes over a batch end once ``KL(mu || pi)`` of its texts is above ``kl``.

    Args:
        clip: how far a ratio may be from 1 and still have a gradient.
        passes: steps on each batch, at most.
        kl: nats of a whole text; a pass that takes the divergence above it is the last of its batch.
    """

    late = True
    small = MappingProxyType({"passes": 2})

    def __init__(
        self,
        *,
        clip: Annotated[float, Range(0.0, 1.0, above=True)] = 0.2,
        passes: Annotated[int, Range(1, 100)] = 4,
        kl: Positive = 1.0,
    ) -> None:
        super().__init__()
        self.clip, self.passes, self.kl = clip, passes, kl

    def forward(self, episodes: Episodes) -> Tensor:
        """The clipped surrogate."""
        ratio = (episodes.log_pi - episodes.log_mu).exp()
        advantage = leave_one_out(episodes.reward)[:, None]
        least = (ratio * advantage).minimum(ratio.clamp(1 - self.clip, 1 + self.clip) * advantage)
        return -(least * episodes.mask).sum(dim=1).mean()

    def enough(self, episodes: Episodes) -> bool:
        """Whether the divergence is above the limit."""
        return divergence(episodes) > self.kl


def divergence(episodes: Episodes) -> float:
    """``KL(mu || pi)`` in nats of a text, estimated by ``sum_t (r - 1 - log r)``, which is never negative."""
    log_ratio = (episodes.log_pi - episodes.log_mu).detach() * episodes.mask
    return float((log_ratio.exp() - 1 - log_ratio).sum(dim=1).mean())
