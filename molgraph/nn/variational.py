"""Gaussian posteriors and the bounds on the evidence that variational autoencoders are trained and judged by."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import torch
from jaxtyping import Bool, Float
from torch import Tensor

LOG_VARIANCE = 20.0  # beyond it a variance or its inverse is nothing that single precision can work with


class Gaussian(NamedTuple):
    """Normal distributions with independent dimensions, one a row.

    Args:
        mean: their means.
        log_variance: the logarithms of their variances.
    """

    mean: Float[Tensor, "rows d"]
    log_variance: Float[Tensor, "rows d"]

    def draw(self, noise: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
        """A point of each, from standard normal noise; gradients flow to mean and variance."""
        return self.mean + (0.5 * self.log_variance).exp() * noise

    def log_prob(self, z: Float[Tensor, "rows d"]) -> Float[Tensor, " rows"]:
        """The logarithm of the density of a point of each."""
        square = (z - self.mean).square() * (-self.log_variance).exp()
        return -0.5 * (square + self.log_variance + math.log(2 * math.pi)).sum(dim=1)


class Bound(NamedTuple):
    """A lower bound on the log-likelihood of each row, and its two parts.

    Args:
        elbo: ``recon`` less the weighted divergence.
        recon: ``log p(x|z)``.
        kl: the divergence of each dimension, neither weighted nor bounded by free bits.
    """

    elbo: Float[Tensor, " rows"]
    recon: Float[Tensor, " rows"]
    kl: Float[Tensor, "rows d"]


def standard_normal(like: Float[Tensor, "rows d"]) -> Gaussian:
    """The standard normal distribution in as many rows and dimensions as another tensor has."""
    return Gaussian(torch.zeros_like(like), torch.zeros_like(like))


def reparameterise(
    mean: Float[Tensor, "rows d"],
    log_variance: Float[Tensor, "rows d"],
    noise: Float[Tensor, "rows d"] | None = None,
    generator: torch.Generator | None = None,
) -> Float[Tensor, "rows d"]:
    """Draw ``z = mu + sigma * epsilon``, through which gradients reach ``mu`` and ``sigma``.

    Kingma and Welling 2014, "Auto-Encoding Variational Bayes".

    Args:
        mean, log_variance: of a posterior for each row.
        noise: epsilon, standard normal; drawn where it is not given.
        generator: of the noise that is drawn; torch's own random numbers if not given.

    Example:
        >>> reparameterise(torch.ones(1, 2), torch.zeros(1, 2), noise=torch.tensor([[0.5, -1.0]]))
        tensor([[1.5000, 0.0000]])
    """
    if noise is None:
        noise = torch.randn(mean.shape, generator=generator, dtype=mean.dtype, device=mean.device)
    return Gaussian(mean, log_variance).draw(noise)


def gaussian_kl(q: Gaussian, p: Gaussian | None = None) -> Float[Tensor, "rows d"]:
    """The divergence ``KL(q || p)`` of each row and dimension, of the standard normal where no ``p`` is given.

    ``0.5 (log s_p^2 - log s_q^2 + (s_q^2 + (m_q - m_p)^2) / s_p^2 - 1)``.

    Example:
        >>> gaussian_kl(Gaussian(torch.tensor([[2.0, 0.0]]), torch.zeros(1, 2)))
        tensor([[2., 0.]])
    """
    if p is None:
        return 0.5 * (q.mean.square() + q.log_variance.exp() - 1 - q.log_variance)
    ratio = q.log_variance - p.log_variance
    return 0.5 * (ratio.exp() + (q.mean - p.mean).square() * (-p.log_variance).exp() - 1 - ratio)


def elbo(
    recon_logp: Float[Tensor, " rows"],
    q: Gaussian,
    p: Gaussian | None = None,
    beta: float = 1.0,
    free_bits: float = 0.0,
) -> Bound:
    """The evidence lower bound ``E_q[log p(x|z)] - beta KL(q(z|x) || p(z))`` of each row.

    Jordan et al. 1999; Kingma and Welling 2014. With ``beta = 1`` and no free bits it lies below ``log p(x)`` by
    ``KL(q(z|x) || p(z|x))``.

    Args:
        recon_logp: ``log p(x|z)`` at a point of the posterior.
        q: the posteriors.
        p: the priors, standard normal if not given.
        beta: weight of the divergence (Higgins et al. 2017).
        free_bits: nats of each dimension that cost nothing more when they are used: a dimension whose mean over the
            rows is below counts as this many (Kingma et al. 2016, "Improved Variational Inference with Inverse
            Autoregressive Flow").

    Example:
        >>> found = elbo(torch.tensor([-3.0]), Gaussian(torch.tensor([[2.0, 0.0]]), torch.zeros(1, 2)))
        >>> found.elbo, found.kl
        (tensor([-5.]), tensor([[2., 0.]]))
    """
    kl = gaussian_kl(q, p)
    return Bound(recon_logp - beta * beyond_free(kl, free_bits).sum(dim=1), recon_logp, kl)


def beyond_free(kl: Float[Tensor, "rows d"], free_bits: float) -> Float[Tensor, "rows d"]:
    """The divergence of each dimension, those whose mean over the rows is below ``free_bits`` counting as that many.

    Example:
        >>> beyond_free(torch.tensor([[0.1, 2.0]]), 0.5)
        tensor([[0.5000, 2.0000]])
    """
    return torch.where(kl.mean(dim=0) > free_bits, kl, free_bits) if free_bits > 0 else kl


def iwae(
    log_joint: Callable[[Float[Tensor, "rows d"]], Float[Tensor, " rows"]],
    q: Gaussian,
    k: int,
    generator: torch.Generator | None = None,
) -> Float[Tensor, " rows"]:
    """The importance-weighted bound ``log (1/k) sum_i p(x, z_i) / q(z_i|x)``, tighter the larger k is.

    Burda, Grosse and Salakhutdinov 2016, "Importance Weighted Autoencoders".

    Args:
        log_joint: ``z -> log p(x, z)`` of each row.
        q: the posteriors.
        k: points of each.
        generator: of the points; torch's own random numbers if not given.

    Raises:
        ValueError: fewer than one point.

    Example:
        >>> prior = standard_normal(torch.zeros(2, 3))
        >>> iwae(prior.log_prob, prior, 4)  # nothing is observed: log 1
        tensor([0., 0.])
    """
    if k < 1:
        raise ValueError(f"a bound needs at least one point of each posterior, got k={k}")
    weights = []
    for _ in range(k):
        z = reparameterise(q.mean, q.log_variance, generator=generator)
        weights.append(log_joint(z) - q.log_prob(z))
    return torch.stack(weights).logsumexp(dim=0) - math.log(k)


def active_units(mean: Float[Tensor, "rows d"], threshold: float = 0.01) -> Bool[Tensor, " d"]:
    """The dimensions whose posterior mean differs between rows: ``Var_x E[z|x] > threshold`` (Burda et al. 2016).

    Example:
        >>> active_units(torch.tensor([[0.0, 1.0], [0.0, -1.0]]))
        tensor([False,  True])
    """
    return mean.var(dim=0, correction=0) > threshold


def bounded(log_variance: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
    """A network's answer as the logarithm of a variance that single precision can work with.

    Example:
        >>> bounded(torch.tensor([[500.0, 1.0]]))
        tensor([[20.,  1.]])
    """
    return log_variance.clamp(-LOG_VARIANCE, LOG_VARIANCE)
