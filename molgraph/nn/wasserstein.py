"""Wasserstein predictive coding: InfoNCE with a penalty that keeps the score of two vectors 1-Lipschitz."""

from __future__ import annotations

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor


def gradient_penalty(
    score: Callable[[Tensor, Tensor], Tensor],
    x: Float[Tensor, "n d"],
    y: Float[Tensor, "n d_y"],
    share: Float[Tensor, "n 1"],
) -> Float[Tensor, ""]:
    """How far the gradients of the score are from length 1.

    Ozair et al. 2019, "Wasserstein Dependency Measure for Representation Learning": the mean of
    ``(|grad f(x, y)| - 1)^2`` at points between the pairs ``(x_i, y_i)`` and pairs of the marginals, here
    ``(x_i, y_(i+1))``; the gradient is with respect to both vectors.

    Args:
        score: of n pairs, float [n].
        x, y: pairs, the values of which alone are read.
        share: float [n, 1], of the way from one to the other, 0 to 1.
    """
    x = x.detach().requires_grad_()
    y = (y.detach() * (1 - share) + y.detach().roll(-1, 0) * share).requires_grad_()
    with torch.enable_grad():
        gradients = torch.autograd.grad(score(x, y).sum(), [x, y], create_graph=True)
    norm = torch.cat(gradients, dim=1).square().sum(dim=1).add(1e-12).sqrt()
    return (norm - 1).square().mean()
