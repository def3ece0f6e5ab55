"""Ordered-neurons LSTM: master gates erase states from the short-lived end, which shows a tree of the sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.sequences.looped import LoopedLayers

Pair = tuple[Float[Tensor, "n d"], Float[Tensor, "n d"]]


def cumax(x: Float[Tensor, "*n d"]) -> Float[Tensor, "*n d"]:
    """``cumsum(softmax(x))``: not decreasing, from above 0 to 1.

    Example:
        >>> cumax(torch.zeros(4))
        tensor([0.2500, 0.5000, 0.7500, 1.0000])
    """
    return x.softmax(dim=-1).cumsum(dim=-1)


class ONLSTMCell(nn.Module):
    """An LSTM's cell whose forget and input gates are bounded by master gates that rise and fall along the units.

    Shen et al. 2019, equations 9 to 14: ``f~ = cumax(.)``, ``i~ = 1 - cumax(.)``, ``w = f~ i~``,
    ``f^ = f w + (f~ - w)``, ``i^ = i w + (i~ - w)``, ``c_t = f^ c_(t-1) + i^ c~_t``, ``h_t = o tanh(c_t)``. Gates are
    affine in ``x_t`` and ``h_(t-1)``; each level of a master gate serves ``chunk`` units.

    Args:
        d_in, d: widths of a token and of a state.
        chunk: units to a level; there are two levels at least.
    """

    def __init__(self, d_in: int, d: int, chunk: int) -> None:
        super().__init__()
        self.d, self.levels = d, max(-(-d // chunk), 2)
        width = 4 * d + 2 * self.levels
        self.enter, self.recur = nn.Linear(d_in, width), nn.Linear(d, width, bias=False)
        self.sizes = (2 * self.levels, 3 * d, d)

    def forward(
        self, x: Float[Tensor, "n t d_in"], state: Sequence[Float[Tensor, "n d"]] | None = None
    ) -> tuple[Float[Tensor, "n t d"], Pair]:
        """float [n, t, d_in] to [n, t, d], and the last state and memory."""
        return self.run(x, state)[:2]

    def run(
        self, x: Float[Tensor, "n t d_in"], state: Sequence[Float[Tensor, "n d"]] | None = None
    ) -> tuple[Float[Tensor, "n t d"], Pair, Float[Tensor, "n t"]]:
        """The same, and the distance ``levels - sum_k f~_k`` of each token from the one before: float [n, t]."""
        h, c = (x.new_zeros(len(x), self.d),) * 2 if state is None else state
        recur, n, states, masters = self.recur.weight.t(), len(x), [], []
        for row in self.enter(x).unbind(1):
            master, gates, candidate = torch.addmm(row, h, recur).split(self.sizes, dim=1)
            forget, closed = cumax(master.view(n, 2, self.levels)).unbind(1)
            masters.append(forget)
            f, i, o = gates.sigmoid().chunk(3, dim=1)
            f_master, i_master = self.to_units(forget), self.to_units(1 - closed)
            both = f_master * i_master
            c = torch.addcmul(f_master, both, f - 1) * c + torch.addcmul(i_master, both, i - 1) * candidate.tanh()
            h = o * c.tanh()
            states.append(h)
        return torch.stack(states, dim=1), (h, c), self.levels - torch.stack(masters, dim=1).sum(dim=2)

    def to_units(self, levels: Float[Tensor, "n l"]) -> Float[Tensor, "n d"]:
        """The level of each unit; the last level has fewer units where they are no multiple."""
        return levels.repeat_interleave(-(-self.d // self.levels), dim=1)[:, : self.d]


@register(
    "sequence",
    "on_lstm",
    systems=(
        SystemCard(
            "on-lstm",
            left_out="weight dropout and the other regularisers of its language model",
            off="lstm",
            beside=("lstm", "untrained"),
            command="molgraph train-generator dataset:chembl2321810 -m language -s params.sequence=on_lstm "
            "-o generator.mgm",
            modules=("molgraph.nn.sequences.looped", "molgraph.auxiliary.study.parse"),
        ),
    ),
    summary="an LSTM whose gates show branches and rings as a tree",
    paper="Shen et al. 2019, ICLR",
)
class ONLSTM(LoopedLayers):
    """``n_layers`` ordered-neurons cells, one on the other.

    Shen, Tan, Sordoni and Courville 2019, "Ordered Neurons: Integrating Tree Structures into Recurrent Neural
    Networks". ``molgraph study parse`` compares its distances with the branches and rings of SMILES.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
        chunk: units that a level of the master gates serves.
    """

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float, chunk: Width = 4) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.cells = nn.ModuleList(ONLSTMCell(width, d, chunk) for width in (d_in, *[d] * (n_layers - 1)))

    def distances(self, x: Float[Tensor, "n t d_in"], layer: int = -1) -> Float[Tensor, "n t"]:
        """float [n, t], how high in the tree the split before each token stands, by one layer's master gate."""
        cells: Any = self.cells
        for cell in cells[: range(len(cells))[layer]]:
            x, _ = cell(x)
        found: Float[Tensor, "n t"] = cells[layer].run(x)[2]
        return found
