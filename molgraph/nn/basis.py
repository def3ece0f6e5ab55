"""Radial basis functions of distances, and the cutoff that they fade to."""

from __future__ import annotations

import math
from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.registry import register


class Basis(nn.Module):
    """The base class of bases: distances [p] to ``n`` functions of each, [p, n], smooth and finite at every distance.

    Args:
        start, stop: the distances between which the functions differ (angstrom).
        n: number of functions that is asked for; a basis whose settings say how many has another ``n``.
    """

    def __init__(self, start: float, stop: float, n: int) -> None:
        super().__init__()
        self.start, self.stop, self.n = start, stop, n

    @abstractmethod
    def forward(self, distance: Float[Tensor, " p"]) -> Float[Tensor, "p {self.n}"]:
        """float [p] to [p, n]."""


@register("basis", "gaussian", summary="Gaussians at equal steps", paper="Schuett et al. 2017, NeurIPS 30:991")
class GaussianBasis(Basis):
    """``exp(-gamma (d - mu_k)^2)`` with centres at equal steps; ``gamma = 1 / (2 step^2)``.

    Args:
        start, stop: first and last centre (angstrom).
        n: number of centres, 2 or more.

    Example:
        >>> GaussianBasis(0.0, 5.0, 6)(torch.tensor([2.0])).argmax().item()
        2
    """

    centres: Float[Tensor, " n"]

    def __init__(self, start: float, stop: float, n: int) -> None:
        super().__init__(start, stop, n)
        if n < 2:
            raise ValueError(f"a basis has at least 2 centres, got {n}")
        self.gamma = 0.5 / ((stop - start) / (n - 1)) ** 2
        self.register_buffer("centres", torch.linspace(start, stop, n), persistent=False)

    def forward(self, distance: Float[Tensor, " p"]) -> Float[Tensor, "p n"]:
        """float [p] to [p, n]."""
        return torch.exp(-self.gamma * (distance.unsqueeze(1) - self.centres).square())


def cosine_cutoff(distance: Float[Tensor, " p"], cutoff: float) -> Float[Tensor, " p"]:
    """``(cos(pi d / cutoff) + 1) / 2`` below the cutoff, 0 beyond: smooth in value and slope at the cutoff."""
    return 0.5 * (torch.cos(math.pi * distance / cutoff) + 1) * (distance < cutoff)


def safe_norm(x: Float[Tensor, ...], dim: int = 1) -> Float[Tensor, ...]:
    """The length of vectors along ``dim``, 1e-6 or more: gradients of any order are finite, and 0 at length 0.

    Example:
        >>> safe_norm(torch.tensor([[3.0, 4.0], [0.0, 0.0]])).tolist()
        [5.0, 9.999999974752427e-07]
    """
    return x.square().sum(dim).clamp(min=1e-12).sqrt()
