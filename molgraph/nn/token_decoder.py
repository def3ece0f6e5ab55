"""Decoder of token sequences from a latent vector: GRU layers that write token by token."""

from __future__ import annotations

from typing import Any, Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn


class TokenDecoder(nn.Module):
    """Scores of each next token, given the latent vector and the tokens before it.

    With ``feedback="all"`` every GRU layer reads the tokens before. With ``"last"``, as in the paper, only the last one
    does: those below it unroll the latent vector, which costs more and, in as many steps, reconstructs less.

    Args:
        n_tokens: distinct tokens, the edge among them.
        d_latent, d_embedding, d_hidden: widths.
        n_layers: GRU layers.
        feedback: which layers read the tokens before.
    """

    def __init__(
        self,
        n_tokens: int,
        d_latent: int,
        d_embedding: int,
        d_hidden: int,
        n_layers: int,
        feedback: Literal["last", "all"] = "last",
    ) -> None:
        super().__init__()
        below = n_layers - 1 if feedback == "last" else 0
        self.embedding = nn.Embedding(n_tokens, d_embedding)
        self.below = nn.GRU(d_latent, d_hidden, below, batch_first=True) if below else None
        self.top = nn.GRU((d_hidden if below else d_latent) + d_embedding, d_hidden, n_layers - below, batch_first=True)
        self.scores = nn.Linear(d_hidden, n_tokens)

    def forward(
        self, z: Float[Tensor, "rows d"], given: Int[Tensor, "rows length"], state: Any = None
    ) -> tuple[Float[Tensor, "rows length n_tokens"], Any]:
        """The scores after each of the given tokens, and the state to go on from."""
        under, over = (None, None) if state is None else state
        h = z[:, None].expand(-1, given.shape[1], -1)
        if self.below is not None:
            h, under = self.below(h, under)
        h, over = self.top(torch.cat([h, self.embedding(given)], dim=2), over)
        return self.scores(h), (under, over)
