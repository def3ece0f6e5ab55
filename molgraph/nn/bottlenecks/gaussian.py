"""Draw latent vectors from Gaussian posteriors, whose mean and variance are linear in the states."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.registry import register
from molgraph.nn.bottleneck import Bottleneck
from molgraph.nn.variational import Gaussian, bounded


@register(
    "bottleneck",
    "normal",
    summary="noise of variance 1; as a prior, the standard normal",
    paper="Kingma and Welling 2014, ICLR",
    command="molgraph train-generator dataset:chembl2321810 -m chemvae -s params.prior=normal -o generator.mgm",
)
class Normal(Bottleneck):
    """``z = h + epsilon``, and ``p(z) = N(0, 1)``."""

    is_prior = True


@register(
    "bottleneck",
    "gaussian",
    summary="a mean and a variance of each dimension",
    paper="Kingma and Welling 2014, ICLR",
)
class GaussianBottleneck(Bottleneck):
    """``z = mu(h) + sigma(h) epsilon`` at the price ``KL(N(mu, sigma^2) || p)``.

    Kingma and Welling 2014, "Auto-Encoding Variational Bayes". Beside a prior of ``unit_variance`` sigma is 1, as in
    the associative prior's paper: with a variance of its own a posterior can be as wide as the prior of a neighbour,
    and its code says nothing.
    """

    def __init__(self, d_in: int, d: int, prior: Bottleneck | None = None, n_rows: int = 0) -> None:
        super().__init__(d_in, d, prior, n_rows)
        self.linear = linear_moments(d_in, d, prior)

    def posterior(self, h: Float[Tensor, "n d_in"]) -> Gaussian:
        """Mean and variance of each row."""
        return split_moments(self.linear(h), self.d)


def linear_moments(d_in: int, d: int, prior: Bottleneck | None) -> nn.Linear:
    """The layer from states to means, and to log variances where the prior leaves those free."""
    return nn.Linear(d_in, d if prior is not None and prior.unit_variance else 2 * d)


def split_moments(raw: Float[Tensor, "n _"], d: int) -> Gaussian:
    """That layer's answer as a density.

    Example:
        >>> split_moments(torch.tensor([[1.0, 0.5]]), 1)
        Gaussian(mean=tensor([[1.]]), log_variance=tensor([[0.5000]]))
    """
    raw = raw.float()
    return Gaussian(raw, torch.zeros_like(raw)) if raw.shape[1] == d else Gaussian(raw[:, :d], bounded(raw[:, d:]))
