"""Unordered-set policy gradient: groups of texts that are sampled without replacement."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.generate.estimators.estimator import Episodes, Estimator


@register(
    "estimator",
    "unordered",
    summary="groups of distinct texts, each of which weighs as the expectation over their orders says",
    paper="Kool et al. 2020, ICLR",
    systems=(
        SystemCard(
            "unordered-set-estimator",
            left_out="numerical integration for groups of more than ten; the biased, normalised estimator",
            off="--search 'policy(estimator=reinforce)'",
            beside=("reinforce with the mean of the others, at as many rewards",),
            command="molgraph optimise prior --search 'policy(estimator=unordered(k=4))' --objective qed -o found.csv",
            modules=("molgraph.generate.distinct", "molgraph.generate.searches.policy"),
        ),
    ),
)
class UnorderedSet(Estimator):
    """``- sum_(s in S) p(s) R(S, s) (f(s) - b_s) log p(s)``, the mean over the groups ``S`` of k distinct texts.

    The unordered set policy gradient of Kool et al. 2020, with the leave-one-out ratio
    ``R(S, s) = p_without_s(S - s) / p(S)`` and the baseline ``b_s = sum_(s' in S) p(s') R_without_s(S, s') f(s')``, in
    which ``R_without_s(S, s) = 1``. ``p(S)`` is the probability of the set in any order of draws. The gradient is
    unbiased, and no reward of a group is spent on a text twice.

    Args:
        k: texts of a group; the cost grows as 2^k.
        baseline: whether the baseline is taken off.
    """

    def __init__(self, *, k: Annotated[int, Range(2, 10)] = 4, baseline: bool = True) -> None:
        super().__init__()
        self.distinct, self.baseline = k, baseline

    def forward(self, episodes: Episodes) -> Tensor:
        """The surrogate: its gradient is minus that of the expected reward."""
        log_p = episodes.total.view(-1, min(self.distinct, len(episodes.reward)))
        reward = episodes.reward.view_as(log_p)
        weight, other = set_weights(log_p.detach().double())
        advantage = reward[:, :, None].double()
        if self.baseline:
            advantage = advantage - other @ reward[:, :, None].double()
        return -((weight * advantage[:, :, 0]).to(log_p) * log_p).sum(dim=1).mean()


def set_weights(log_p: Float[Tensor, "n k"]) -> tuple[Float[Tensor, "n k"], Float[Tensor, "n k k"]]:
    """``p(s) R(S, s)`` as float64 [n, k] and ``p(s') R_without_s(S, s')`` as float64 [n, k (s), k (s')] of n sets.

    ``g(C)`` is the probability that the others of a set are drawn once those in ``C`` were: 1 for the whole set, and
    ``g(C) = sum_(s not in C) p(s) / (1 - p(C)) g(C + s)``. The ratios are ``g(s) / g()`` and ``g(s, s') / g(s)``.

    Args:
        log_p: float64, log-probabilities of the members of each set.

    Example:
        >>> p = torch.tensor([[0.5, 0.25]], dtype=torch.float64)
        >>> weight, other = set_weights(p.log())
        >>> [round(value, 4) for value in weight[0].tolist()], other[0].tolist()
        ([0.6, 0.4], [[0.5, 0.5], [0.75, 0.25]])
    """
    k, p = log_p.shape[1], log_p.exp()
    members = range(k)
    g = {(1 << k) - 1: torch.zeros_like(log_p[:, 0])}
    for drawn in reversed(range((1 << k) - 1)):
        there = torch.stack([p[:, s] for s in members if drawn >> s & 1], dim=1).sum(dim=1) if drawn else p[:, 0] * 0
        parts = [log_p[:, s] + g[drawn | 1 << s] for s in members if not drawn >> s & 1]
        g[drawn] = torch.stack(parts, dim=1).logsumexp(dim=1) - torch.log1p(-there.clamp(max=1 - 1e-12))
    weight = torch.stack([log_p[:, s] + g[1 << s] - g[0] for s in members], dim=1).exp()
    rows = [
        torch.stack([p[:, o] if o == s else (log_p[:, o] + g[1 << s | 1 << o] - g[1 << s]).exp() for o in members], 1)
        for s in members
    ]
    return weight, torch.stack(rows, dim=1)
