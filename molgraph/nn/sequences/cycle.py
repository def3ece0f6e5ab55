"""Cycle layers: a linear layer each of whose channels reads a neighbouring token, in a fixed cycle of offsets."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded

Step = Annotated[int, Range(1, 64)]


class CycleLinear(nn.Linear):
    """``y_t = sum_c W_c x_(t + (c mod S) - floor(S / 2), c) + b``, with 0 beyond the ends.

    Chen et al. 2022, equation 2, along one axis: as many weights as ``torch.nn.Linear``, which it is where S is 1.

    Args:
        d_in, d: widths.
        step: S, offsets of the cycle.
    """

    def __init__(self, d_in: int, d: int, step: int) -> None:
        super().__init__(d_in, d)
        self.step = step

    def forward(self, x: Float[Tensor, "n t d_in"]) -> Float[Tensor, "n t d"]:
        """float [n, t, d_in] to [n, t, d]."""
        before = self.step // 2
        wide, moved = F.pad(x, (0, 0, before, self.step - 1 - before)), torch.empty_like(x)
        for offset in range(min(self.step, x.shape[2])):
            moved[..., offset :: self.step] = wide[:, offset : offset + x.shape[1], offset :: self.step]
        return super().forward(moved)


@register(
    "sequence",
    "cycle",
    systems=(
        SystemCard(
            "cyclemlp",
            left_out="images: two axes, three branches with weights between them, patches and stages",
            off="cycle(step=1)",
            beside=("convolution",),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=cycle",
        ),
    ),
    summary="linear layers whose channels read neighbouring tokens; reads, and cannot write",
    paper="Chen et al. 2022, ICLR",
)
class Cycle(SequenceLayers):
    """``h + cycle(norm(h))``, then ``h + W_2 GELU(W_1 norm(h))``, ``n_layers`` times, from ``W x``.

    Chen et al. 2022, "CycleMLP: A MLP-like Architecture for Dense Prediction". A layer sees ``step`` tokens around each
    at the price of a linear layer.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        step: tokens around each that a layer sees, all of them where there are as many channels.
    """

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float, step: Step = 7) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.enter = nn.Linear(d_in, d)
        self.norms = nn.ModuleList(nn.LayerNorm(d) for _ in range(n_layers))
        self.cycles = nn.ModuleList(CycleLinear(d, d, step) for _ in range(n_layers))
        self.mixes = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Dropout(dropout), nn.Linear(4 * d, d))
            for _ in range(n_layers)
        )

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], None]:
        """float [n, t, d_in] to [n, t, d]."""
        h = self.enter(x)
        for norm, cycle, mix in zip(self.norms, self.cycles, self.mixes, strict=True):
            h = h + cycle(padded(norm(h), mask))
            h = h + mix(h)
        return padded(h, mask), None
