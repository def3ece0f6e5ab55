"""L2-SP: fine-tune with a pull towards the weights of the start."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from molgraph.base.ranges import NotNegative
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, StepState


@register(
    "callback",
    "l2-sp",
    summary="pulls weights towards those of the pretrained model",
    paper="Li et al. 2018, ICML",
    systems=(SystemCard("l2-sp", off="--callback none", beside=("all weights at once", "the head alone")),),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback l2-sp -o model.mgm",
)
class L2SP(Callback):
    """``loss + alpha / 2 |w - w0|^2 + beta / 2 |v|^2`` for weights w that started at w0, and new weights v.

    Li, Grandvalet and Davoine 2018, "Explicit inductive bias for transfer learning with convolutional networks",
    equation 3. The penalty is the column ``train_l2_sp`` of the curves, for each label as the loss is. A validation
    part is judged without it, since it is 0 at the start, and the epoch with the lowest error of the labels is kept.

    Use it where few labels fine-tune a pretrained encoder. Known limits: Adam divides the pull by the size of its
    gradient, as it does with weight decay, so that alpha means less there than with ``sgd``.

    Args:
        alpha: of the distance from the start; with 0, and beta 0, training is plain to the bit.
        beta: of the weights that are new, such as the head's.
    """

    needs_start = True
    start: Tensor

    def __init__(self, *, alpha: NotNegative = 0.1, beta: NotNegative = 0.01) -> None:
        super().__init__()
        self.alpha, self.beta = alpha, beta

    def begin(self, network: Any) -> None:
        """Keep the weights of the start."""
        self.register_buffer("start", self._vector(network, started=True).detach().clone())

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss with the penalty."""
        loss = objective(network, batch, state)
        if not state.training or state.turn:
            return loss
        distance = (self._vector(network, started=True) - self.start).square().sum()
        size = self._vector(network, started=False).square().sum()
        return loss.with_penalties({"l2_sp": (self.alpha * distance + self.beta * size) / 2})

    @staticmethod
    def _vector(network: Any, *, started: bool) -> Tensor:
        """float [w]: the weights that come from the start, or the new ones."""
        named = network.named_parameters()
        values = [value.flatten() for name, value in named if (name in network.started) == started]
        return torch.cat(values) if values else torch.zeros(0)
