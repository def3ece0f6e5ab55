"""An objective of two turns that use different parameters, where processes can import it."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from molgraph.train.objective import Loss, Objective, StepState


class Adversary(Objective):
    """The network fits a line in turn 0; in turn 1 a discriminator learns to tell its answers from the line."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.discriminator = nn.Linear(2, 1)

    def turns(self, network: nn.Module) -> list[list[nn.Parameter]]:
        return [list(network.parameters()), list(self.discriminator.parameters())]

    def forward(self, network: Any, batch: Any, state: StepState) -> Loss:
        x, y = batch.x, 3 * batch.x + 1
        if state.turn == 0:
            near = (network(x) - y).square().sum()
            size = 0.01 * network.layer.weight.square().sum() * len(x)
            return Loss(near + size, len(x), {"near": near, "size": size})
        with torch.no_grad():
            made = network(x)
        scores = self.discriminator(torch.cat([torch.cat([x, y], 1), torch.cat([x, made], 1)]))
        truth = torch.cat([torch.ones(len(x), 1), torch.zeros(len(x), 1)])
        told = nn.functional.binary_cross_entropy_with_logits(scores, truth, reduction="sum")
        return Loss(told, 2 * len(x), {"discriminator": told})
