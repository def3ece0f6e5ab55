"""JANET: a recurrent cell with a forget gate alone, whose biases begin by the lengths that it should remember."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import LARGEST, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequences.looped import LoopedLayers

BETA = 1.0  # by which less is written than is forgotten (section 3.1)


class JANETCell(nn.Module):
    """``h_t = sigmoid(s_t) h_(t-1) + (1 - sigmoid(s_t - beta)) tanh(W_c x_t + U_c h_(t-1) + b_c)``.

    ``s_t = W_f x_t + U_f h_(t-1) + b_f``: two pairs of matrices, of which a GRU has three and an LSTM four. The biases
    ``b_f`` begin at ``log u`` with u uniform in [1, t_max - 1] (Tallec and Ollivier 2018, equation 16): a state that
    nothing is written to then shrinks by 1 / e in ``1 + u`` tokens or so.

    Args:
        d_in, d: widths of a token and of a state.
        t_max: tokens between two that depend on each other, at most.
    """

    def __init__(self, d_in: int, d: int, t_max: int) -> None:
        super().__init__()
        self.enter, self.recur = nn.Linear(d_in, 2 * d), nn.Linear(d, 2 * d, bias=False)
        with torch.no_grad():
            self.enter.bias[:d] = (1 + torch.rand(d) * (t_max - 2)).log()
            self.enter.bias[d:] = 0

    def forward(
        self, x: Float[Tensor, "n t d_in"], h: Float[Tensor, "n d"] | None = None
    ) -> tuple[Float[Tensor, "n t d"], Float[Tensor, "n d"]]:
        """float [n, t, d_in] to [n, t, d], and the last state."""
        recur, states = self.recur.weight.t(), []
        h = x.new_zeros(len(x), len(recur)) if h is None else h
        for row in self.enter(x).unbind(1):
            s, candidate = torch.addmm(row, h, recur).chunk(2, dim=1)
            h = torch.addcmul(s.sigmoid() * h, (BETA - s).sigmoid(), candidate.tanh())
            states.append(h)
        return torch.stack(states, dim=1), h


@register(
    "sequence",
    "janet",
    systems=(
        SystemCard(
            "janet",
            left_out="",
            off="gru",
            beside=("gru",),
            command="molgraph train-generator dataset:chembl2321810 -m language -s params.sequence=janet "
            "-o generator.mgm",
            modules=("molgraph.nn.sequences.looped",),
        ),
    ),
    summary="a forget gate alone: two thirds of a GRU's weights",
    paper="van der Westhuizen and Lasenby 2018, arXiv:1804.04849; Tallec and Ollivier 2018, ICLR",
)
class JANET(LoopedLayers):
    """``n_layers`` JANET cells, one on the other.

    Van der Westhuizen and Lasenby 2018, "The Unreasonable Effectiveness of the Forget Gate", equation 6, with the
    chrono initialisation of Tallec and Ollivier 2018, "Can Recurrent Neural Networks Warp Time?". Use it where a
    smaller file counts; a step of training takes about the time of ``lstm``.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        t_max: tokens between two that depend on each other, at most: those of a ring of usual SMILES.
    """

    def __init__(
        self, d_in: int, d: int, n_layers: int, dropout: float, t_max: Annotated[int, Range(2, LARGEST)] = 16
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.cells = nn.ModuleList(JANETCell(width, d, t_max) for width in (d_in, *[d] * (n_layers - 1)))
