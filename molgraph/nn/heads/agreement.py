"""A head of two branches, one for each half of the state, with a penalty on their difference."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Count, NotNegative, Probability
from molgraph.base.registry import register
from molgraph.base.table import Target
from molgraph.nn.head import Head
from molgraph.nn.perceptron import Perceptron


@register(
    "head",
    "agreement",
    summary="two branches on the halves of the state, as of an encoder of two views, and their disagreement",
    paper="Rong et al. 2020, NeurIPS",
)
class AgreementHead(Head):
    """The mean of two perceptrons, one on each half of the state; each is trained, and their difference is penalised.

    Rong et al. 2020 (GROVER), section 4.3 and the authors' code: the loss is the sum of both branches' losses and
    ``weight`` times the mean squared difference of their outputs; predictions are the mean of both.

    Args:
        d_in: width of the state and the descriptors together; both branches read the descriptors.
        targets: what is predicted.
        d_hidden: width of hidden layers.
        n_layers: linear layers.
        dropout: probability of dropping a hidden value while training.
        activation: between layers.
        weight: of the squared difference.
    """

    def __init__(
        self,
        d_in: int,
        targets: Sequence[Target],
        d_hidden: Count = 300,
        n_layers: Count = 2,
        dropout: Probability = 0.0,
        activation: str = "relu",
        weight: NotNegative = 0.1,
    ) -> None:
        super().__init__(d_in, targets, d_hidden, n_layers, dropout, activation)
        self.weight = weight
        self.layers[-1] = nn.Linear(
            d_hidden if n_layers > 1 else d_in, self.d_out
        )  # this perceptron is the first branch
        self.second = Perceptron(d_in, d_hidden, self.d_out, n_layers, dropout, activation)

    @classmethod
    def width(cls, targets: Sequence[Target]) -> int:
        """The mean of the branches, and half their difference."""
        return 2 * super().width(targets)

    def forward(self, h: Float[Tensor, "n d"], extra: Float[Tensor, "n e"] | None = None) -> Float[Tensor, "n width"]:
        """A branch reads zeros in the place of the other half."""
        first, second = h.tensor_split(2, dim=1)
        one = super().forward(torch.cat([first, torch.zeros_like(second)], dim=1), extra)
        both = torch.cat([torch.zeros_like(first), second], dim=1)
        two = self.second(both if extra is None else torch.cat([both, extra], dim=1))
        return torch.cat([(one + two) / 2, (one - two) / 2], dim=1)

    def losses(self, raw: Float[Tensor, "n width"], y: Float[Tensor, "n t"]) -> Float[Tensor, "n t"]:
        """The sum of both branches' losses, and of their squared difference, the mean over a target's columns."""
        mean, half = raw.float().chunk(2, dim=1)
        apart = [(2 * half[:, a:b]).square().mean(dim=1) for _, a, b in self.columns]
        losses = super().losses(mean + half, y) + super().losses(mean - half, y)
        return losses + self.weight * torch.stack(apart, dim=1)
