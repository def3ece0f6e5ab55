"""Influence of training rows on a validation loss, by the implicit gradient of a linear last layer."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F


def with_one(states: Float[Tensor, "n d"]) -> Float[Tensor, "n e"]:
    """States with a column of ones behind them, for the intercept; e = d + 1."""
    return F.pad(states, (0, 1), value=1.0)


def layer_gradient(x: Float[Tensor, "n e"], slopes: Float[Tensor, "n k"]) -> Float[Tensor, "k e"]:
    """``sum_i l'(r_i) x_i`` of each output: the gradient of a sum of losses ``l(r)`` of outputs ``r = W x``."""
    return slopes.T @ x


def layer_hessian(x: Float[Tensor, "n e"], curvatures: Float[Tensor, "n k"]) -> Float[Tensor, "k e e"]:
    """``sum_i l''(r_i) x_i x_i^T`` of each output, whose losses depend on no other output."""
    return torch.einsum("nk,nd,ne->kde", curvatures, x, x)


def implicit_gradient(
    valid: Float[Tensor, "k e"],
    hessian: Float[Tensor, "k e e"],
    x: Float[Tensor, "n e"],
    slopes: Float[Tensor, "n k"],
) -> Float[Tensor, "n k"]:
    """``-g_valid^T H^-1 l'(r_u) x_u``: how the validation loss changes with the weight of each row.

    Ren et al. 2020, "Not All Unlabeled Data are Equal", section 3, with H of the last layer alone. The layer minimises
    ``sum_i l_i + sum_u lambda_u l_u``, and a row of which this is positive is harmful.

    Args:
        valid: gradient of the validation loss (``layer_gradient``).
        hessian: of what the layer minimises, with its penalty.
        x: states of the rows, with a column of ones.
        slopes: derivatives of the rows' losses by the outputs.

    Example:
        >>> one = torch.ones(1, 1)
        >>> implicit_gradient(one, torch.tensor([[[2.0]]]), one, -one)  # its label pulls as validation does not
        tensor([[0.5000]])
    """
    return -(x @ torch.linalg.solve(hessian, valid[..., None])[..., 0].T) * slopes
