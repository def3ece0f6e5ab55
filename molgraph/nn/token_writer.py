"""Decoder with attention: writes a text token by token, and reads the states of another one at each."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


class TokenWriter(nn.Module):
    """Scores of each next token, from the tokens before it and the states of a text that was read.

    Luong et al. 2015, "Effective Approaches to Attention-based Neural Machine Translation", section 3.1, with the
    score ``general``: ``a_ts = softmax_s(h_t^T W m_s)``, ``scores = V tanh(U [h_t; sum_s a_ts m_s])``; the states h are
    those of gated recurrent units, which begin at a linear map of the text's vector.

    Args:
        n_tokens: tokens that it can write.
        d_memory: width of the states that are read.
        d: width of its own.
    """

    def __init__(self, n_tokens: int, d_memory: int, d: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d)
        self.start = nn.Linear(d_memory, d)
        self.layers = nn.GRU(d, d, batch_first=True)
        self.query = nn.Linear(d, d_memory, bias=False)
        self.join = nn.Linear(d + d_memory, d)
        self.scores = nn.Linear(d, n_tokens)

    def forward(
        self,
        memory: Float[Tensor, "n t m"],
        mask: Bool[Tensor, "n t"],
        vector: Float[Tensor, "n m"],
        before: Int[Tensor, "n s"],
    ) -> Float[Tensor, "n s n_tokens"]:
        """The scores after each token of ``before``, whose first is the start."""
        h = self.layers(self.embedding(before), self.start(vector).tanh()[None].contiguous())[0]
        scores = self.query(h) @ memory.transpose(1, 2)
        weights = scores.masked_fill(~mask[:, None], torch.finfo(scores.dtype).min).softmax(dim=2)
        return self.scores(self.join(torch.cat([h, weights @ memory], dim=2)).tanh())
