"""Lightweight and dynamic convolutions: each token mixes the tokens before it by a softmax-normalised kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypeAlias

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded

Kernel = Annotated[int, Range(1, 512)]
Heads = Annotated[int, Range(1, 64)]
Tokens: TypeAlias = Float[Tensor, "n k1 inner"]  # the last k - 1 of each sequence


class KernelConvolution(nn.Module):
    """``o_(t,c) = sum_j softmax_j(w_(t,h))_j x_(t-k+1+j, c)``, j = 0 to k - 1, for the head h of the channel c.

    Wu et al. 2019, equations 3 and 4, in the form of a decoder, which sees no later token. Dynamic: the kernel's logits
    are ``w_t = W^Q x_t``, predicted from the token itself; lightweight: they are one parameter for all tokens. Places
    before the first token are 0. While training, entries of the kernels are dropped (DropConnect, section 3).

    Args:
        d: channels, a multiple of ``heads``.
        k: tokens that a kernel sees, its own among them.
        heads: kernels, each shared by d / heads channels.
        dropout: probability of dropping an entry of a kernel while training.
        dynamic: whether kernels depend on the token.
    """

    def __init__(self, d: int, k: int, heads: int, dropout: float, *, dynamic: bool) -> None:
        super().__init__()
        self.k, self.heads, self.dropout = k, heads, dropout
        self.query = nn.Linear(d, heads * k, bias=False) if dynamic else None
        self.logits = None if dynamic else nn.Parameter(torch.randn(heads, k) / k**0.5)

    def kernels(self, x: Float[Tensor, "n t d"]) -> Float[Tensor, "n t h k"]:
        """float [n, t, heads, k], of rows that sum to 1."""
        if self.query is not None:
            return self.query(x).unflatten(2, (self.heads, self.k)).softmax(dim=3)
        assert self.logits is not None
        return self.logits.softmax(dim=1).expand(*x.shape[:2], -1, -1)

    def forward(
        self, x: Float[Tensor, "n t d"], before: Float[Tensor, "n k1 d"] | None = None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n k1 d"]]:
        """float [n, t, d] to the same shape, and the last k - 1 tokens, which the next piece goes on from."""
        before = x.new_zeros(len(x), self.k - 1, x.shape[2]) if before is None else before
        wide = torch.cat([before, x], dim=1)
        kernels = F.dropout(self.kernels(x), self.dropout, self.training)
        heads, t = wide.unflatten(2, (self.heads, -1)), x.shape[1]  # [n, k - 1 + t, heads, channels]
        total = torch.zeros_like(heads[:, :t])
        for j in range(self.k):
            total = total + kernels[..., j : j + 1] * heads[:, j : j + t]
        return total.flatten(2), wide[:, t:]


@register(
    "sequence",
    "dynamic_conv",
    systems=(
        SystemCard(
            "lightweight-dynamic-convolution",
            left_out="translation: an encoder with windows on both sides, and attention from decoder to encoder",
            off="light_conv",
            beside=("light_conv", "attention"),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=dynamic_conv",
        ),
    ),
    summary="convolutions whose kernels each token predicts; time linear in the length",
    paper="Wu et al. 2019, ICLR",
)
class DynamicConv(SequenceLayers):
    """``h + W_o conv(GLU(W_i norm(h)))``, then ``h + W_2 ReLU(W_1 norm(h))``, ``n_layers`` times, from ``W x``.

    Wu et al. 2019, "Pay Less Attention with Lightweight and Dynamic Convolutions", sections 3 and 4. The norms stand
    before each block, as later transformers have them.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        k: tokens that a kernel sees, its own among them.
        heads: kernels of a layer; d is rounded up to a multiple inside.
    """

    causal = True
    dynamic = True

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float, k: Kernel = 15, heads: Heads = 4) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        inner = -(-d // heads) * heads
        self.enter = nn.Linear(d_in, d)
        self.inputs = nn.ModuleList(nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * inner)) for _ in range(n_layers))
        how = {"dynamic": self.dynamic}
        self.convolutions = nn.ModuleList(KernelConvolution(inner, k, heads, dropout, **how) for _ in range(n_layers))
        self.outputs = nn.ModuleList(nn.Linear(inner, d) for _ in range(n_layers))
        self.mixes = nn.ModuleList(_mix(d, dropout) for _ in range(n_layers))

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Sequence[Tokens] | None = None
    ) -> tuple[Float[Tensor, "n t d"], list[Tokens]]:
        """float [n, t, d_in] to [n, t, d], and each layer's last k - 1 inputs of its convolution, [n, k - 1, d]."""
        h, after = self.enter(x), []
        layers = zip(self.inputs, self.convolutions, self.outputs, self.mixes, strict=True)
        for i, (enter, convolution, leave, mix) in enumerate(layers):
            y, last = convolution(F.glu(enter(h), dim=2), None if state is None else state[i])
            after.append(last)
            h = h + leave(y)
            h = h + mix(h)
        return padded(h, mask), after


def _mix(d: int, dropout: float) -> nn.Sequential:
    return nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.ReLU(), nn.Dropout(dropout), nn.Linear(4 * d, d))


@register(
    "sequence",
    "light_conv",
    summary="convolutions with one softmax-normalised kernel a head; time linear in the length",
    paper="Wu et al. 2019, ICLR",
)
class LightConv(DynamicConv):
    """``dynamic_conv`` with kernels that are the same for all tokens.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        k: tokens that a kernel sees, its own among them.
        heads: kernels of a layer.
    """

    dynamic = False
