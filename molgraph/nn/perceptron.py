"""Activations by name, and a perceptron of several linear layers."""

from __future__ import annotations

from itertools import pairwise

from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.errors import nearest

ACTIVATIONS: dict[str, type[nn.Module]] = {
    "relu": nn.ReLU,
    "leaky_relu": nn.LeakyReLU,
    "elu": nn.ELU,
    "selu": nn.SELU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "softplus": nn.Softplus,
    "tanh": nn.Tanh,
}


def make_activation(name: str) -> nn.Module:
    """The activation of that name.

    Raises:
        ValueError: an unknown name; the message holds the nearest known ones.

    Example:
        >>> make_activation("relu")
        ReLU()
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"no activation is named {name!r}: {nearest(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]()


class Perceptron(nn.Module):
    """Linear layers with an activation and dropout between them.

    ``h_0 = W_0 x + b_0``, ``h_l = W_l dropout(sigma(h_(l-1))) + b_l``. With two layers it is chemprop's head.

    Args:
        d_in, d_hidden, d_out: widths.
        n_layers: number of linear layers, 1 or more.
        dropout: probability of dropping a hidden value while training.
        activation: a name in ``ACTIVATIONS``.

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
        self.activation, self.dropout = make_activation(activation), nn.Dropout(dropout)

    def forward(self, x: Float[Tensor, "rows d_in"]) -> Float[Tensor, "rows d_out"]:
        """float [rows, d_in] to [rows, d_out]."""
        for i, layer in enumerate(self.layers):
            x = layer(self.dropout(self.activation(x)) if i else x)
        return x
