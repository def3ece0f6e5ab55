"""Trellis network: one convolution of two tokens, applied several times with the tokens read anew each time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequence import Mask, SequenceLayers, padded

Last = Sequence[Tensor]  # of one trellis: the last token, and the last hidden values and memory of each level


class Trellis(nn.Module):
    """``z^(i+1)_t = f(W_1 [x_(t-1), h^i_(t-1)] + W_2 [x_t, h^i_t] + b, c^i_(t-1))`` from ``z^0 = 0``.

    Bai, Kolter and Koltun 2019, equations 1 and 2, with the gates of an LSTM as f (section 5):
    ``c^(i+1)_t = sigmoid(a_f) c^i_(t-1) + sigmoid(a_i) tanh(a_g)``, ``h^(i+1)_t = sigmoid(a_o) tanh(c^(i+1)_t)``. The
    weights are those of all levels and places, so that their number does not depend on the depth. With
    ``W_1 = [0, U]``, ``W_2 = [W, 0]`` it is the LSTM of W and U that is started ``depth`` tokens before each token
    (theorem 1). A level takes all places at once.

    Args:
        d_in, d: widths of a token and of a state.
        depth: levels, and tokens before its own that a state sees.
    """

    def __init__(self, d_in: int, d: int, depth: int) -> None:
        super().__init__()
        self.depth, self.d = depth, d
        self.inject = nn.Linear(2 * d_in, 4 * d)  # of [x_(t-1), x_t], to the gates i, f, g, o
        self.mix = nn.Linear(2 * d, 4 * d, bias=False)  # of [h_(t-1), h_t]

    def forward(self, x: Float[Tensor, "n t d_in"], last: Last | None = None) -> tuple[Float[Tensor, "n t d"], Last]:
        """float [n, t, d_in] to [n, t, d], and the last token and levels, [n, d_in] and twice [n, depth, d]."""
        n, zeros = len(x), x.new_zeros(len(x), self.depth, self.d)
        token, h_last, c_last = (x.new_zeros(n, x.shape[2]), zeros, zeros) if last is None else last
        injected = self.inject(torch.cat([_shifted(x, token), x], dim=2))
        h = c = x.new_zeros(*x.shape[:2], self.d)
        h_levels, c_levels = [], []
        for level in range(self.depth):
            h_levels.append(h[:, -1])
            c_levels.append(c[:, -1])
            a = injected + self.mix(torch.cat([_shifted(h, h_last[:, level]), h], dim=2))
            i, f, g, o = a.chunk(4, dim=2)
            c = f.sigmoid() * _shifted(c, c_last[:, level]) + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
        return h, (x[:, -1], torch.stack(h_levels, dim=1), torch.stack(c_levels, dim=1))


def _shifted(x: Float[Tensor, "n t d"], first: Float[Tensor, "n d"]) -> Float[Tensor, "n t d"]:
    """Each place's neighbour before it, that of the first place being ``first``."""
    return torch.cat([first.unsqueeze(1).to(x.dtype), x[:, :-1]], dim=1)


@register(
    "sequence",
    "trellis",
    systems=(
        SystemCard(
            "trellisnet",
            left_out="variational dropout and weight normalisation; auxiliary losses at lower levels",
            off="convolution",
            beside=("lstm",),
            command="molgraph train dataset:chembl2321810 -m tokens -s params.sequence=trellis",
        ),
    ),
    summary="one convolution applied at every level: a truncated recurrence, all tokens at once",
    paper="Bai et al. 2019, ICLR",
)
class TrellisNet(SequenceLayers):
    """``n_layers`` trellises, one on the other, each with weights of its own.

    Bai, Kolter and Koltun 2019, "Trellis Networks for Sequence Modeling". A state sees
    ``n_layers * depth`` tokens before its own.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        depth: levels of a trellis, which share their weights.
    """

    causal = True

    def __init__(
        self, d_in: int, d: int, n_layers: int, dropout: float, depth: Annotated[int, Range(1, 256)] = 6
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.trellises = nn.ModuleList(Trellis(width, d, depth) for width in (d_in, *[d] * (n_layers - 1)))
        self.dropout = dropout

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Sequence[Last] | None = None
    ) -> tuple[Float[Tensor, "n t d"], list[Last]]:
        """float [n, t, d_in] to [n, t, d], and each trellis's last token and levels."""
        after = []
        for i, trellis in enumerate(self.trellises):
            x = F.dropout(x, self.dropout, self.training and i > 0)
            x, last = trellis(x, None if state is None else state[i])
            after.append(last)
        return padded(x, mask), after
