"""Train a pruned network further, by learning-rate rewinding or at the last learning rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import read_part
from molgraph.base.registry import get
from molgraph.data.table import Table
from molgraph.train.callback import Callback, Phase
from molgraph.train.further import train_further
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.objective import Objective

Retrain = Literal["lr_rewind", "finetune"] | None


class Replay(Callback):
    """An epoch at each of some learning rates.

    Args:
        multiples: of the fit's learning rate.
    """

    def __init__(self, multiples: Sequence[float]) -> None:
        super().__init__()
        self.multiples = multiples

    def phases(self, network: Any) -> Sequence[Phase]:
        """One for each epoch."""
        return [Phase(1 / len(self.multiples), rate=multiple) for multiple in self.multiples]


def graph_method(model: Model, lacks: str) -> GraphMethod:
    """The model's method, a network of one encoder; other models have no part of that kind.

    Raises:
        UnsupportedError: it is no such network.
    """
    method = model.method
    if not isinstance(method, GraphMethod):
        words = f"a {model.kind} has no {lacks} that could be removed"
        raise UnsupportedError(words, hint="teach a smaller model: --how 'born_again(student=gin)'")
    if len(method.ready().inputs) != 1:
        words = f"the model has an encoder for each of {len(method.ready().inputs)} columns"
        raise UnsupportedError(words, hint="prune a model of one column")
    return method


def rates_of(method: GraphMethod, share: float, how: Retrain) -> list[float]:
    """The learning rate of each epoch of the training that follows the pruning.

    Renda, Frankle and Carbin 2020, section 2: a training of T epochs is rewound by t of them. Rewinding the learning
    rate trains the pruned weights at the rates of epochs T - t to T; fine-tuning trains them as long at the rate of
    epoch T. T is the epoch whose weights were kept.

    Args:
        method: fitted.
        share: t / T.
        how: which of the two.

    Raises:
        UnsupportedError: the model does not hold the learning rates of its training.
    """
    if method.curves is None or not len(method.curves):
        words = "the model's file does not hold the learning rates of its training"
        raise UnsupportedError(words, hint="choose retrain=none, or train the model anew")
    end = len(method.curves) if method.best_epoch is None else min(method.best_epoch, len(method.curves))
    rates = [float(rate) for rate in method.curves["learning_rate"][:end]]
    replayed = rates[-max(math.ceil(share * len(rates)), 1) :]
    return replayed if how == "lr_rewind" else [rates[-1]] * len(replayed)


def retrain(
    method: GraphMethod,
    table: Table,
    valid: Table | None,
    rates: Sequence[float],
    *,
    seed: int,
    callbacks: Sequence[Callback] = (),
) -> GraphMethod:
    """A copy of a fitted method whose network trains on from its weights, on its own scales of labels and descriptors.

    Args:
        method: fitted; it stays as it is, and callbacks of its own training are left out.
        table, valid: rows to learn from, and those that pick the epoch.
        rates: learning rate of each epoch.
        seed: of the order of the rows and of dropout.
        callbacks: of this training.

    Raises:
        UnsupportedError: what the model was trained by cannot go on.
    """
    objective = get("objective", read_part(method.objective, "objective").name)
    plain = method.build(method.ready().inputs, d_extra=len(method.ready().descriptors.names),
                         targets=method.ready().outputs.targets).state_dict()  # fmt: skip
    if plain.keys() != method.ready().network.state_dict().keys():
        words = f"the callback {method.callback} has put parts into this network that cannot be trained on alone"
        raise UnsupportedError(words, hint="choose retrain=none, or a model without the callback")
    if not objective.labelled or objective.heads.__func__ is not Objective.heads.__func__:  # type: ignore[attr-defined]
        words = f"a model that was trained by the objective {method.objective} cannot be trained on"
        raise UnsupportedError(words, hint="choose retrain=none, or a supervised model")
    peak = max(*rates, float(np.finfo(np.float32).tiny))
    how: dict[str, Any] = {"epochs": len(rates), "min_steps": 0, "warmup_epochs": 0.0, "schedule": "constant"}
    how |= {"learning_rate": peak, "patience": None, "seed": seed, "label": "training the pruned network"}
    every = [Replay([rate / peak for rate in rates]), *callbacks]
    result = train_further(method, table, valid if valid is not None and len(valid) else None, every, **how)
    result.notes = (*result.notes, f"trained on for {len(rates)} epochs")
    return result
