"""Bend Gaussian posteriors by additive coupling layers (NICE), whose inverse and density are exact."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.bottleneck import Bottleneck
from molgraph.nn.bottlenecks.flows import FlowBottleneck, Moved
from molgraph.nn.perceptron import Perceptron

WIDTH = 4  # hidden units of a coupling network for each dimension
TRAIN = "molgraph train-generator dataset:chembl2321810 -m chemvae"


class CouplingMap(nn.Module):
    """Two additive coupling layers: ``h_1 = x_1, h_2 = x_2 + m(x_1)``, then the same with the halves exchanged.

    Dinh, Krueger and Bengio 2014, "NICE: Non-linear Independent Components Estimation", section 3.2. The Jacobian is
    triangular with ones on its diagonal, so that ``log |det| = 0`` and the inverse is ``x_2 = h_2 - m(h_1)``.

    Args:
        d: dimensions; the halves are the even and the odd ones.
    """

    even: Bool[Tensor, " d"]

    def __init__(self, d: int) -> None:
        super().__init__()
        self.register_buffer("even", torch.arange(d) % 2 == 0, persistent=False)
        self.first, self.second = (Perceptron(d, WIDTH * d, d, n_layers=3, activation="silu") for _ in range(2))
        for weight in (*self.first.layers[-1].parameters(), *self.second.layers[-1].parameters()):
            nn.init.zeros_(weight)

    def forward(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after both layers."""
        z = z + shift(self.first, z, self.even)
        return Moved(z + shift(self.second, z, ~self.even), z.new_zeros(len(z)))

    def inverse(self, z: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
        """The points before both layers."""
        z = z - shift(self.second, z, ~self.even)
        return z - shift(self.first, z, self.even)


@register(
    "bottleneck",
    "coupling",
    summary="a Gaussian that additive coupling layers bend (NICE)",
    paper="Dinh et al. 2014, arXiv 1410.8516",
    command=f"{TRAIN} -s params.posterior=coupling -o generator.mgm",
    systems=(
        SystemCard(
            "nice",
            left_out="images; the logistic prior: points come from a Gaussian of each molecule",
            off="-s params.posterior=gaussian",
            beside=("posterior=gaussian", "posterior=planar"),
            command=f"{TRAIN} -s params.posterior=coupling -o generator.mgm",
            modules=("molgraph.nn.bottlenecks.flows", "molgraph.generate.vae_objective"),
        ),
    ),
)
class Coupling(FlowBottleneck):
    """Additive coupling layers (``CouplingMap``) and a last scaling ``S`` of each dimension, as in the paper.

    ``log q(z|h) = log q_0(f^-1(z)|h) - sum_d log |S_dd|``, of any z and not of the points alone that were drawn.

    Args:
        d_in, d, prior, n_rows: as ``Bottleneck`` has them.
        n_maps: pairs of coupling layers; the paper has four layers.
    """

    make_map = CouplingMap

    def __init__(
        self,
        d_in: int,
        d: int,
        prior: Bottleneck | None = None,
        n_rows: int = 0,
        n_maps: Annotated[int, Range(0, 64)] = 2,
    ) -> None:
        super().__init__(d_in, d, prior, n_rows, n_maps)
        self.log_scale = nn.Parameter(torch.zeros(d))

    def bend(self, z: Float[Tensor, "rows d"]) -> Moved:
        """The points after all layers and the scaling, and the sum of the log scales."""
        moved = super().bend(z)
        return Moved(moved.z * self.log_scale.exp(), moved.log_det + self.log_scale.sum())

    def inverse(self, z: Float[Tensor, "rows d"]) -> Float[Tensor, "rows d"]:
        """The points of the Gaussian that ``bend`` moves to z."""
        z = z * (-self.log_scale).exp()
        for each in reversed(self.maps):
            z = each.inverse(z)  # type: ignore[operator]
        return z

    def log_prob(self, h: Float[Tensor, "n d_in"], z: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """``log q(z|h)`` of any points."""
        return self.posterior(h).log_prob(self.inverse(z)) - self.log_scale.sum()


def shift(network: Perceptron, z: Float[Tensor, "rows d"], read: Bool[Tensor, " d"]) -> Float[Tensor, "rows d"]:
    """``m`` of the dimensions that are read, in the others; 0 in those."""
    return network(z * read) * ~read
