"""Gated messages along the edges of a tree."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.models.jtvae.tree_relations import TreeMessages
from molgraph.nn.sweep import sweep


class TreeGRU(nn.Module):
    """A gated recurrent unit whose state is a message from node i to node j (Jin et al. 2018, equations 2 to 6).

    ``s_ij = sum_k h_ki``, ``z_ij = sigma(W_z x_i + U_z s_ij)``, ``r_ki = sigma(W_r x_i + U_r h_ki)``,
    ``h~_ij = tanh(W x_i + U sum_k r_ki h_ki)``, ``h_ij = (1 - z_ij) s_ij + z_ij h~_ij``, k over the neighbours of i
    other than j.

    Args:
        d: width of nodes and messages.
    """

    def __init__(self, d: int) -> None:
        super().__init__()
        self.d = d
        self.w = nn.Linear(d, 3 * d)
        self.u_z, self.u_r, self.u = (nn.Linear(d, d, bias=False) for _ in range(3))

    def forward(self, x: Float[Tensor, "m d3"], messages: TreeMessages) -> Float[Tensor, "m d"]:
        """All messages, from ``inputs`` of the nodes that they leave."""
        if not messages.waves.waves:
            return x.new_zeros(0, self.d)
        d = self.d
        states = sweep(x, messages.waves, d_state=2 * d, update=self._state, message=self._gated, d_message=2 * d)
        return states[:, :d]

    def inputs(self, nodes: Float[Tensor, "k d"]) -> Float[Tensor, "k d3"]:
        """``W_z x, W_r x, W x`` side by side."""
        return self.w(nodes)

    def heard(self, h: Float[Tensor, "p d"], x: Float[Tensor, "p d3"]) -> Float[Tensor, "p d2"]:
        """A message as a node of those inputs takes it: as it is, and gated."""
        return self._gated(torch.cat([h, self.u_r(h)], dim=1), x)

    def update(self, x: Float[Tensor, "w d3"], heard: Float[Tensor, "w d2"]) -> Float[Tensor, "w d"]:
        """The message of a node that has heard the sum of others."""
        s, gated = heard.split(self.d, dim=1)
        z = (x[:, : self.d] + self.u_z(s)).sigmoid()
        return (1 - z) * s + z * (x[:, 2 * self.d :] + self.u(gated)).tanh()

    def _state(self, x: Float[Tensor, "w d3"], heard: Float[Tensor, "w d2"]) -> Float[Tensor, "w d2"]:
        """A message, and what its gate reads of it: the same for all that hear it."""
        h = self.update(x, heard)
        return torch.cat([h, self.u_r(h)], dim=1)

    def _gated(self, state: Float[Tensor, "p d2"], x: Float[Tensor, "p d3"], _: None = None) -> Float[Tensor, "p d2"]:
        h, u_h = state.split(self.d, dim=1)
        return torch.cat([h, (x[:, self.d : 2 * self.d] + u_h).sigmoid() * h], dim=1)
