"""Compute the negative log likelihood of normal values of which some are known as limits alone (Tobit)."""

from __future__ import annotations

from math import log, pi

import torch
from jaxtyping import Float
from torch import Tensor

HALF_LOG_2PI = 0.5 * log(2 * pi)


def censored_normal_loss(
    mean: Float[Tensor, "*n"], log_sigma: Float[Tensor, "*n"], low: Float[Tensor, "*n"], high: Float[Tensor, "*n"]
) -> Float[Tensor, "*n"]:
    """``-log p(low <= y <= high)`` for ``y ~ N(mean, sigma^2)``; ``-log p(y)`` where both ends are one value.

    Tobin 1958 (Econometrica 26) for one side, Amemiya 1984 (J. Econometrics 24) for both. With
    ``z = (bound - mean) / sigma``: ``z^2 / 2 + log sigma + log(2 pi) / 2`` of a value, ``-log Phi(-z)`` above a limit,
    ``-log Phi(z)`` below one, ``-log(Phi(z_high) - Phi(z_low))`` between two.

    Args:
        mean, log_sigma: [...], on the scale of the bounds.
        low, high: [...], ``low <= high``; minus or plus infinity for an open end.

    Returns:
        [...] of the type of ``mean``; its gradient is finite wherever a bound is.

    Example:
        >>> import torch
        >>> zero, inf = torch.zeros(3), float("inf")
        >>> censored_normal_loss(zero, zero, torch.tensor([0.0, 0.0, -inf]), torch.tensor([0.0, inf, 0.0]))
        tensor([0.9189, 0.6931, 0.6931])
    """
    exact, above, below = low == high, torch.isinf(high), torch.isinf(low)
    here = mean.detach()  # stands where a bound is open: no infinity comes near the gradient
    sigma = log_sigma.exp()
    z_low, z_high = (torch.where(far, here, bound) for far, bound in ((below, low), (above, high)))
    z_low, z_high = (z_low - mean) / sigma, (z_high - mean) / sigma
    value = 0.5 * z_low.square() + log_sigma + HALF_LOG_2PI
    one_side = -torch.special.log_ndtr(torch.where(above, -z_low, z_high))
    between = ~(exact | above | below)
    flip = z_low + z_high > 0  # above the mean the mirror image is taken: no 1 - 1
    left = torch.where(between, torch.where(flip, -z_high, z_low), -1.0)
    right = torch.where(between, torch.where(flip, -z_low, z_high), 1.0)
    upper, lower = torch.special.log_ndtr(right), torch.special.log_ndtr(left)
    inside = -(upper + torch.log1p(-(lower - upper).exp()))
    return torch.where(exact, value, torch.where(between, inside, one_side))
