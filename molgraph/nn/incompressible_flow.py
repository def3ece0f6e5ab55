"""A volume-preserving normalizing flow (GIN): affine coupling layers whose log scales sum to zero."""

from __future__ import annotations

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

CLAMP = 2.0  # bound of a log scale, before the last one is set to minus the sum of the others


class IncompressibleFlow(nn.Module):
    """Affine couplings with fixed random permutations, which keep the volume of every region.

    Sorrenson, Rother and Köthe 2020, "Disentanglement by nonlinear ICA with general incompressible-flow networks
    (GIN)", section 3: ``y1 = x1, y2 = x2 exp(s(x1)) + t(x1)`` with ``s_D = -sum_{i<D} s_i``, so that
    ``log |det J| = 0``. It begins as a permutation. It has nothing to do with the graph isomorphism network.

    Args:
        d: width, at least 3.
        blocks: of two couplings.
        d_hidden: width of the networks of s and t.
        incompressible: whether the log scales sum to zero; else it is RealNVP (Dinh et al. 2017).
    """

    orders: Int[Tensor, "layers d"]

    def __init__(self, d: int, blocks: int, d_hidden: int, *, incompressible: bool = True) -> None:
        super().__init__()
        self.cut, self.incompressible = d // 2, incompressible
        orders = [torch.randperm(d) for _ in range(2 * blocks)]
        self.register_buffer("orders", torch.stack(orders))
        self.nets = nn.ModuleList(_net(self.cut, 2 * (d - self.cut), d_hidden) for _ in orders)

    def forward(self, x: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], Float[Tensor, " n"]]:
        """The factors of vectors, and ``log |det J|``."""
        volume = x.new_zeros(len(x))
        for order, net in zip(self.orders, self.nets, strict=True):
            x = x[:, order]
            first, second = x[:, : self.cut], x[:, self.cut :]
            scale, shift = self._scales(net, first)
            x = torch.cat([first, second * scale.exp() + shift], dim=1)
            volume = volume + scale.sum(dim=1)
        return x, volume

    def inverse(self, z: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """The vectors of factors."""
        for order, net in zip(self.orders.flip(0), [*self.nets][::-1], strict=True):
            first, second = z[:, : self.cut], z[:, self.cut :]
            scale, shift = self._scales(net, first)
            z = torch.cat([first, (second - shift) * (-scale).exp()], dim=1)[:, order.argsort()]
        return z

    def _scales(self, net: nn.Module, first: Tensor) -> tuple[Tensor, Tensor]:
        scale, shift = net(first).chunk(2, dim=1)
        scale = CLAMP * torch.tanh(scale / CLAMP)
        if self.incompressible:
            scale = torch.cat([scale[:, :-1], -scale[:, :-1].sum(dim=1, keepdim=True)], dim=1)
        return scale, shift


def _net(d_in: int, d_out: int, d_hidden: int) -> nn.Sequential:
    last = nn.Linear(d_hidden, d_out)
    nn.init.zeros_(last.weight), nn.init.zeros_(last.bias)
    return nn.Sequential(nn.Linear(d_in, d_hidden), nn.ReLU(), nn.Linear(d_hidden, d_hidden), nn.ReLU(), last)
