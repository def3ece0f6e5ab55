"""Embed graphs as Gaussians, and give the probability that two of them match."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.perceptron import Perceptron


class Gaussians(NamedTuple):
    """Normal distributions with a diagonal covariance.

    Args:
        mean: float [n, d].
        log_variance: float [n, d].
    """

    mean: Float[Tensor, "n d"]
    log_variance: Float[Tensor, "n d"]

    def sample(self, k: int, random: torch.Generator | None = None) -> Float[Tensor, "{k} n d"]:
        """float [k, n, d]: k points of each, by ``mean + sigma * noise``; the mean alone where the variance is 0."""
        noise = torch.randn(k, *self.mean.shape, generator=random).to(self.mean)
        return self.mean + (self.log_variance / 2).exp() * noise

    def divergence(self) -> Float[Tensor, " n"]:
        """Kullback-Leibler divergence of each from N(0, I), in nats."""
        terms = self.log_variance.exp() + self.mean.square() - 1 - self.log_variance
        return terms.sum(dim=1) / 2


class MatchEmbedding(nn.Module):
    """A Gaussian for each graph's state, and the probability that two of them match.

    Sun et al. 2020, "View-Invariant Probabilistic Embedding for Human Pose" (ECCV), equations 2 and 3: two points
    match with ``p(m | z_i, z_j) = sigmoid(-a |z_i - z_j| + b)``, a > 0, and two Gaussians with the mean of that over
    K points of each, K x K pairs.

    Args:
        d_in: width of a graph's state.
        d: width of the embedding.
        k: points drawn of a Gaussian.
    """

    def __init__(self, d_in: int, d: int = 16, k: int = 8) -> None:
        super().__init__()
        self.d, self.k = d, k
        self.layers = Perceptron(d_in, d_in, 2 * d)
        self.raw_scale = nn.Parameter(torch.tensor(0.0))
        self.bias = nn.Parameter(torch.tensor(0.0))

    def forward(self, states: Float[Tensor, "n d_in"]) -> Gaussians:
        """The Gaussians; log-variances are within -10 and 3."""
        mean, log_variance = self.layers(states).chunk(2, dim=1)
        return Gaussians(mean, (log_variance - 2).clamp(-10, 3))

    @property
    def scale(self) -> Float[Tensor, ""]:
        """a, above 0."""
        return F.softplus(self.raw_scale)

    def probability(self, a: Gaussians, b: Gaussians, random: torch.Generator | None = None) -> Float[Tensor, "n m"]:
        """float [n, m]: the probability that each of n matches each of m.

        ``random``: the numbers of the points; None for torch's own.
        """
        return self.log_probability(a, b, random).exp()

    def log_probability(
        self, a: Gaussians, b: Gaussians, random: torch.Generator | None = None
    ) -> Float[Tensor, "n m"]:
        """float [n, m]: its logarithm; that of one point a Gaussian where ``k`` is 1."""
        x, y = a.sample(self.k, random), b.sample(self.k, random)
        distance = torch.cdist(x.flatten(0, 1), y.flatten(0, 1), compute_mode="donot_use_mm_for_euclid_dist")
        log_probs = F.logsigmoid(self.bias - self.scale * distance).reshape(self.k, len(a.mean), self.k, len(b.mean))
        total: Float[Tensor, "n m"] = log_probs.permute(1, 3, 0, 2).flatten(2).logsumexp(dim=2)
        return total - 2 * torch.tensor(float(self.k)).log()
