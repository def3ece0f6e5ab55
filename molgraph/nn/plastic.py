"""Differentiable plasticity: a linear layer with Hebbian weights that examples write, beside trained weights."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.nn.closed_form import Linear


def hebbian(
    x: Float[Tensor, "n d"], y: Float[Tensor, "n k"], eta: Float[Tensor, ""] | None = None
) -> Float[Tensor, "k d"]:
    """The Hebbian trace after n examples: ``Hebb <- eta y_t x_t + (1 - eta) Hebb`` for each in turn, from 0.

    Args:
        x: inputs.
        y: outputs, which are clamped to the labels.
        eta: how much of an example is written, 0 to 1; None for ``1 / t``, by which the trace is the mean of ``y x``.
    """
    n = len(x)
    if eta is None:
        return y.T @ x / n
    weights = eta * (1 - eta) ** torch.arange(n - 1, -1, -1, dtype=x.dtype, device=x.device)
    return (weights[:, None] * y).T @ x


class PlasticLayer(nn.Module):
    """``sum_i (w_ij + alpha_ij Hebb_ij) x_i + b_j``; each support writes Hebb anew.

    Miconi et al. 2018, "Differentiable plasticity: training plastic neural networks with backpropagation", equations 1
    and 2, as the last layer of their one-shot classifier: while the support is read the outputs are its labels. w,
    alpha, b and the rate eta are trained through the queries; Hebb is not trained. Of alpha 0 it is a linear layer.

    Args:
        d: width of the states.
    """

    numbers: Bool[Tensor, ""]

    def __init__(self, d: int) -> None:
        super().__init__()
        self.base, self.alpha = nn.Linear(d, 1), nn.Parameter(torch.full((1, d), 1 / d))
        self.raw_eta = nn.Parameter(torch.tensor(-2.0))

        self.register_buffer("numbers", torch.zeros((), dtype=torch.bool))  # whether it learned numbers, not classes

    def forward(self, h: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Linear:
        """Weight [1, d] and bias [1] after a support of states and centred labels."""
        trace = hebbian(h, y[:, None], self.raw_eta.sigmoid())
        return self.base.weight + self.alpha * trace, self.base.bias
