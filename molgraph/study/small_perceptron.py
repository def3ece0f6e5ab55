"""Train a perceptron of one hidden layer on arrays by full-batch Adam, for studies of training itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.base.seeds import derive
from molgraph.train.runtime import torch_settings

Penalty = Callable[[nn.Module], Tensor]


class Perceptron(nn.Module):
    """``W_2 relu(W_1 x + b_1) + b_2``.

    Args:
        d: width of x.
        width: hidden units.
        linear: whether the hidden layer is left linear.
    """

    def __init__(self, d: int, width: int, *, linear: bool = False) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(d, width), nn.Linear(width, 1)
        self.linear = linear

    def forward(self, x: Tensor) -> Tensor:
        """float [n], a number for each row of float [n, d]."""
        h = self.first(x)
        return self.last(h if self.linear else h.relu())[:, 0]


class Curve(NamedTuple):
    """The trained network, and its mean squared error before each step and after the last."""

    network: Perceptron
    losses: list[float]

    def steps_to(self, loss: float) -> int:
        """Steps until the error is as low; one more than there were if it never is.

        Example:
            >>> Curve(Perceptron(1, 1), [3.0, 2.0, 1.0]).steps_to(2.5)
            1
        """
        return next((i for i, value in enumerate(self.losses) if value <= loss), len(self.losses))


def make_perceptron(d: int, width: int, seed: int, *, linear: bool = False) -> Perceptron:
    """A network with torch's usual weights, drawn by the seed."""
    with torch_settings(1, derive(seed, "perceptron")):
        return Perceptron(d, width, linear=linear)


def train_perceptron(
    network: Perceptron,
    x: np.ndarray,
    y: np.ndarray,
    steps: int,
    rate: float = 1e-3,
    decay: float = 0.0,
    penalty: Penalty | None = None,
) -> Curve:
    """Train it, in place, by Adam on all rows at once.

    Args:
        network: to train.
        x, y: float [n, d], [n].
        steps: of Adam.
        rate: of learning.
        decay: of weights, ``decay / 2 |theta|^2``.
        penalty: that is added to the mean squared error.
    """
    rows, labels = torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))
    optimiser, losses = torch.optim.Adam(network.parameters(), rate, weight_decay=decay), list[float]()
    with torch_settings(1, 0):
        for _ in range(steps):
            loss = (network(rows) - labels).square().mean()
            losses.append(float(loss.detach()))
            optimiser.zero_grad()
            (loss if penalty is None else loss + penalty(network)).backward()
            optimiser.step()
        with torch.no_grad():
            losses.append(float((network(rows) - labels).square().mean()))
    return Curve(network, losses)
