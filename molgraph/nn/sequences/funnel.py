"""Funnel transformer: a sequence is shortened in steps by pooled queries, and brought back to its length at the end."""

from __future__ import annotations

from typing import Annotated, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded
from molgraph.nn.transformer import FeedForward, HeadCount, SelfAttention, Span, TransformerBlock, rotate


def pooled(
    h: Float[Tensor, "n t d"], mask: Bool[Tensor, "n t"], size: int
) -> tuple[Float[Tensor, "n fewer d"], Bool[Tensor, "n fewer"]]:
    """Mean over the tokens of every ``size`` places, and which of these hold a token.

    Example:
        >>> h, mask = torch.tensor([[[1.0], [3.0], [5.0], [7.0]]]), torch.tensor([[True, True, True, False]])
        >>> pooled(h, mask, 2)[0].squeeze().tolist()
        [2.0, 5.0]
    """
    more = -h.shape[1] % size
    real = F.pad(mask, (0, more)).unflatten(1, (-1, size))
    states = F.pad(padded(h, mask), (0, 0, 0, more)).unflatten(1, (-1, size))
    return states.sum(dim=2) / real.sum(dim=2, keepdim=True).clamp(min=1), real.any(dim=2)


class FunnelBlock(TransformerBlock):
    """A transformer block whose queries may be pooled: ``h' + attention(Q = h', K = V = h)`` with ``h' = pool(h)``.

    Dai et al. 2020, "Funnel-Transformer", equation 2; with ``size`` 1 it is the plain block.

    Args:
        d, heads, dropout: as ``TransformerBlock`` and ``SelfAttention`` have them.
        size: places that one query is the mean of.
        step: tokens from one place of ``h`` to the next.
    """

    def __init__(self, d: int, heads: int, dropout: float, size: int, step: int) -> None:
        super().__init__(d, SelfAttention(d, heads), FeedForward(d), dropout)
        self.size, self.step = size, step

    def forward(
        self, h: Float[Tensor, "n t d"], span: Span, state: Any = None
    ) -> tuple[Float[Tensor, "n fewer d"], Any]:
        """float [n, t, d] to [n, t / size, d]; ``span`` is then that of the fewer places."""
        assert span.mask is not None
        mask = span.mask
        k, v = self.attention.keys_values(self.norms[0](h))
        k = rotate(k, self.step * torch.arange(h.shape[1], device=h.device))
        if self.size > 1:
            h, span.mask = pooled(h, mask, self.size)
        places = self.size * self.step * torch.arange(h.shape[1], device=h.device)
        q = rotate(self.attention.queries(self.norms[0](h)), places)
        read = F.scaled_dot_product_attention(q, k, v, attn_mask=mask[:, None, None])
        h = h + self.dropout(self.attention.joined(read))
        return h + self.dropout(self.feed_forward(self.norms[1](h), span)), None


@register(
    "sequence",
    "funnel",
    systems=(
        SystemCard(
            "funnel-transformer",
            left_out="layers of the decoder after up-sampling; pretraining; a first token that is not pooled",
            off="funnel(1)",
            beside=("attention",),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=funnel -s params.n_layers=2",
            modules=("molgraph.nn.transformer",),
        ),
    ),
    summary="attention that shortens the sequence in steps: half the work on long proteins; reads, and cannot write",
    paper="Dai et al. 2020, NeurIPS",
)
class Funnel(SequenceLayers):
    """Blocks of attention layers, each on ``size`` times fewer places than the one before.

    The first layer of a block pools its queries. The states of the last block are repeated to the full length and
    added to those of the first (section 2.3), so that each token has a state.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them; the layers are shared out among the blocks.
        size: places that become one.
        blocks: at most so many; there are no more than layers.
        heads: of an attention.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        size: Annotated[int, Range(1, 64)] = 2,
        blocks: Annotated[int, Range(2, 8)] = 3,
        heads: HeadCount = 4,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        number = [i * blocks // n_layers if n_layers > blocks else i for i in range(n_layers)]  # of each layer's block
        pools = [i > 0 and number[i] > number[i - 1] for i in range(n_layers)]
        self.n_first, self.enter, step = number.count(0), nn.Linear(d_in, d), 1
        self.layers = nn.ModuleList()
        for pool in pools:
            self.layers.append(FunnelBlock(d, heads, dropout, size if pool else 1, step))
            step *= size if pool else 1
        self.shrink, self.norm = step, nn.LayerNorm(d)

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], None]:
        """float [n, t, d_in] to [n, t, d]."""
        h = self.enter(x)
        span = Span(torch.ones(x.shape[:2], dtype=torch.bool, device=x.device) if mask is None else mask)
        for layer in self.layers[: self.n_first]:
            h, _ = layer(h, span)
        first = h
        for layer in self.layers[self.n_first :]:
            h, _ = layer(h, span)
        if self.n_first < len(self.layers):
            h = first + h.repeat_interleave(self.shrink, dim=1)[:, : x.shape[1]]
        return padded(self.norm(h), mask), None
