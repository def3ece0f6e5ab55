"""Divide the epochs of a fit into phases, each with its trainable parameters and learning rates."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, cast

from torch import nn

from molgraph.base.errors import ConflictError
from molgraph.base.recipe_keys import GradientDescent
from molgraph.train.callback import Callback, Phase
from molgraph.train.optimizers import Steps, learning_rate


class Span(NamedTuple):
    """Epochs ``first`` to before ``end``: names of the frozen parameters, and the multiple of the learning rate."""

    first: int
    end: int
    frozen: frozenset[str]
    rate: float


class Timeline:
    """The phases of all callbacks together.

    Args:
        network: whose parameters learn.
        callbacks: of the fit; without phases all parameters learn in one phase.
        how: the settings of gradient descent, with the number of epochs.
        steps: of an epoch.

    Raises:
        ConflictError: a callback whose only phase leaves another's later phases nothing to train.
    """

    def __init__(self, network: nn.Module, callbacks: Iterable[Callback], how: GradientDescent, steps: int) -> None:
        self.network, self.how, self.steps, epochs = network, how, steps, cast(int, how.epochs)
        names = {name for name, value in network.named_parameters() if value.requires_grad}
        plans = [_ends(phases, epochs) for callback in callbacks if (phases := callback.phases(network))]
        if len(plans) > 1 and min(map(len, plans)) == 1:
            words = "two callbacks divide the fit into phases, and one of them trains the same parameters throughout"
            raise ConflictError(words, hint="name one of them, such as --callback lp-ft")
        ends = sorted({epochs} | {end for plan in plans for end, _ in plan if end > 0})
        self.spans = []
        for first, end in zip([0, *ends], ends, strict=False):
            phases = [next(phase for last, phase in plan if last > first) for plan in plans]
            frozen = names - names.intersection(*(phase.trains for phase in phases if phase.trains is not None))
            self.spans.append(Span(first, end, frozenset(frozen), math.prod(phase.rate for phase in phases)))

    @property
    def last(self) -> int:
        """The first epoch of the last phase."""
        return self.spans[-1].first

    def span(self, epoch: int) -> Span:
        """The phase of an epoch."""
        return next((span for span in self.spans if epoch < span.end), self.spans[-1])

    def rate(self, step: int) -> float:
        """The learning rate of a step; warm-up and schedule begin anew in each phase."""
        first, end, _, rate = self.span(step // self.steps)
        warmup = int(self.how.warmup_epochs * self.steps)
        steps = Steps(self.how.learning_rate * rate, warmup, (end - first) * self.steps)
        return learning_rate(self.how.schedule, steps, step - first * self.steps)

    def enter(self, epoch: int) -> None:
        """Freeze what does not learn in this epoch: parameters get no gradient, their modules do not train."""
        self._freeze(self.span(epoch).frozen)
        if self.span(epoch).frozen:
            for module in self.network.modules():
                values = [*module.parameters()]
                if values and not any(value.requires_grad for value in values):
                    module.eval()  # batch norm leaves its statistics as they are, dropout keeps all

    def leave(self) -> None:
        """Let every parameter learn again."""
        self._freeze(frozenset())

    def _freeze(self, names: frozenset[str]) -> None:
        ever = frozenset[str]().union(*(span.frozen for span in self.spans))
        for name, value in self.network.named_parameters() if ever else ():
            if name in ever:
                value.requires_grad_(name not in names)


def _ends(phases: Sequence[Phase], epochs: int) -> list[tuple[int, Phase]]:
    """The epoch before which each phase ends."""
    done = 0.0
    ends = []
    for phase in phases:
        done += phase.share
        ends.append((round(epochs * done), phase))
    return [*ends[:-1], (epochs, phases[-1])]


def decay_groups(parameters: Iterable[Any], module: nn.Module, weight_decay: float) -> list[Any]:
    """Parameters as an optimiser takes them: weight decay leaves biases, norms and embeddings alone.

    Args:
        parameters: those that an optimiser has.
        module: the network and whatever else they are of.
        weight_decay: of the others; without any they are no groups.
    """
    values = list(dict.fromkeys(parameters))
    if not weight_decay:
        return values
    spared: set[Any] = {value for name, value in module.named_parameters() if value.ndim < 2 or name.endswith("bias")}
    spared |= {submodule.weight for submodule in module.modules() if isinstance(submodule, nn.Embedding)}
    groups: list[dict[str, Any]] = [{"params": [value for value in values if value not in spared]}]
    groups.append({"params": [value for value in values if value in spared], "weight_decay": 0.0})
    return [group for group in groups if group["params"]]
