"""Big Bird: attention to near blocks, random blocks and global blocks, for long sequences in linear time."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.transformer import HeadCount, HeadStates, SelfAttention, Span, Transformer
from molgraph.nn.windows import in_blocks

DRAWS = 1024  # blocks of queries with random numbers of their own; then they come again
PARTS = 1 << 20  # a random number is a whole one of so many: no precision of the weights changes it


class BigBirdAttention(SelfAttention):
    """Each block of queries attends to ``window`` blocks around it, ``random`` others and the ``n_global`` first ones.

    Zaheer et al. 2020, "Big Bird", section 2 and appendix D, with tokens of the sequence as global ones (ITC): the
    tokens of the first ``n_global`` blocks attend to all and all attend to them. The random blocks are those of no
    window and not global; they are drawn once for each layer, and depend on a sequence's own length alone.

    Args:
        d, heads: as ``SelfAttention`` has them.
        block: tokens of a block.
        window: blocks around each, itself included, odd.
        random: random blocks.
        n_global: first blocks that all see.
        layer: number of the layer, which its random blocks depend on.
    """

    draws: Int[Tensor, "draws random"]

    def __init__(self, d: int, heads: int, block: int, window: int, random: int, n_global: int, layer: int) -> None:
        super().__init__(d, heads)
        self.block, self.side, self.n_global = block, window // 2, n_global
        draws = np.random.default_rng(layer).integers(PARTS, size=(DRAWS, random))
        self.register_buffer("draws", torch.from_numpy(draws), persistent=False)

    def attend(self, q: HeadStates, k: HeadStates, v: HeadStates, span: Span, state: Any) -> tuple[HeadStates, Any]:
        """What each head gives."""
        n, _, t, _ = q.shape
        mask = torch.ones(n, t, dtype=torch.bool, device=q.device) if span.mask is None else span.mask
        queries = in_blocks(q, self.block)
        index, free = self.blocks_of(-(-mask.sum(dim=1) // self.block), queries.shape[2])
        row = torch.arange(n, device=q.device)[:, None, None]
        k_seen, v_seen = (
            in_blocks(each, self.block).transpose(1, 2)[row, index].permute(0, 3, 1, 2, 4, 5).flatten(3, 4)
            for each in (k, v)
        )
        real = F.pad(mask, (0, -t % self.block)).unflatten(1, (-1, self.block))[row, index] & free.unsqueeze(3)
        out = F.scaled_dot_product_attention(queries, k_seen, v_seen, attn_mask=real.flatten(2)[:, None, :, None])
        out = out.flatten(2, 3)[:, :, :t]
        first = self.n_global * self.block
        whole = F.scaled_dot_product_attention(q[:, :, :first], k, v, attn_mask=mask[:, None, None])
        return torch.cat([whole, out[:, :, first:]], dim=2), None

    def blocks_of(self, counts: Int[Tensor, " n"], n_blocks: int) -> tuple[Int[Tensor, "n b c"], Bool[Tensor, "n b c"]]:
        """The blocks that each block sees, and which of them count: not those beyond the ends or there already.

        Args:
            counts: int64 [n], blocks of each sequence.
            n_blocks: of the longest.
        """
        at = torch.arange(n_blocks, device=counts.device)[:, None]
        near = at + torch.arange(-self.side, self.side + 1, device=at.device)
        shared = torch.arange(self.n_global, device=at.device).expand(n_blocks, -1)
        before = (at - self.side - self.n_global).clamp(min=0)  # blocks between the global ones and the window
        behind = (at + self.side + 1).clamp(min=self.n_global)  # the first block behind the window
        left = (before + (counts[:, None, None] - behind).clamp(min=0)).expand(-1, -1, self.draws.shape[1])
        rank = self.draws[at[:, 0] % DRAWS] * left // PARTS
        drawn = torch.where(rank < before, self.n_global + rank, behind + rank - before)
        again = (drawn.unsqueeze(3) == drawn.unsqueeze(2)).tril(-1).any(dim=3)
        free = torch.cat(
            [(near >= 0) & (near < n_blocks), (shared < at - self.side) | (shared > at + self.side)], dim=1
        )
        index = torch.cat([torch.cat([near, shared], dim=1).expand(len(counts), -1, -1), drawn], dim=2)
        free = torch.cat([free.expand(len(counts), -1, -1), (left > 0) & ~again], dim=2)
        return index.clamp(0, n_blocks - 1), free & (index < n_blocks)


@register(
    "sequence",
    "big_bird",
    systems=(
        SystemCard(
            "big-bird",
            left_out="global tokens beside those of the sequence (ETC); edges of a graph in the place of places",
            off="attention",
            beside=("big_bird(random=0, n_global=0)", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=big_bird",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows"),
        ),
    ),
    summary="attention to near, random and global blocks: time linear in the length; reads, and cannot write",
    paper="Zaheer et al. 2020, NeurIPS",
)
class BigBird(Transformer):
    """Attention of each block of tokens to a window of blocks, to random ones, and to the first ones, which see all.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        window: blocks around each one, itself included, odd.
        random: random blocks of each one.
        n_global: first blocks that all see and that see all.
        block: tokens of a block.
        heads: of an attention.

    Raises:
        BadValueError: an even window.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        window: Annotated[int, Range(1, 255)] = 3,
        random: Annotated[int, Range(0, 64)] = 3,
        n_global: Annotated[int, Range(0, 64)] = 2,
        block: Annotated[int, Range(1, 1024)] = 16,
        heads: HeadCount = 4,
    ) -> None:
        if window % 2 == 0:
            raise BadValueError(f"a window of {window} blocks has no middle", hint=f"choose {window + 1}")
        how = (d, heads, block, window, random, n_global)
        super().__init__(d_in, d, n_layers, dropout, lambda layer: BigBirdAttention(*how, layer))
