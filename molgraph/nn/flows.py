"""Normalizing flows: invertible maps, planar and radial, that bend a simple density into a richer one."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F


class Moved(NamedTuple):
    """Points after a flow.

    Args:
        z: the points.
        log_det: ``log |det df/dz|`` of each, by which their log density falls.
    """

    z: Float[Tensor, "rows d"]
    log_det: Float[Tensor, " rows"]


class Planar(nn.Module):
    """``f(z) = z + u tanh(w.z + b)``, with ``|det| = |1 + u.w tanh'(w.z + b)|``.

    Rezende and Mohamed 2015, "Variational Inference with Normalizing Flows", ICML. It is invertible for
    ``w.u >= -1``, to which ``u`` is brought along ``w`` as in the paper's appendix.

    Args:
        d: dimensions.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.w, self.u = nn.Parameter(torch.randn(d) * d**-0.5), nn.Parameter(torch.randn(d) * 0.1 * d**-0.5)
        self.b = nn.Parameter(torch.zeros(()))

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after one map."""
        overlap = self.w @ self.u
        u = self.u + (F.softplus(overlap) - 1 - overlap) * self.w / self.w.square().sum().clamp(min=1e-12)
        h = torch.tanh(z @ self.w + self.b)
        slope = (1 - h.square()) * (u @ self.w)
        return Moved(z + u * h[:, None], slope.clamp(min=-1 + 1e-6).log1p())


class Radial(nn.Module):
    """``f(z) = z + beta h (z - z_0)`` with ``h = 1 / (alpha + |z - z_0|)``: towards a point, or away from it.

    Rezende and Mohamed 2015; ``|det| = (1 + beta h)^(d-1) (1 + beta h - beta h^2 r)``. It is invertible for
    ``beta >= -alpha``, and so is every ``beta`` that it can have.

    Args:
        d: dimensions.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.centre = nn.Parameter(torch.randn(d) * 0.1)
        self.raw_alpha, self.raw_beta = nn.Parameter(torch.zeros(())), nn.Parameter(torch.zeros(()))

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after one map."""
        alpha = F.softplus(self.raw_alpha) + 1e-3
        beta = F.softplus(self.raw_beta) - alpha
        away = z - self.centre
        r = (away.square().sum(dim=1) + 1e-12).sqrt()
        h = 1 / (alpha + r)
        stretch = beta * h
        log_det = (z.shape[1] - 1) * stretch.log1p() + (stretch - stretch * h * r).log1p()
        return Moved(z + stretch[:, None] * away, log_det)


FLOWS: dict[str, type[Planar | Radial]] = {"planar": Planar, "radial": Radial}


class FlowPosterior(nn.Module):
    """Maps one after the other: ``log q_K(z_K) = log q_0(z_0) - sum_k log |det df_k/dz_(k-1)|``.

    Args:
        d: dimensions.
        n_maps: K; without any, points stay where they are.
        kind: ``planar`` or ``radial``.

    Example:
        >>> moved = FlowPosterior(3, 4, "radial")(torch.zeros(2, 3))
        >>> moved.z.shape, moved.log_det.shape
        (torch.Size([2, 3]), torch.Size([2]))
    """

    def __init__(self, d: int, n_maps: int, kind: str = "planar") -> None:
        super().__init__()
        self.maps = nn.ModuleList(FLOWS[kind](d) for _ in range(n_maps))

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after all maps, and the sum of their log determinants."""
        total = z.new_zeros(len(z))
        for each in self.maps:
            z, log_det = each(z)
            total = total + log_det
        return Moved(z, total)
