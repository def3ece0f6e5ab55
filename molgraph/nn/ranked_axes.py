"""A Bradley-Terry loss that makes each latent coordinate of a VAE rank molecules by one property."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class RankedAxes(nn.Module):
    """``P(first ranks higher by k) = sigmoid(s_k (z1_k - z2_k))`` with a learned scale ``s_k > 0`` (Bradley-Terry).

    Lee et al. 2020, "Weakly-Supervised Reinforcement Learning for Controllable Behavior", NeurIPS: the ranks of pairs
    align the axes of a latent space with properties. The k-th property has the k-th axis, and since the scale is
    positive, more of the property is a higher coordinate. The scales are softplus of free numbers, and begin at 1.

    Args:
        n: ranked properties, at most the width of the latent vectors.

    Example:
        >>> axes = RankedAxes(1)
        >>> axes(torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 9.0]])).round(decimals=3).tolist()
        [[2.0]]
    """

    def __init__(self, n: int) -> None:
        super().__init__()
        self.raw = nn.Parameter(torch.full((n,), math.log(math.e - 1)))

    @property
    def scale(self) -> Float[Tensor, " n"]:
        """The scale of each axis, above 0."""
        return F.softplus(self.raw)

    def forward(self, first: Float[Tensor, "pairs d"], second: Float[Tensor, "pairs d"]) -> Float[Tensor, "pairs n"]:
        """The log odds that the first vector of each pair ranks higher, by each property."""
        n = len(self.raw)
        return self.scale * (first[:, :n] - second[:, :n])

    def cross_entropy(
        self,
        first: Float[Tensor, "pairs d"],
        second: Float[Tensor, "pairs d"],
        ranks: Float[Tensor, "pairs n"],
        weights: Float[Tensor, "pairs n"],
    ) -> Float[Tensor, ""]:
        """The sum of the weighted cross-entropies of the ranks: 1 where the first ranks higher, 0 where the second."""
        odds = self(first, second).float()
        return F.binary_cross_entropy_with_logits(odds, ranks, weights, reduction="sum")
