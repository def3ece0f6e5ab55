"""Plain self-attention: a transformer whose tokens see all others, or those before them."""

from __future__ import annotations

from molgraph.base.registry import register
from molgraph.nn.transformer import HeadCount, SelfAttention, Transformer


@register(
    "sequence",
    "attention",
    summary="a transformer: each token sees all others; in a generator those before it",
    paper="Vaswani et al. 2017, NeurIPS; Xiong et al. 2020, ICML (norms first); Su et al. 2021 (positions)",
)
class Attention(Transformer):
    """``h + W_o softmax(Q K^T / sqrt(e)) V``, then ``h + W_2 GELU(W_1 h)``, ``n_layers`` times, a norm before each.

    Time grows with the square of the length.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        heads: of an attention.
        causal: whether a token sees itself and those before it alone; the keys and values are then the state.
    """

    def __init__(
        self, d_in: int, d: int, n_layers: int, dropout: float, heads: HeadCount = 4, causal: bool = False
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout, lambda _: SelfAttention(d, heads, causal))
        self.causal = causal
