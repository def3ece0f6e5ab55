"""Apply a linear layer with separate weights for each node degree."""

from __future__ import annotations

import math

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F


class LinearByDegree(nn.Module):
    """``y_v = W^deg(v) x_v + b^deg(v)``, Duvenaud et al. 2015, algorithm 2.

    Args:
        d_in, d_out: widths.
        max_degree: rows with more neighbours have the weights of this number.

    Example:
        >>> layer = LinearByDegree(4, 2, max_degree=3)
        >>> layer(torch.zeros(3, 4), torch.tensor([0, 7, 1])).shape
        torch.Size([3, 2])
    """

    def __init__(self, d_in: int, d_out: int, max_degree: int = 10) -> None:
        super().__init__()
        bound = 1 / math.sqrt(d_in)
        self.weight = nn.Parameter(torch.empty(max_degree + 1, d_out, d_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(max_degree + 1, d_out).uniform_(-bound, bound))

    def forward(self, x: Float[Tensor, "n d_in"], degree: Int[Tensor, " n"]) -> Float[Tensor, "n d_out"]:
        """float [n, d_in] and the number of neighbours of each row, int64 [n], to [n, d_out]."""
        degree = degree.clamp(max=len(self.weight) - 1)
        order = torch.argsort(degree, stable=True)
        sizes = torch.bincount(degree, minlength=len(self.weight)).tolist()
        parts = zip(x.index_select(0, order).split(sizes), self.weight, self.bias, strict=True)
        out = torch.cat([F.linear(part, weight, bias) for part, weight, bias in parts])
        return out.index_select(0, torch.argsort(order))
