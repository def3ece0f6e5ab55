"""Convolutions along a sequence, each of whose states sees a window of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.nn.sequence import Mask, SequenceLayers, padded

Window = Annotated[int, Range(1, 64)]


class Convolutions(nn.ModuleList):
    """Convolutions of given widths with ReLU, of as many places as before; padding stays 0.

    Args:
        widths: of the tokens, then of each layer.
        window: tokens that a filter sees.
        dropout: probability of dropping a value between two layers while training.
    """

    def __init__(self, widths: Sequence[int], window: int, dropout: float = 0.0) -> None:
        super().__init__(nn.Conv1d(a, b, window, padding=window // 2) for a, b in pairwise(widths))
        self.dropout = dropout

    def forward(self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None) -> Float[Tensor, "n t d"]:
        """float [n, t, widths[0]] to [n, t, widths[-1]]."""
        x = padded(x, mask)
        for i, convolution in enumerate(self):
            x = nn.functional.dropout(x, self.dropout, self.training and i > 0)
            x = padded(torch.relu(convolution(x.transpose(1, 2))[..., : x.shape[1]]).transpose(1, 2), mask)
        return x


@register(
    "sequence",
    "convolution",
    summary="windows of tokens; reads, and cannot write",
    paper="Oeztuerk et al. 2018, Bioinformatics 34:i821",
)
class Convolution(SequenceLayers):
    """``h_t = ReLU(sum_k W_k h_(t+k))`` over a window around t, in each layer.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        window: tokens that a filter sees.
    """

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float, window: Window = 7) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.layers = Convolutions((d_in, *[d] * n_layers), window, dropout)

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], None]:
        """float [n, t, d_in] to [n, t, d]."""
        return self.layers(x, mask), None
