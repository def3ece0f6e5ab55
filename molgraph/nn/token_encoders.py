"""Encoders of token sequences to one vector each: convolutions, or a GRU in both directions."""

from __future__ import annotations

from jaxtyping import Float, Int
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence

CONVOLUTIONS = ((9, 9), (9, 9), (10, 11))  # filters and kernel of each layer: the paper's for ZINC
SHORTEST = sum(kernel - 1 for _, kernel in CONVOLUTIONS) + 1


class ConvolutionEncoder(nn.Module):
    """Three convolutions along the one-hot tokens, then a dense layer (Gomez-Bombarelli et al. 2018).

    The paper's activation is tanh, which saturates while the divergence has little weight: the encoder then answers
    every text alike, for good. Here it is SiLU, the dense layer's after a layer norm.

    Args:
        n_tokens: distinct tokens, the edge among them.
        max_length: tokens of a text, at most.
        d_hidden: width of the answer.
    """

    def __init__(self, n_tokens: int, max_length: int, d_hidden: int) -> None:
        super().__init__()
        self.n_tokens, self.length = n_tokens, max(max_length, SHORTEST)
        widths = [n_tokens, *(filters for filters, _ in CONVOLUTIONS)]
        self.layers = nn.ModuleList(
            nn.Conv1d(before, filters, kernel) for before, (filters, kernel) in zip(widths, CONVOLUTIONS, strict=False)
        )
        self.dense = nn.Linear(widths[-1] * (self.length - SHORTEST + 1), d_hidden)
        self.norm = nn.LayerNorm(d_hidden)

    def forward(self, code: Int[Tensor, "rows length"], lengths: Int[Tensor, " rows"]) -> Float[Tensor, "rows d"]:
        """A vector for each text, from its codes with 0 behind the last."""
        one_hot = F.one_hot(F.pad(code, (0, self.length - code.shape[1])), self.n_tokens)
        h = one_hot.to(self.dense.weight.dtype).transpose(1, 2)
        for layer in self.layers:
            h = F.silu(layer(h))
        return F.silu(self.norm(self.dense(h.flatten(1))))


class GRUEncoder(nn.Module):
    """The last states of a GRU that reads forwards and of one that reads backwards.

    Args:
        n_tokens: distinct tokens, the edge among them.
        d_embedding: width of a token's vector.
        d_hidden: width of the answer, half of it from each direction.
    """

    def __init__(self, n_tokens: int, d_embedding: int, d_hidden: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embedding)
        self.gru = nn.GRU(d_embedding, max(d_hidden // 2, 1), batch_first=True, bidirectional=True)
        self.dense = nn.Linear(2 * max(d_hidden // 2, 1), d_hidden)
        self.norm = nn.LayerNorm(d_hidden)

    def forward(self, code: Int[Tensor, "rows length"], lengths: Int[Tensor, " rows"]) -> Float[Tensor, "rows d"]:
        """A vector for each text, from its codes with 0 behind the last."""
        packed = pack_padded_sequence(self.embedding(code), lengths.cpu(), batch_first=True, enforce_sorted=False)
        _, state = self.gru(packed)
        return F.silu(self.norm(self.dense(state.transpose(0, 1).flatten(1))))
