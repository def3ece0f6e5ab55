"""Define ``LoopedLayers``, the base class of recurrent layers whose cell torch has not as one operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.sequence import Mask, SequenceLayers, padded


class LoopedLayers(SequenceLayers):
    """Recurrent layers, one on the other, each a loop over time.

    A subclass sets ``cells``: modules ``(x [n, t, d_in], state) -> (h [n, t, d], state)``, whose first state is None
    and whose states are tensors with a row for each sequence, or sequences of such tensors. A cell computes the
    products that need no state for all places at once, and the rest place by place.

    Args:
        d_in, d, n_layers, dropout: as ``SequenceLayers`` has them.
    """

    causal = True
    cells: nn.ModuleList

    def __init__(self, d_in: int, d: int, n_layers: int, dropout: float) -> None:
        super().__init__(d_in, d, n_layers, dropout)
        self.dropout = dropout

    def forward(
        self, x: Float[Tensor, "n t d_in"], mask: Mask | None = None, state: Sequence[Any] | None = None
    ) -> tuple[Float[Tensor, "n t d"], list[Any]]:
        """float [n, t, d_in] to [n, t, d], and the last state of each layer."""
        after = []
        for i, cell in enumerate(self.cells):
            x = F.dropout(x, self.dropout, self.training and i > 0)
            x, last = cell(x, None if state is None else state[i])
            after.append(last)
        return padded(x, mask), after
