"""V-trace loss: off-policy policy gradient with truncated importance weights and a learned value of states."""

from __future__ import annotations

from types import MappingProxyType
from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.base.ranges import NotNegative, Positive, Probability, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.estimators.estimator import Episodes, Estimator


@register(
    "estimator",
    "vtrace",
    summary="truncated importance weights and a value of states, for texts of an older model (replay)",
    paper="Espeholt et al. 2018, ICML",
    systems=(
        SystemCard(
            "impala-v-trace",
            left_out="the distributed actors, and the entropy bonus",
            off="--search 'policy(estimator=reinforce)'",
            beside=("reinforce without weights", "the weights as they are"),
            command="molgraph optimise prior --search 'policy(estimator=vtrace)' --objective qed -o found.csv",
            modules=("molgraph.generate.searches.policy",),
        ),
    ),
)
class VTrace(Estimator):
    """``- sum_s rho_s (r_s + gamma v_(s+1) - V(x_s)) log pi(a_s | x_s) + value / 2 sum_s (v_s - V(x_s))^2``.

    Espeholt et al. 2018, section 4: a state is a text so far, an action its next token, and the reward comes with the
    end. ``V`` is linear in the model's states. The mean is over the texts. In ``reinvent(estimator=vtrace)`` the texts
    of the memory are such as an older model drew.

    Args:
        rho: largest importance weight of a token; it decides which policy's value is learned.
        c: largest weight of what later tokens say; it decides how fast.
        trace: factor of ``c``, lambda.
        discount: of a later reward by a token, gamma.
        value: weight of the value's squared error.
    """

    late = True
    rate = 20.0  # of the value's weights: 0.01 beside the model's 0.0005
    small = MappingProxyType({"rho": 2.0})

    def __init__(
        self,
        *,
        rho: Positive = 1.0,
        c: Positive = 1.0,
        trace: Probability = 1.0,
        discount: Annotated[float, Range(0.0, 1.0, above=True)] = 1.0,
        value: NotNegative = 0.5,
    ) -> None:
        super().__init__()
        self.rho, self.c, self.trace, self.discount, self.value = rho, c, trace, discount, value

    def begin(self, d_state: int) -> None:
        """The value of states, 0 at first."""
        self.value_of = nn.Linear(d_state, 1)
        nn.init.zeros_(self.value_of.weight)
        nn.init.zeros_(self.value_of.bias)

    def forward(self, episodes: Episodes) -> Tensor:
        """Loss of the policy and of the value."""
        mask, how = episodes.mask, {"rho": self.rho, "c": self.c, "trace": self.trace, "discount": self.discount}
        values = self.value_of(episodes.states)[:, :, 0] * mask
        log_ratio = (episodes.log_pi - episodes.log_mu).detach()
        targets, advantages = v_trace(log_ratio, at_the_end(episodes.reward, mask), values.detach(), mask, **how)
        policy = -(advantages * episodes.log_pi).sum(dim=1).mean()
        return policy + self.value / 2 * ((targets - values) * mask).square().sum(dim=1).mean()


def at_the_end(reward: Float[Tensor, " n"], mask: Bool[Tensor, "n t"]) -> Float[Tensor, "n t"]:
    """float [n, t]: each text's reward at its last place, 0 elsewhere.

    Example:
        >>> at_the_end(torch.tensor([1.0, 2.0]), torch.tensor([[True, True], [True, False]])).tolist()
        [[0.0, 1.0], [2.0, 0.0]]
    """
    places = torch.arange(mask.shape[1], device=mask.device)
    return torch.where(places == mask.sum(dim=1, keepdim=True) - 1, reward[:, None], 0.0)


def v_trace(
    log_ratio: Float[Tensor, "n t"],
    reward: Float[Tensor, "n t"],
    values: Float[Tensor, "n t"],
    mask: Bool[Tensor, "n t"],
    *,
    rho: float = 1.0,
    c: float = 1.0,
    trace: float = 1.0,
    discount: float = 1.0,
) -> tuple[Float[Tensor, "n t"], Float[Tensor, "n t"]]:
    """Targets of the values and advantages of the actions, both float [n, t], 0 behind a text's end.

    ``v_s = V_s + rho_s (r_s + gamma V_(s+1) - V_s) + gamma c_s (v_(s+1) - V_(s+1))``, from the last place to the first
    (Espeholt et al. 2018, remark 1); ``rho_s = min(rho, pi / mu)``, ``c_s = trace min(c, pi / mu)``; the value behind
    the end is 0.

    Args:
        log_ratio: ``log pi - log mu`` of each action.
        reward: of each action.
        values: ``V`` of the state before it.
        mask: whether a place has an action.
        rho, c: largest weights.
        trace: lambda.
        discount: gamma.
    """
    weight = log_ratio.exp() * mask
    values = values * mask
    after = torch.cat([values[:, 1:], torch.zeros_like(values[:, :1])], dim=1)
    step = weight.clamp(max=rho) * (reward + discount * after - values)
    more, kept = torch.zeros_like(values[:, 0]), []
    for place in reversed(range(values.shape[1])):
        more = step[:, place] + discount * trace * weight[:, place].clamp(max=c) * more
        kept.append(more)
    targets = values + torch.stack(kept[::-1], dim=1)
    later = torch.cat([targets[:, 1:], torch.zeros_like(values[:, :1])], dim=1)
    return targets * mask, weight.clamp(max=rho) * (reward + discount * later - values) * mask
