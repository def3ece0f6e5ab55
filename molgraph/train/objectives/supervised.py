"""Learn the labels of rows by the losses of the head: squared error, cross-entropy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from molgraph.base.ranges import NotNegative
from molgraph.base.registry import register
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.outputs import Outputs


@register(
    "objective",
    "supervised",
    summary="the labels of rows: squared error, cross-entropy",
    command="molgraph train dataset:chembl2321810 -m dmpnn --objective supervised",
)
class Supervised(Objective):
    """The losses of the head, such as squared error and cross-entropy, each label weighted, and the penalties.

    The network's head has the losses (``nn.head.Head``).

    Args:
        outputs: which output columns belong to which target.
        penalties: the weights of the network's penalties by name, as in ``{"kl": 0.1}``; 1 if not given.
    """

    def __init__(self, outputs: Outputs, *, penalties: Mapping[str, NotNegative] | None = None) -> None:
        super().__init__()
        self.penalties = penalties or {}
        self.unused_parameters = outputs.level != "row" or outputs.references is not None  # those of a readout
        self.kinds = tuple((t.kind, s.start, s.stop) for t, s in zip(outputs.targets, outputs.slices, strict=True))
        kinds = {kind for kind, _, _ in self.kinds}
        self.valid_parts = ("accuracy",) if kinds and kinds <= {"binary", "multiclass"} else ()

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        """Sum of the weighted losses of a batch's labels; an unknown penalty is an ``UnknownNameError``."""
        raw, penalties = network(batch)
        if state.training:
            check_penalties(self.penalties, penalties)
        total = (self.losses(network, raw, batch) * batch.weights).sum()
        count, right = int((batch.weights > 0).sum()), dict[str, Tensor]()
        if self.valid_parts and not state.training:
            right = {"accuracy": self._right(network.head.values(raw)[0], batch.y, batch.weights)}
        return Loss(total, count, right).with_penalties(penalties, self.penalties)

    def losses(self, network: Any, raw: Tensor, batch: Any) -> Tensor:
        """The loss of each label, [n, t]; of a missing one any number."""
        return network.head.losses(raw, batch.y)

    def _right(self, raw: Tensor, y: Tensor, weights: Tensor) -> Tensor:
        """How many labels are the likeliest class."""
        likeliest = [
            raw[:, a:b].argmax(1, keepdim=True) if kind == "multiclass" else (raw[:, a:b] > 0).long()
            for kind, a, b in self.kinds
        ]
        return ((torch.cat(likeliest, dim=1) == y.long()) & (weights > 0)).sum()
