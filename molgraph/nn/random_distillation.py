"""Random network distillation: the error of a trained network about the features of a fixed random one."""

from __future__ import annotations

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.seeds import derive
from molgraph.nn.perceptron import Perceptron

LENGTH = 5.0  # of a fingerprint of 25 bits


def of_one_length(x: np.ndarray) -> Float[Tensor, "n d"]:
    """float32 [n, d], rows of bits as vectors of one length, so that a large molecule is not news for its size."""
    bits = torch.from_numpy(np.asarray(x, dtype=np.float32))
    return bits * (LENGTH / bits.norm(dim=1, keepdim=True).clamp(min=1))


class RandomDistillation(nn.Module):
    """``|g(x) - phi(x)|^2``: ``phi`` is random and never changes, ``g`` is trained to predict it.

    Burda et al. 2019, "Exploration by Random Network Distillation", section 2.2. The error is small of what ``g`` has
    learned from, and of what is like it.

    Args:
        d_in: width of x.
        width: of the features and of the hidden layer.
        seed: of the weights of both networks.
        learning_rate: of ``g``, with Adam.
    """

    def __init__(self, d_in: int, width: int, seed: int, learning_rate: float = 5e-4) -> None:
        super().__init__()
        with torch.random.fork_rng():
            torch.manual_seed(derive(seed, "networks"))
            self.phi = Perceptron(d_in, width, width).requires_grad_(requires_grad=False)
            self.g = Perceptron(d_in, width, width)
        self.optimizer = torch.optim.Adam(self.g.parameters(), learning_rate)

    def forward(self, x: Float[Tensor, "n d"]) -> Float[Tensor, " n"]:
        """float [n], the error about each row."""
        return (self.g(x) - self.phi(x)).square().sum(dim=1)

    def learn(self, x: Float[Tensor, "n d"]) -> None:
        """A step of gradient descent on the mean error."""
        loss = self(x).mean()
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
