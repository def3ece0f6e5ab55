"""Block-local attention: tokens see their block and a memory before it, for sequences of thousands of residues."""

from __future__ import annotations

from typing import Annotated, Any

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.transformer import HeadCount, HeadStates, SelfAttention, Span, Transformer
from molgraph.nn.windows import recent, window_attention, with_recent


class BlockAttention(SelfAttention):
    """Each block of queries attends to one memory block: its own places and ``memory`` places before it.

    Parmar et al. 2018, "Image Transformer", section 4.2.1, 1D local attention, with equation 1
    ``softmax(q_i M W_k^T / sqrt(e)) M W_v`` over the memory block M. Later tokens are masked.

    Args:
        d, heads: as ``SelfAttention`` has them.
        block: queries that share a memory block.
        memory: places before it.
        farthest: places back that a query sees at most; all of its memory block if not given.
    """

    def __init__(self, d: int, heads: int, block: int, memory: int, farthest: int | None = None) -> None:
        super().__init__(d, heads, causal=True)
        self.block, self.memory, self.farthest = block, memory, farthest

    def attend(self, q: HeadStates, k: HeadStates, v: HeadStates, span: Span, state: Any) -> tuple[HeadStates, Any]:
        """What each head gives, and the keys and values that later tokens see."""
        k, v = with_recent(state, k, v, self.memory)
        out = window_attention(q, k, v, span.start, self.block, self.memory, self.farthest)
        return out, recent(k, v, span.start + q.shape[2], self.block, self.memory)


@register(
    "sequence",
    "blocks",
    systems=(
        SystemCard(
            "image-transformer",
            left_out="images: two-dimensional neighbourhoods, and distributions of pixels",
            off="attention",
            beside=("attention",),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=blocks",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows"),
        ),
    ),
    summary="attention within blocks and to a memory before each: time linear in the length",
    paper="Parmar et al. 2018, ICML",
)
class Blocks(Transformer):
    """Attention of each token to those before it in its block and to the ``memory`` tokens before the block.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        block: tokens of a block.
        memory: tokens before it that it sees.
        heads: of an attention.
    """

    causal = True

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        block: Annotated[int, Range(1, 4096)] = 32,
        memory: Annotated[int, Range(0, 4096)] = 64,
        heads: HeadCount = 4,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout, lambda _: BlockAttention(d, heads, block, memory))
