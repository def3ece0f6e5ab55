"""Define ``Learner``: the network, objective and callbacks that a fit trains, with their settings and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import torch
from torch import nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.recipe_keys import GradientDescent
from molgraph.train.callback import Callback, Compute
from molgraph.train.objective import Loss, Objective, StepState

Early = Callable[[Mapping[str, torch.Tensor], pd.DataFrame, int], None]  #: weights, curves, number of the best epoch


@dataclass(frozen=True)
class TrainingConfig:
    """How to train, the folder that keeps a checkpoint, if any, and the fingerprint that it must have."""

    how: GradientDescent
    seed: int
    checkpoint_seconds: float
    folder: Path | None
    prints: dict[str, str]
    label: str = "training"
    least_rows: int = 1  # that a batch needs
    early: Early | None = None  # called after each epoch that was the best so far, but for the last


class Learned(NamedTuple):
    """What a fit leaves: the weights of the best epoch, its number from 1, and the curves' values of each epoch."""

    weights: dict[str, torch.Tensor]
    best_epoch: int
    curves: list[dict[str, float]]


class Fitted(NamedTuple):
    """The curves of a fit, the number of its best epoch from 1, and what its callbacks say of it."""

    curves: pd.DataFrame
    best_epoch: int
    notes: tuple[str, ...] = ()


class Learner(nn.Module):
    """A network with all that trains it: one module, so that checkpoints and processes have the whole."""

    def __init__(self, network: Any, objective: Objective, callbacks: Sequence[Callback] = ()) -> None:
        super().__init__()
        self.network, self.objective = network, objective
        self.callbacks: Any = nn.ModuleList(callbacks)  # of Callback, which ModuleList's type does not say

    def forward(self, batch: Any, state: StepState) -> Loss:
        """The loss of a batch, whose parts are for the curves alone."""
        compute: Compute = self.objective
        for callback in self.callbacks:
            compute = partial(callback.loss, compute)
        loss = compute(self.network, batch, state)
        return loss._replace(parts={name: value.detach() for name, value in loss.parts.items()})

    def turns(self) -> list[list[nn.Parameter]]:
        """The parameters of each optimiser: the objective's turns, and in the first one the callbacks' own.

        Raises:
            UnsupportedError: there are callbacks, and none of the network's parameters is trained.
        """
        turns = [list(group) for group in self.objective.turns(self.network)]
        if self.callbacks and {p for group in turns for p in group}.isdisjoint(self.network.parameters()):
            words = "the objective trains a copy of the network, which callbacks do not see"
            raise UnsupportedError(words, hint="leave the callback out, or choose another objective")
        turns[0] += self.callbacks.parameters()
        return turns

    def begin(self) -> None:
        """Called when the network has its first weights."""
        for callback in self.callbacks:
            callback.begin(self.network)

    def after_step(self, state: StepState) -> None:
        """Called after every step of training."""
        for part in (self.objective, *self.callbacks):
            part.after_step(self.network, state)

    def after_epoch(self) -> dict[str, float]:
        """Called after every epoch; further columns of the curves."""
        return {name: value for hook in self.callbacks for name, value in hook.after_epoch(self.network).items()}

    def end(self) -> tuple[str, ...]:
        """Called when the network has the weights of its best epoch; what callbacks and encoders say of it."""
        notes = [note for callback in self.callbacks for note in callback.notes(self.network)]
        for encoder in dict.fromkeys(getattr(self.network, "encoders", ())):
            notes += encoder.notes()
        for callback in self.callbacks:
            callback.end(self.network)
        return tuple(notes)
