"""Barlow Twins: a loss of two views without negatives, by the correlation of their columns."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor


def barlow_twins(a: Float[Tensor, "n d"], b: Float[Tensor, "n d"], off_diagonal: float = 5e-3) -> Float[Tensor, ""]:
    """The correlation of the columns of two views is brought to the identity.

    Zbontar et al. 2021, "Barlow Twins", equation 1: ``sum_i (1 - C_ii)^2 + off_diagonal sum_{i != j} C_ij^2``, C being
    the correlation of column i of one view with column j of the other. Scalar, 0 where both views are equal and their
    columns uncorrelated.
    """
    with torch.autocast(a.device.type, enabled=False):
        a, b = (_standard(view.to(torch.promote_types(view.dtype, torch.float32))) for view in (a, b))
        c = a.T @ b / len(a)
        diagonal = c.diagonal()
        return (1 - diagonal).square().sum() + off_diagonal * (c.square().sum() - diagonal.square().sum())


def _standard(x: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
    x = x - x.mean(dim=0)
    return x / (x.square().mean(dim=0) + 1e-12).sqrt()
