"""Sine activation, with SIREN's initialisation of the linear layers before it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range


class Sine(nn.Module):
    """``sin(w0 x)`` behind linear layers whose weights it draws: the SIREN.

    Sitzmann et al. 2020, "Implicit neural representations with periodic activation functions", section 3.2: with n
    inputs, weights of the first layer are uniform in ``+- 1 / n``, those of later layers in ``+- sqrt(6 / n) / w0``, so
    that ``w0 (W x + b)`` has a standard deviation near 1 at every depth. The paper leaves biases open; here that of the
    first layer is uniform in ``+- 1 / sqrt(n)``, a phase, and others have the range of their weights. All
    derivatives are smooth and of the same form, so it can learn from slopes alone.

    Args:
        w0: the frequency; the paper's 30 suits coordinates within -1 and 1.
    """

    def __init__(self, w0: Annotated[float, Range(0, 1000, above=True)] = 30.0) -> None:
        super().__init__()
        self.w0 = w0

    def forward(self, x: Float[Tensor, " *d"]) -> Float[Tensor, " *d"]:
        """Any shape."""
        return torch.sin(self.w0 * x)

    @torch.no_grad()
    def initialise(self, layers: Sequence[nn.Linear], *, first: bool = True) -> None:
        """Draw the weights of layers one behind another; the first reads coordinates, unless ``first`` is False."""
        for i, layer in enumerate(layers):
            n, coordinates = layer.in_features, first and i == 0
            weight = 1 / n if coordinates else math.sqrt(6 / n) / self.w0
            layer.weight.uniform_(-weight, weight)
            if layer.bias is not None:
                bias = 1 / math.sqrt(n) if coordinates else weight
                layer.bias.uniform_(-bias, bias)

    def extra_repr(self) -> str:
        """The frequency."""
        return f"w0={self.w0:g}"
