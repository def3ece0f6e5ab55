"""Masks of weights that are zero and stay zero while a network trains."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.train.callback import Callback
from molgraph.train.objective import StepState


def matrices(network: nn.Module) -> dict[str, nn.Parameter]:
    """A network's weights that can be pruned one by one: matrices, but no embeddings, biases or norms."""
    tables = {id(module.weight) for module in network.modules() if isinstance(module, nn.Embedding)}
    return {name: value for name, value in network.named_parameters() if value.ndim > 1 and id(value) not in tables}


def masks_of(scores: Mapping[str, Tensor], fraction: float) -> dict[str, Tensor]:
    """Which entries stay where the smallest ones of all together go; of equal scores the last ones.

    Args:
        scores: by the names of the weights.
        fraction: of all entries that go.

    Example:
        >>> masks_of({"a": torch.tensor([3.0, 1.0]), "b": torch.tensor([2.0, 4.0])}, 0.5)["a"].tolist()
        [True, False]
    """
    flat = torch.cat([score.detach().flatten() for score in scores.values()])
    mask = torch.zeros(len(flat), dtype=torch.bool, device=flat.device)
    mask[flat.argsort(descending=True, stable=True)[: len(flat) - round(fraction * len(flat))]] = True
    parts = mask.split([score.numel() for score in scores.values()])
    return {name: part.view_as(score) for (name, score), part in zip(scores.items(), parts, strict=True)}


class Masked(Callback):
    """Weights that are exactly zero at the start are so after every step, whatever momentum and weight decay say."""

    def begin(self, network: Any) -> None:
        """Take the mask of each matrix from its zeros."""
        for number, value in enumerate(matrices(network).values()):
            self.register_buffer(f"mask_{number}", value.detach() != 0)

    @torch.no_grad()
    def apply_masks(self, network: Any) -> None:
        """Set what is masked to zero."""
        for number, value in enumerate(matrices(network).values()):
            value.mul_(getattr(self, f"mask_{number}"))

    def after_step(self, network: Any, state: StepState) -> None:
        """Set to zero what the optimiser has moved."""
        self.apply_masks(network)
