"""Trajectory-balance loss of GFlowNets: texts come in proportion to exp(beta reward)."""

from __future__ import annotations

from typing import Annotated

import torch
from torch import Tensor, nn

from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.generate.estimators.estimator import Episodes, Estimator


@register("estimator", "trajectory-balance", summary="draws in proportion to exp(beta reward), from any texts",
          paper="Malkin et al. 2022, NeurIPS; Kim et al. 2024, NeurIPS")  # fmt: skip
class TrajectoryBalance(Estimator):
    """``mean (log Z + log p(x) - beta S(x))^2``, with ``log Z`` learned, plus ``kl`` times the distance from the prior.

    Malkin et al. 2022, equation 14, for texts, each of which has one way to be written: the backward probability is 1.
    It holds of texts that anything wrote, so that the best ones so far and children of a genetic algorithm are learned
    from as they are. The distance is ``mean (log p(x) - log p_prior(x))``, as Kim et al. 2024 have it.

    Args:
        beta: nats of a reward of 1.
        kl: weight of the distance from the prior.
    """

    rate = 200.0  # Kim et al.: 0.1 for log Z beside 0.0005

    def __init__(self, *, beta: Annotated[float, Range(0.0, 1e6)] = 50.0, kl: NotNegative = 0.001) -> None:
        super().__init__()
        self.beta, self.kl = beta, kl
        self.log_z = nn.Parameter(torch.tensor(5.0))

    def forward(self, episodes: Episodes) -> Tensor:
        """The mean over the texts."""
        away = (self.log_z + episodes.total - self.beta * episodes.reward).square().mean()
        if not self.kl:
            return away
        return away + self.kl * (episodes.total - episodes.log_prior.sum(dim=1)).mean()
