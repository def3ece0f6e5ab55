"""Updates: from a row's state and its message to its next state."""

from __future__ import annotations

from jaxtyping import Float
from torch import Tensor, nn


class GRU(nn.Module):
    """A gated recurrent unit with the same weights in every round.

    Gilmer et al. 2017, section 2 (after Li et al. 2016): ``h'_v = GRU(h_v, m_v)``.

    Args:
        d_message: width of what a row hears.
        d_state: width of a row's state.
    """

    def __init__(self, d_message: int, d_state: int) -> None:
        super().__init__()
        self.cell = nn.GRUCell(d_message, d_state)

    def forward(
        self, state: Float[Tensor, "n d_state"], message: Float[Tensor, "n d_message"]
    ) -> Float[Tensor, "n d_state"]:
        """float [n, d_state] and [n, d_message] to [n, d_state]."""
        return self.cell(message, state)
