"""Transformer layers over tokens: multi-head attention with rotary positions, feed-forward layers, pre-norm."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, TypeAlias

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.nn.penalties import Penalties
from molgraph.nn.sequence import Mask, SequenceLayers, padded

BASE = 10_000  # ratio of the longest to the shortest wavelength of positions
HeadCount: TypeAlias = Annotated[int, Range(1, 64)]
HeadStates: TypeAlias = Float[Tensor, "n heads t e"]


@dataclass
class Span:
    """The tokens of one pass.

    Args:
        mask: bool [n, t], which places are tokens; None where all are.
        start: tokens of the pieces before.
        penalties: where layers add scalars for the objective, by name; None where nobody wants them.
    """

    mask: Mask | None = None
    start: int = 0
    penalties: dict[str, Float[Tensor, ""]] | None = None

    def penalise(self, name: str, value: Float[Tensor, ""]) -> None:
        """Add a scalar to the penalty of a name."""
        if self.penalties is not None:
            self.penalties[name] = self.penalties[name] + value if name in self.penalties else value


def rotate(x: HeadStates, places: Int[Tensor, " t"]) -> HeadStates:
    """Channels e and e + d/2 turned by the angle ``place * 10000^(-2 e / d)``: products depend on distances alone.

    Su et al. 2021, "RoFormer", equation 15; the width d of a head is even.

    Example:
        >>> q, k = torch.randn(2, 1, 1, 1, 8)
        >>> near, far = ((rotate(q, torch.tensor([i + 3])) * rotate(k, torch.tensor([i]))).sum() for i in (0, 50))
        >>> torch.allclose(near, far, atol=1e-5)
        True
    """
    half, wide = x.shape[3] // 2, torch.promote_types(x.dtype, torch.float32)
    rates = BASE ** (-torch.arange(half, device=x.device, dtype=wide) / half)
    angle = places.to(wide)[:, None] * rates
    cos, sin = angle.cos().to(x.dtype), angle.sin().to(x.dtype)
    a, b = x.chunk(2, dim=3)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=3)


class SelfAttention(nn.Module):
    """``W_o [head_1, ..., head_h]`` with ``head = softmax(Q K^T / sqrt(e)) V``: Vaswani et al. 2017, section 3.2.

    Queries and keys have rotary positions. A subclass that changes which keys a query sees writes ``attend``.

    Args:
        d: width of a token's state.
        heads: each of width ``d / heads``, rounded up to an even number.
        causal: whether a token sees itself and those before it alone.
    """

    def __init__(self, d: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        self.heads, self.width, self.causal = heads, 2 * -(-d // (2 * heads)), causal
        self.q = nn.Linear(d, heads * self.width, bias=False)
        self.kv = nn.Linear(d, 2 * heads * self.width, bias=False)
        self.out = nn.Linear(heads * self.width, d)

    def queries(self, h: Float[Tensor, "n t d"]) -> HeadStates:
        """float [n, t, d] to [n, heads, t, e]."""
        return self.q(h).unflatten(2, (self.heads, -1)).transpose(1, 2)

    def keys_values(self, h: Float[Tensor, "n t d"]) -> tuple[HeadStates, HeadStates]:
        """float [n, t, d] to [n, heads, t, e], twice."""
        k, v = self.kv(h).unflatten(2, (2, self.heads, -1)).permute(2, 0, 3, 1, 4)
        return k, v

    def joined(self, heads: HeadStates) -> Float[Tensor, "n t d"]:
        """float [n, heads, t, e] to [n, t, d]."""
        return self.out(heads.transpose(1, 2).flatten(2))

    def forward(self, h: Float[Tensor, "n t d"], span: Span, state: Any = None) -> tuple[Float[Tensor, "n t d"], Any]:
        """float [n, t, d] to the same shape, and the state to go on from."""
        places = torch.arange(span.start, span.start + h.shape[1], device=h.device)
        k, v = self.keys_values(h)
        out, state = self.attend(rotate(self.queries(h), places), rotate(k, places), v, span, state)
        return self.joined(out), state

    def attend(self, q: HeadStates, k: HeadStates, v: HeadStates, span: Span, state: Any) -> tuple[HeadStates, Any]:
        """What each head gives, and the state: the keys and values so far."""
        if not self.causal:
            mask = None if span.mask is None else span.mask[:, None, None]
            return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), None
        if state is None:
            return F.scaled_dot_product_attention(q, k, v, is_causal=True), (k, v)
        k, v = torch.cat([state[0], k], dim=2), torch.cat([state[1], v], dim=2)
        t, seen = q.shape[2], k.shape[2]
        mask = torch.ones(t, seen, dtype=torch.bool, device=q.device).tril(seen - t)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask), (k, v)


class FeedForward(nn.Module):
    """``W_2 GELU(W_1 h)`` of four times the width."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, h: Float[Tensor, "n t d"], span: Span) -> Float[Tensor, "n t d"]:
        """float [n, t, d] to the same shape."""
        return self.layers(h)


