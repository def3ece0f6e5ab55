"""Convolution along a sequence at multiples of a period, such as the 3.6 residues of a helix."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded

Anchors = Sequence[float | int]
FARTHEST = 64  # tokens from a state that a layer sees


class HarmonicConvolution(nn.Module):
    """``y_t = b + sum_a sum_k K_a[k] x(t + k a)`` for k = -taps, ..., taps and the anchors a.

    Zhang et al. 2020, "Deep audio priors emerge from harmonic convolutional networks", section 3.1 (there along the
    frequencies of a spectrogram). Between two tokens x is interpolated linearly, beyond the ends it is 0. It is
    computed as one convolution, whose window is the kernels K_a laid out at their places; with the one anchor 1 it is
    ``torch.nn.Conv1d``.

    Args:
        d_in, d: widths.
        anchors: tokens between two places that a kernel sees.
        taps: places on each side.
    """

    spread: Float[Tensor, "a k w"]

    def __init__(self, d_in: int, d: int, anchors: Anchors, taps: int) -> None:
        super().__init__()
        away = torch.tensor([*map(float, anchors)])[:, None] * torch.arange(-taps, taps + 1)
        self.reach = math.ceil(max(anchors) * taps)
        places = torch.arange(-self.reach, self.reach + 1)
        self.register_buffer("spread", (1 - (away[..., None] - places).abs()).clamp(min=0), persistent=False)
        bound = (d_in * away.numel()) ** -0.5
        self.weight = nn.Parameter(torch.empty(d, d_in, *away.shape).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(d).uniform_(-bound, bound))

    def forward(self, x: Float[Tensor, "n t d_in"]) -> Float[Tensor, "n t d"]:
        """float [n, t, d_in] to [n, t, d]."""
        window = torch.einsum("oiak,akw->oiw", self.weight, self.spread)
        return nn.functional.conv1d(x.transpose(1, 2), window, self.bias, padding=self.reach).transpose(1, 2)


@register(
    "sequence",
    "harmonic",
    systems=(
        SystemCard(
            "harmonic-convolution",
            left_out="spectrograms and sound; separation by masks; a U-Net",
            off="harmonic([1])",
            beside=("convolution",),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=harmonic",
            modules=("molgraph.auxiliary.study.untrained_prior",),
        ),
    ),
    summary="windows at multiples of periods (3.6 and 2 residues: helix and strand); reads, and cannot write",
    paper="Zhang et al. 2020, ICLR",
)
class Harmonic(SequenceLayers):
    """``h_t = ReLU(sum_a sum_k K_a[k] h(t + k a))`` in each layer: residues of one side of a helix or strand.

    Use it for peptides, whose neighbours in space are 3.6 residues (helix) or 2 (strand) apart. On SMILES the anchors
    mean nothing.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        anchors: periods in tokens, which need not be whole: ``harmonic([3.6, 2])``.
        taps: multiples of a period on each side.

    Raises:
        BadValueError: no anchors, or one that is not above 0, or reaches further than 64 tokens.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        anchors: Anchors = (3.6, 2.0),
        taps: Annotated[int, Range(1, 32)] = 2,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        if not anchors or not all(0 < anchor * taps <= FARTHEST for anchor in anchors):
            words = f"anchors {[*anchors]} and {taps} taps"
            raise BadValueError(words, hint=f"anchors are above 0, and anchor x taps at most {FARTHEST} tokens")
        widths = (d_in, *[d] * n_layers)
        self.layers = nn.ModuleList(HarmonicConvolution(a, b, anchors, taps) for a, b in pairwise(widths))
        self.dropout = dropout

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], None]:
        """float [n, t, d_in] to [n, t, d]."""
        x = padded(x, mask)
        for i, layer in enumerate(self.layers):
            x = nn.functional.dropout(x, self.dropout, self.training and i > 0)
            x = padded(torch.relu(layer(x)), mask)
        return x, None
