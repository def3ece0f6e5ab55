"""Sines and cosines of distances at doubling frequencies, and the distance alone to compare with."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.basis import Basis


@register(
    "basis",
    "fourier",
    systems=(
        SystemCard(
            "nerf",
            left_out="rays and rendering, colours and the direction of view, coarse and fine samples",
            off="distance",
            beside=("the distance alone", "gaussian"),
            command="molgraph train dataset:gdb7_3d -m schnet -s params.basis=fourier",
            modules=("molgraph.models.field",),
        ),
    ),
    summary="sines and cosines at doubling frequencies, for fields that oscillate",
    paper="Mildenhall et al. 2020, ECCV",
)
class FourierBasis(Basis):
    """``sin(2^k pi p), cos(2^k pi p)`` for k = 0, 1, ..., bands - 1, with ``p = (d - start) / (stop - start)``.

    Mildenhall et al. 2020, "NeRF: representing scenes as neural radiance fields for view synthesis", equation 4, of a
    distance in the place of a coordinate: a perceptron behind it can follow functions that change within
    ``(stop - start) / 2^bands``, and can overfit them as well.

    Args:
        start, stop: the distances between which it does not repeat itself.
        n: not read: there are twice as many functions as bands.
        bands: number of frequencies; the paper has 10 of positions, 4 of directions.
    """

    frequency: Float[Tensor, " bands"]

    def __init__(self, start: float, stop: float, n: int, bands: Annotated[int, Range(1, 20)] = 10) -> None:
        super().__init__(start, stop, 2 * bands)
        frequency = math.pi * 2.0 ** torch.arange(bands) / (stop - start)
        self.register_buffer("frequency", frequency, persistent=False)

    def forward(self, distance: Float[Tensor, " p"]) -> Float[Tensor, "p n"]:
        """float [p] to [p, 2 bands]."""
        phase = (distance.unsqueeze(1) - self.start) * self.frequency
        return torch.cat([phase.sin(), phase.cos()], dim=1)


@register("basis", "distance", summary="the distance itself, from 0 to 1: what other bases are compared with")
class RawDistance(Basis):
    """``(d - start) / (stop - start)``, one number.

    Args:
        start, stop: the distances that become 0 and 1.
        n: not read: there is one function.
    """

    def __init__(self, start: float, stop: float, n: int) -> None:
        super().__init__(start, stop, 1)

    def forward(self, distance: Float[Tensor, " p"]) -> Float[Tensor, "p 1"]:
        """float [p] to [p, 1]."""
        return (distance.unsqueeze(1) - self.start) / (self.stop - self.start)