class TransformerBlock(nn.Module):
    """``h + attention(norm(h))``, then ``h + feed_forward(norm(h))``.

    Args:
        d: width of a token's state.
        attention, feed_forward: the two parts.
        dropout: probability of dropping a value of what either adds, while training.
    """

    attention: SelfAttention

    def __init__(self, d: int, attention: SelfAttention, feed_forward: nn.Module, dropout: float) -> None:
        super().__init__()
        self.attention, self.feed_forward = attention, feed_forward
        self.norms, self.dropout = nn.ModuleList(nn.LayerNorm(d) for _ in range(2)), nn.Dropout(dropout)

    def forward(self, h: Float[Tensor, "n t d"], span: Span, state: Any = None) -> tuple[Float[Tensor, "n t d"], Any]:
        """float [n, t, d] to the same shape, and the attention's state."""
        added, state = self.attention(self.norms[0](h), span, state)
        h = h + self.dropout(added)
        return h + self.dropout(self.feed_forward(self.norms[1](h), span)), state


class Transformer(SequenceLayers):
    """``n_layers`` blocks on ``W x``, and a norm: the base class of sequence layers that attend.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        attention: makes that of a layer, from its number.
        feed_forward: makes that of each layer; two linear layers if not given.
    """

    def __init__(
        self,
        d_in: int,
        d: int,
        n_layers: int,
        dropout: float,
        attention: Callable[[int], SelfAttention],
        feed_forward: Callable[[], nn.Module] | None = None,
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.enter = nn.Linear(d_in, d)
        self.blocks = nn.ModuleList(
            TransformerBlock(d, attention(i), feed_forward() if feed_forward else FeedForward(d), dropout)
            for i in range(n_layers)
        )
        self.norm = nn.LayerNorm(d)

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Any = None
    ) -> tuple[Float[Tensor, "n t d"], Any]:
        """float [n, t, d_in] to [n, t, d], and the number of tokens so far with the state of each layer."""
        start, states = (0, [None] * len(self.blocks)) if state is None else state
        return self._through(x, Span(mask, start), states)

    def penalised(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None
    ) -> tuple[Float[Tensor, "n t d"], Penalties]:
        """The states, and the penalties of the layers."""
        penalties: dict[str, Float[Tensor, ""]] = {}
        h, _ = self._through(x, Span(mask, 0, penalties), [None] * len(self.blocks))
        return h, penalties

    def rows(self, state: Any, index: Int[Tensor, " m"]) -> Any:
        """The state of some sequences alone; all have the same number of tokens."""
        return state if isinstance(state, int) else super().rows(state, index)

    def _through(self, x: Tensor, span: Span, states: Any) -> tuple[Tensor, Any]:
        h, after = self.enter(x), []
        for block, state in zip(self.blocks, states, strict=True):
            h, state = block(h, span, state)
            after.append(state)
        return padded(self.norm(h), span.mask), (span.start + x.shape[1], after) if self.causal else None
