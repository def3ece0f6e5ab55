"""Mogrifier LSTM: the token and the state gate each other some rounds before an LSTM's cell reads both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequences.looped import LoopedLayers


class MogrifierCell(nn.Module):
    """An LSTM's cell of ``x^r`` and ``h^r``, the last of r rounds in turn.

    Melis et al. 2020, equations 1 and 2: ``x^i = 2 sigmoid(Q^i h^(i-1)) x^(i-2)`` for odd i, and
    ``h^i = 2 sigmoid(R^i x^(i-1)) h^(i-2)`` for even i, from ``x^(-1) = x_t`` and ``h^0 = h_(t-1)``; products with a
    gate are by channel. With 0 rounds, or with Q and R of zeros, it is the LSTM.

    Args:
        d_in, d: widths of a token and of a state.
        rounds: r.
    """

    def __init__(self, d_in: int, d: int, rounds: int) -> None:
        super().__init__()
        shapes = [(d_in, d) if i % 2 else (d, d_in) for i in range(rounds)]
        self.rounds = nn.ModuleList(nn.Linear(a, b, bias=False) for a, b in shapes)  # Q^1, R^2, Q^3, ...
        self.cell = nn.LSTMCell(d_in, d)

    def forward(
        self, x: Float[Tensor, "n t d_in"], state: Sequence[Float[Tensor, "n d"]] | None = None
    ) -> tuple[Float[Tensor, "n t d"], tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]]:
        """float [n, t, d_in] to [n, t, d], and the last state and memory."""
        h, c = (x.new_zeros(len(x), self.cell.hidden_size),) * 2 if state is None else state
        states = []
        for token in x.unbind(1):
            row = token
            for i, gate in enumerate(self.rounds):
                if i % 2:
                    h = 2 * gate(row).sigmoid() * h
                else:
                    row = 2 * gate(h).sigmoid() * row
            h, c = self.cell(row, (h, c))
            states.append(h)
        return torch.stack(states, dim=1), (h, c)


@register(
    "sequence",
    "mogrifier",
    systems=(
        SystemCard(
            "mogrifier",
            left_out="low-rank Q and R",
            off="lstm",
            beside=("lstm",),
            command="molgraph train-generator dataset:chembl2321810 -m language -s params.sequence=mogrifier "
            "-o generator.mgm",
            modules=("molgraph.nn.sequences.looped",),
        ),
    ),
    summary="an LSTM whose input and state gate each other first",
    paper="Melis et al. 2020, ICLR",
)
class Mogrifier(LoopedLayers):
    """``n_layers`` mogrifier LSTM cells, one on the other.

    Melis, Kocisky and Blunsom 2020, "Mogrifier LSTM". Use it for a language model of SMILES where NLL counts more than
    time: each token takes ``rounds`` more products.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        rounds: of gating; 0 is the LSTM.
    """

    def __init__(
        self, d_in: int, d: int, n_layers: int, dropout: float, rounds: Annotated[int, Range(0, 16)] = 5
    ) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.cells = nn.ModuleList(MogrifierCell(width, d, rounds) for width in (d_in, *[d] * (n_layers - 1)))
