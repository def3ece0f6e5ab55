"""Sparse transformers: attention in two factors, near tokens and tokens a stride apart, for long sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import torch
from torch.nn import functional as F

from molgraph.base.errors import BadValueError
from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequences.blocks import BlockAttention
from molgraph.nn.transformer import HeadCount, HeadStates, SelfAttention, Span, Transformer
from molgraph.nn.windows import in_blocks, with_recent

Stride = Annotated[int, Range(2, 4096)]


class ColumnAttention(SelfAttention):
    """``A2 = {j: (i - j) mod l = 0}`` of the strided pattern: causal attention along each column of rows of l places.

    Args:
        d, heads: as ``SelfAttention`` has them.
        stride: l.
    """

    def __init__(self, d: int, heads: int, stride: int) -> None:
        super().__init__(d, heads, causal=True)
        self.stride = stride

    def attend(self, q: HeadStates, k: HeadStates, v: HeadStates, span: Span, state: Any) -> tuple[HeadStates, Any]:
        """What each head gives, and the keys and values so far."""
        pair, lead = with_recent(state, k, v, 0), span.start % self.stride
        across = in_blocks(q, self.stride, lead).transpose(2, 3)  # [n, heads, column, row, e]
        k, v = (in_blocks(each, self.stride).transpose(2, 3) for each in pair)
        rows, all_rows = across.shape[3], k.shape[3]
        seen = torch.ones(rows, all_rows, dtype=torch.bool, device=q.device).tril(all_rows - rows)
        out = F.scaled_dot_product_attention(across, k, v, attn_mask=seen).transpose(2, 3).flatten(2, 3)
        return out[:, :, lead : lead + q.shape[2]], pair


class SummaryAttention(SelfAttention):
    """``A2 = {j: j mod l >= l - c}`` of the fixed pattern: the last c places of every block, up to the query.

    A token with none of them before it gets zeros.

    Args:
        d, heads: as ``SelfAttention`` has them.
        stride: l, places of a block.
        summary: c.
    """

    def __init__(self, d: int, heads: int, stride: int, summary: int) -> None:
        super().__init__(d, heads, causal=True)
        self.stride, self.summary = stride, summary

    def attend(self, q: HeadStates, k: HeadStates, v: HeadStates, span: Span, state: Any) -> tuple[HeadStates, Any]:
        """What each head gives, and the keys and values of the summaries so far."""
        places = torch.arange(span.start + q.shape[2], device=q.device)
        is_summary = places % self.stride >= self.stride - self.summary
        new = is_summary[span.start :].nonzero()[:, 0]
        k, v = with_recent(state, k.index_select(2, new), v.index_select(2, new), 0)
        seen = places[is_summary] <= places[span.start :, None]
        if not seen.shape[1]:
            return 0 * q + (k.sum() + v.sum()), (k, v)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=seen), (k, v)


class SparseTransformer(Transformer):
    """Layers with the first factor and layers with the second in turn.

    Child et al. 2019, "Generating Long Sequences with Sparse Transformers", section 4.3 and equation 7.

    In two layers each token sees all before it, at ``n (l + n / l)`` products in the place of ``n^2``.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        first, second: make the attention of either.
    """

    causal = True

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        first: Callable[[], SelfAttention],
        second: Callable[[], SelfAttention],
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout, lambda i: second() if i % 2 else first())


@register(
    "sequence",
    "strided",
    systems=(
        SystemCard(
            "sparse-transformer",
            left_out="recomputation of attention, kernels for blocks, initialisation by depth",
            off="attention",
            beside=("blocks", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=strided",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows"),
        ),
    ),
    summary="attention to near tokens and, in every other layer, to tokens a stride apart",
    paper="Child et al. 2019, arXiv:1904.10509",
)
class Strided(SparseTransformer):
    """``i - l <= j <= i`` in the first layer, ``(i - j) mod l = 0`` in the second, and so on.

    Use it where places at a fixed distance have to do with each other. A stride near the square root of the length
    costs least.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        stride: l, in tokens.
        heads: of an attention.
    """

    def __init__(
        self, d_in: int, d: int, n_layers: int, dropout: float, stride: Stride = 32, heads: HeadCount = 4
    ) -> None:
        parts = (
            lambda: BlockAttention(d, heads, stride, stride, farthest=stride),
            lambda: ColumnAttention(d, heads, stride),
        )
        super().__init__(d_in, d, n_layers, dropout, *parts)


@register(
    "sequence",
    "fixed",
    systems=(
        SystemCard(
            "sparse-transformer",
            left_out="recomputation of attention, kernels for blocks, initialisation by depth",
            off="attention",
            beside=("blocks", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=fixed",
            modules=("molgraph.nn.transformer", "molgraph.nn.windows"),
        ),
    ),
    summary="attention within blocks and, in every other layer, to the last tokens of each block",
    paper="Child et al. 2019, arXiv:1904.10509",
)
class Fixed(SparseTransformer):
    """``floor(j / l) = floor(i / l)`` in the first layer, ``j mod l >= l - c`` in the second, and so on.

    Use it for text such as SMILES and proteins, in which a fixed distance means nothing.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        stride: l, tokens of a block.
        summary: c, its last tokens, which all later ones see.
        heads: of an attention.

    Raises:
        BadValueError: a summary that is longer than the block.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        stride: Stride = 32,
        summary: Annotated[int, Range(1, 4096)] = 4,
        heads: HeadCount = 4,
    ) -> None:
        if summary > stride:
            raise BadValueError(f"a summary of {summary} tokens in blocks of {stride}", hint=f"choose 1 to {stride}")
        parts = (lambda: BlockAttention(d, heads, stride, 0), lambda: SummaryAttention(d, heads, stride, summary))
        super().__init__(d_in, d, n_layers, dropout, *parts)
