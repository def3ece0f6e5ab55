"""FiLM from a set: a network reads a few labelled molecules and writes scale and shift of a head (no gradient step)."""

from __future__ import annotations

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from molgraph.nn.closed_form import Linear
from molgraph.nn.perceptron import Perceptron


class SetFilm(nn.Module):
    """A linear head whose input is scaled and shifted by what a set network reads from the support.

    Zakharov et al. 2019, "Few-Shot Adversarial Learning of Realistic Neural Talking Head Models", section 3.2: the
    embeddings of K examples are averaged to ``e``, and a projection P gives the parameters of adaptive normalisation,
    ``psi = P e``. Here an example is a molecule's state h beside its label y, which the embedder reads as [h, y h, y],
    and the head is ``w (gamma h + beta) + b`` with ``[gamma - 1, beta] = P e``, which is linear in h.

    Args:
        d: width of the states.
        width: of e.
    """

    numbers: Bool[Tensor, ""]

    def __init__(self, d: int, width: int = 128) -> None:
        super().__init__()
        self.embed, self.project = Perceptron(2 * d + 1, width, width), nn.Linear(width, 2 * d)
        self.base = nn.Linear(d, 1)

        self.register_buffer("numbers", torch.zeros((), dtype=torch.bool))  # whether it learned numbers, not classes

    def forward(self, h: Float[Tensor, "n d"], y: Float[Tensor, " n"]) -> Linear:
        """Weight [1, d] and bias [1] of the head for a support of states and centred labels."""
        y = y[:, None]
        gamma, beta = self.project(self.embed(torch.cat([h, y * h, y], dim=1)).mean(dim=0)).chunk(2)
        return self.base.weight * (1 + gamma), self.base.bias + self.base.weight @ beta
