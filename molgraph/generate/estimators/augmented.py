"""REINVENT's loss: squared distance of log p(x) from the prior's log-likelihood plus sigma times the reward."""

from __future__ import annotations

from typing import Annotated

from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.generate.estimators.estimator import Episodes, Estimator


@register("estimator", "augmented", summary="the prior's log-likelihood plus sigma times the reward",
          paper="Olivecrona et al. 2017, J. Cheminform. 9:48")  # fmt: skip
class Augmented(Estimator):
    """``mean (log p_prior(x) + sigma S(x) - log p(x))^2`` (Olivecrona et al. 2017, section 2.4).

    On texts that the model draws itself its gradient vanishes at ``p = p_prior exp(sigma S) / Z``. ``sigma`` is the
    trade of reward against nearness to the prior.

    Args:
        sigma: nats that a reward of 1 adds to the prior's log-likelihood.
    """

    def __init__(self, *, sigma: Annotated[float, Range(0.0, 1e6)] = 500.0) -> None:
        super().__init__()
        self.sigma = sigma

    def forward(self, episodes: Episodes) -> Tensor:
        """The mean over the texts."""
        wanted = episodes.log_prior.sum(dim=1) + self.sigma * episodes.reward
        return (wanted - episodes.total).square().mean()
