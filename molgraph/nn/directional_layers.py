"""Layers of DimeNet: what a block contributes to atoms, residual layers, and orthogonal weights at the start."""

from __future__ import annotations

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.nn.propagate import propagate
from molgraph.nn.triplets import DirectedPairs


class Output(nn.Module):
    """What a block contributes for each atom: ``t_i = MLP(W sum_j m_ji * (W e_RBF(d_ji)))``.

    Args:
        n_radial, d_hidden: widths of the basis and of messages.
        d_wide: width of the perceptron's layers; that of messages, and no matrix before them, where it is None.
        n_layers: its hidden layers.
        d_atom: width of what it gives.
    """

    def __init__(self, n_radial: int, d_hidden: int, d_wide: int | None, n_layers: int, d_atom: int) -> None:
        super().__init__()
        wide = d_wide or d_hidden
        self.gate = orthogonal(n_radial, d_hidden, bias=False)
        self.up = orthogonal(d_hidden, wide, bias=False) if d_wide else nn.Identity()
        self.layers = nn.ModuleList(orthogonal(wide, wide) for _ in range(n_layers))
        self.last = orthogonal(wide, d_atom, bias=False, gain=0.003)  # the paper begins at 0

    def arriving(
        self, m: Float[Tensor, "p d"], radial: Float[Tensor, "p n_radial"], pairs: DirectedPairs
    ) -> Float[Tensor, "n d"]:
        """Messages summed over the pairs that arrive at an atom: float [p, d_hidden] to [n_atoms, d_hidden]."""
        return propagate(times(project(radial, self.gate), m), pairs.to_atoms)

    def forward(self, heard: Float[Tensor, "n d"]) -> Float[Tensor, "n d_atom"]:
        """These sums, float [n_atoms, d_hidden], to [n_atoms, d_atom]."""
        t = self.up(heard)
        for layer in self.layers:
            t = silu(layer(t))
        return self.last(t)


class Refine(nn.Module):
    """Residual layers before and after the skip: ``r(m + silu(W r(h) + b))``, ``r(h) = h + silu(W silu(W h + b) + b)``.

    Args:
        d: width of messages.
        n_before, n_after: number of residual layers on both sides of the skip.
    """

    def __init__(self, d: int, n_before: int, n_after: int) -> None:
        super().__init__()
        self.before = nn.ModuleList(Residual(d) for _ in range(n_before))
        self.middle = orthogonal(d, d)
        self.after = nn.ModuleList(Residual(d) for _ in range(n_after))

    def forward(self, h: Float[Tensor, "p d"], m: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
        """What was heard and the messages before, float [p, d], to the messages after."""
        for layer in self.before:
            h = layer(h)
        h = silu(self.middle(h)).add_(m)
        for layer in self.after:
            h = layer(h)
        return h


class Residual(nn.Module):
    """``h + silu(W silu(W h + b) + b)``."""

    def __init__(self, d: int) -> None:
        super().__init__()
        self.first, self.second = orthogonal(d, d), orthogonal(d, d)

    def forward(self, h: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
        """float [p, d] to [p, d]."""
        return silu(self.second(silu(self.first(h)))).add_(h)


def orthogonal(d_in: int, d_out: int, *, bias: bool = True, gain: float = 1.0) -> nn.Linear:
    """A linear layer with an orthogonal weight of the standard deviation ``gain (2 / (d_in + d_out))^(1/2)``."""
    layer = nn.Linear(d_in, d_out, bias=bias)
    nn.init.orthogonal_(layer.weight, gain * (2 * max(d_in, d_out) / (d_in + d_out)) ** 0.5)
    if bias:
        nn.init.zeros_(layer.bias)
    return layer


def project(x: Float[Tensor, "p d_in"], layer: nn.Linear) -> Float[Tensor, "p d_out"]:
    """``layer(x)`` for few columns: the weight's gradient is then a product with long columns, ten times as fast."""
    weight = layer.weight.t().contiguous()
    return x @ weight if layer.bias is None else torch.addmm(layer.bias, x, weight)


def silu(x: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
    """``x / (1 + exp(-x))``, in the memory of x where no gradient asks for it."""
    return F.silu(x, inplace=not torch.is_grad_enabled())


def times(x: Float[Tensor, "p d"], y: Float[Tensor, "p d"]) -> Float[Tensor, "p d"]:
    """``x * y``, in the memory of x where no gradient asks for it."""
    return x * y if torch.is_grad_enabled() else x.mul_(y)
