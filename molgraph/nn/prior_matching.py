"""Match the distribution of states with a uniform prior, by a discriminator that is trained against the encoder."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.perceptron import Perceptron


class PriorMatching(nn.Module):
    """A discriminator of states and draws of the uniform prior on [0, 1]^d.

    Hjelm et al. 2019, "Learning deep representations by mutual information estimation and maximization" (Deep
    InfoMax), equation 7: ``min_E max_D E_prior[log D(y)] + E[log(1 - D(E(x)))]``; the encoder's half is in the form
    that does not saturate, ``-log D(E(x))``.

    Args:
        d: width of the states, which are brought between 0 and 1 by a sigmoid.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.score = Perceptron(d, d, 1)

    def encoder_loss(self, states: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """What the encoder minimises: that its states are told from the prior."""
        return F.softplus(-self.score(states.sigmoid())[:, 0])

    def own_loss(self, states: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """What the discriminator minimises; no gradient reaches the states."""
        y = states.detach().sigmoid()
        return F.softplus(self.score(y)[:, 0]) + F.softplus(-self.score(torch.rand_like(y))[:, 0])
