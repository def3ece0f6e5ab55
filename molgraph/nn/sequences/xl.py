"""Transformer-XL: attention that remembers the segment before, with relative positions in four terms."""

from __future__ import annotations

import math
from typing import Annotated, Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.transformer import BASE, HeadCount, SelfAttention, Span, Transformer
from molgraph.nn.windows import in_blocks, places_of, windows

Segment = Annotated[int, Range(1, 4096)]


def sinusoids(n: int, d: int, device: torch.device) -> Float[Tensor, "n even"]:
    """float32 [n, d or d + 1]: sine and cosine of the distances 0 to n - 1, at wavelengths from 2 pi to 20,000 pi."""
    half = -(-d // 2)
    angle = torch.arange(n, device=device)[:, None] * BASE ** (-torch.arange(half, device=device) / half)
    return torch.cat([angle.sin(), angle.cos()], dim=1)


class RelativeAttention(SelfAttention):
    """Attention of a segment to itself and to the states of the ``memory`` tokens before it, without their gradients.

    Dai et al. 2019, "Transformer-XL", section 3.3: the score of query i and key j is
    ``A_ij = (q_i . k_j + q_i . W_R R_(i-j) + u . k_j + v . W_R R_(i-j)) / sqrt(e)``, R sinusoids of the distance, u and
    v learned by each head. Keys of the memory are ``W_k SG(h)`` (section 3.2). All segments of a layer are computed
    at once: they read the states of the layer below alone.

    Args:
        d, heads: as ``SelfAttention`` has them.
        segment: tokens of a segment; segments begin at its multiples.
        memory: tokens before a segment that are remembered.
    """

    def __init__(self, d: int, heads: int, segment: int, memory: int) -> None:
        super().__init__(d, heads, causal=True)
        self.segment, self.memory, self.d = segment, memory, d
        self.relative = nn.Linear(2 * -(-d // 2), heads * self.width, bias=False)
        self.u, self.v = (nn.Parameter(torch.randn(heads, 1, 1, self.width) * 0.02) for _ in range(2))

    def forward(
        self, h: Float[Tensor, "n t d"], span: Span, state: Float[Tensor, "n kept d"] | None = None
    ) -> tuple[Float[Tensor, "n t d"], Any]:
        """float [n, t, d] to the same shape, and the states that later tokens see."""
        lead, t = span.start % self.segment, h.shape[1]
        past = self.remembered(h, state)
        pairs = zip(self.keys_values(h), self.keys_values(past), strict=True)
        k, v = (self.memory_and_segment(live, before, lead) for live, before in pairs)
        q = in_blocks(self.queries(h), self.segment, lead)
        at, of = places_of(span.start, q.shape[2], self.segment, self.memory, h.device)
        out = self.scored(q, k, v, (of <= at) & (of >= 0))
        kept = self.memory + (span.start + t) % self.segment
        return self.joined(out.flatten(2, 3)[:, :, lead : lead + t]), past[:, past.shape[1] - kept :]

    def remembered(
        self, h: Float[Tensor, "n t d"], state: Float[Tensor, "n kept d"] | None
    ) -> Float[Tensor, "n more d"]:
        """The states without gradients behind those that are kept, zeros at the start."""
        h = h.detach()
        return F.pad(h, (0, 0, self.memory, 0)) if state is None else torch.cat([state.to(h.dtype), h], dim=1)

    def memory_and_segment(
        self, live: Float[Tensor, "n heads t e"], before: Float[Tensor, "n heads more e"], lead: int
    ) -> Float[Tensor, "n heads b w e"]:
        """Keys or values of each segment: its memory, then its own, ``lead`` of which came in earlier pieces."""
        memory, segment = self.memory, self.segment
        own = in_blocks(torch.cat([before[:, :, memory : memory + lead], live], dim=2), segment)
        return torch.cat([windows(before, segment, memory + segment)[:, :, :, :memory], own], dim=3)

    def scored(
        self,
        q: Float[Tensor, "n heads b s e"],
        k: Float[Tensor, "n heads b w e"],
        v: Float[Tensor, "n heads b w e"],
        seen: Bool[Tensor, "b s w"],
    ) -> Float[Tensor, "n heads b s e"]:
        """Attention of each segment to its window, whose last places are the segment's own."""
        s, w = seen.shape[1:]
        r = self.relative(sinusoids(w, self.d, q.device).to(q.dtype)).unflatten(1, (self.heads, -1))
        by_distance = torch.einsum("nhbse,whe->nhbsw", q + self.v.to(q.dtype), r) / math.sqrt(q.shape[4])
        steps = torch.arange(w, device=q.device)
        distance = (steps[w - s :, None] - steps).clamp(min=0).expand_as(by_distance)
        bias = by_distance.gather(4, distance).masked_fill(~seen, -torch.inf)
        return F.scaled_dot_product_attention(q + self.u.to(q.dtype), k, v, attn_mask=bias.to(q.dtype))


@register(
    "sequence",
    "xl",
    systems=(
        SystemCard(
            "transformer-xl",
            left_out="adaptive softmax; distances in a graph in the place of those in a sequence",
            off="attention",
            beside=("memory=0", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=xl",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows"),
        ),
    ),
    summary="Transformer-XL: segments, each with the memory of the one before, and relative positions",
    paper="Dai et al. 2019, ACL",
)
class TransformerXL(Transformer):
    """Attention within segments and to a memory of the tokens before, with ``A_ij`` in four terms.

    A token of layer l depends on those up to ``l * memory`` tokens before its segment. Time is linear in the length.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        segment: tokens of a segment.
        memory: tokens before a segment that each layer remembers.
        heads: of an attention.
    """

    causal = True

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        segment: Segment = 64,
        memory: Annotated[int, Range(0, 4096)] = 64,
        heads: HeadCount = 4,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout, lambda _: RelativeAttention(d, heads, segment, memory))
