"""Activations by name."""

from __future__ import annotations

from torch import nn

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


def activation(name: str) -> nn.Module:
    """The activation of that name.

    Raises:
        ValueError: an unknown name; the message holds the nearest known ones.

    Example:
        >>> activation("relu")
        ReLU()
    """
    if name not in ACTIVATIONS:
        raise ValueError(f"no activation is named {name!r}: {nearest(name, ACTIVATIONS)}")
    return ACTIVATIONS[name]()
