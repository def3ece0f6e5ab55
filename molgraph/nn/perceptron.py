"""Activations by name, and a perceptron of several linear layers."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol, runtime_checkable

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import nearest
from molgraph.base.parts import read_part, settings_of
from molgraph.nn.siren import Sine


class ShiftedSoftplus(nn.Module):
    """``ln(exp(x) / 2 + 1 / 2)``: 0 at 0, and smooth."""

    def forward(self, x: Float[Tensor, " *d"]) -> Float[Tensor, " *d"]:
        """Any shape."""
        return F.softplus(x) - torch.log(torch.tensor(2.0, dtype=x.dtype, device=x.device))


@runtime_checkable
class SetsWeights(Protocol):
    """An activation that draws the weights of the linear layers that it stands behind."""

    def initialise(self, layers: Sequence[nn.Linear], *, first: bool = True) -> None:
        """Draw the weights; ``first``: whether the first of the layers reads what the network is given."""


ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "shifted_softplus": ShiftedSoftplus,
    "tanh": nn.Tanh,
    "siren": Sine,
}


def make_activation(name: str, layers: Sequence[nn.Linear] | None = None, *, first: bool = True) -> nn.Module:
    """The activation of that name, with settings in parentheses such as ``siren(w0=10)``.

    Args:
        name: in ``ACTIVATIONS``.
        layers: the linear layers that it stands behind, whose weights it draws where it asks for certain ones.
        first: whether the first of them reads what the network is given.

    Raises:
        ValueError: an unknown name, with the nearest known ones; or one that draws weights, and no layers are given.

    Example:
        >>> make_activation("relu")
        ReLU()
    """
    part = read_part(name, "activation")
    if part.name not in ACTIVATIONS:
        raise ValueError(f"no activation is named {part.name!r}: {nearest(part.name, ACTIVATIONS)}")
    make = ACTIVATIONS[part.name]
    activation = make(**settings_of(make, part))
    if isinstance(activation, SetsWeights):
        if layers is None:
            raise ValueError(f"{part.name} needs weights of its own kind, which these layers do not have: choose silu")
        activation.initialise(layers, first=first)
    return activation


class Perceptron(nn.Module):
    """Linear layers with an activation and dropout between them.

    ``h_0 = W_0 x + b_0``, ``h_l = W_l dropout(sigma(h_(l-1))) + b_l``. With two layers it is chemprop's head.

    Args:
        d_in, d_hidden, d_out: widths.
        n_layers: number of linear layers, 1 or more.
        dropout: probability of dropping a hidden value while training.
        activation: a name in ``ACTIVATIONS``, with settings in parentheses.

    Raises:
        ValueError: fewer than one layer, or an unknown activation.

    Example:
        >>> import torch
        >>> Perceptron(8, 16, 2)(torch.zeros(3, 8)).shape
        torch.Size([3, 2])
    """

    def __init__(
        self,
        d_in: int,
        d_hidden: int = 300,
        d_out: int = 1,
        n_layers: int = 2,
        dropout: float = 0.0,
        activation: str = "relu",
    ) -> None:
        super().__init__()
        if n_layers < 1:
            raise ValueError(f"a perceptron has at least one layer, got n_layers={n_layers}")
        widths = [d_in] + [d_hidden] * (n_layers - 1) + [d_out]
        self.layers = nn.ModuleList(nn.Linear(a, b) for a, b in pairwise(widths))
        self.activation, self.dropout = make_activation(activation, [*self.layers]), nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "rows d_in"]) -> Float[Tensor, "rows d_out"]:
        """float [rows, d_in] to [rows, d_out]."""
        for i, layer in enumerate(self.layers):
            x = layer(self.dropout(self.activation(x)) if i else x)
        return x
