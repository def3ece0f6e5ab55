"""Optimisers and learning-rate schedules by name, over torch's own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any, Protocol, runtime_checkable

import torch
from torch import nn

from molgraph.base.parts import make_part
from molgraph.base.ranges import Range
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard

USUAL_EPOCHS, USUAL_STEPS = 50, 3000  # where neither epochs nor min_steps is given


@runtime_checkable
class MakeOptimizer(Protocol):
    """A registered optimiser: a class of torch's kind, or a function that makes one; ``lr`` changes at every step."""

    def __call__(self, params: Any, *, lr: float, weight_decay: float) -> torch.optim.Optimizer: ...


@runtime_checkable
class Schedule(Protocol):
    """A registered schedule: the learning rate after the warm-up.

    ``done`` goes from 0 to 1, the share of the steps after the warm-up that are done. At 0 it is ``peak``, and never
    more; twice the peak gives twice the rate.
    """

    def __call__(self, peak: float, done: float) -> float: ...


def stretched(how: GradientDescent, steps: int) -> GradientDescent:
    """As many more epochs, patience and warm-up, for so many steps an epoch, as ``min_steps`` asks for.

    Where neither is given there are 50 epochs, or as many as make 3,000 steps: for a few hundred molecules 50 are few.

    Example:
        >>> few = stretched(GradientDescent(epochs=50, patience=15, min_steps=3000), 20)
        >>> few.epochs, few.patience, few.warmup_epochs
        (150, 45, 6.0)
        >>> stretched(GradientDescent(), 20).epochs, stretched(GradientDescent(epochs=5), 20).epochs
        (150, 5)
    """
    asked = how.epochs or USUAL_EPOCHS
    least = how.min_steps or (0 if how.epochs else USUAL_STEPS)
    epochs = max(asked, math.ceil(least / steps))
    times = epochs / asked
    patience = None if how.patience is None else math.ceil(how.patience * times)
    return how.model_copy(update={"epochs": epochs, "patience": patience, "warmup_epochs": how.warmup_epochs * times})


def waiting(patience: int, best: int) -> int:
    """Epochs without gain after the best epoch (from 0) before training stops.

    As many as led to it, so that no more than half of all come after it; a third of the patience at least, all of it
    at most.

    Example:
        >>> [waiting(15, best) for best in (1, 9, 40)]
        [5, 10, 15]
    """
    return min(patience, max(math.ceil(patience / 3), best + 1))


def make_optimizer(
    name: str, parameters: Iterable[nn.Parameter], learning_rate: float, weight_decay: float
) -> torch.optim.Optimizer:
    """A registered optimiser over some parameters, as ``sgd(momentum=0.5)``."""
    fixed = {"lr": learning_rate, "weight_decay": weight_decay}
    optimizer: torch.optim.Optimizer = make_part("optimizer", name, list(parameters), **fixed)
    return optimizer


def check_optimizer(name: str) -> None:
    """Refuse an unknown optimiser or setting before any data are read."""
    make_optimizer(name, [nn.Parameter(torch.zeros(1))], 1e-3, 0.0)


def _register(name: str, make: Callable, summary: str, paper: str = "", **fixed: Any) -> None:
    register("optimizer", name, summary=summary, paper=paper)(partial(make, **fixed))


_register("adam", torch.optim.Adam, "Adam", "Kingma and Ba 2015, ICLR", fused=True)
_register(
    "adamw",
    torch.optim.AdamW,
    "decoupled weight decay, 0 unless set",
    "Loshchilov and Hutter 2019, ICLR",
    fused=True,
)
_register("sgd", torch.optim.SGD, "stochastic gradient descent with Nesterov's momentum", momentum=0.9, nesterov=True)
_register("rmsprop", torch.optim.RMSprop, "RMSprop")
_register(
    "radam",
    torch.optim.RAdam,
    "rectified Adam, which needs no warm-up",
    "Liu et al. 2020, ICLR",
    decoupled_weight_decay=True,
)


@register(
    "optimizer",
    "sgdw",
    summary="sgd with decoupled weight decay",
    paper="Loshchilov and Hutter 2019, ICLR",
    systems=(
        SystemCard(
            "adamw-sgdw",
            left_out="decay normalised by the number of steps; warm restarts",
            off="sgd",
            beside=("sgd with the penalty in its gradient",),
            command="molgraph train dataset:chembl2321810 -m dmpnn --optimizer sgdw --weight-decay 0.1",
            modules=("molgraph.train.phases",),
        ),
    ),
)
class SGDW(torch.optim.SGD):
    """``w <- w - lr wd w``, then a step of ``sgd`` without the penalty: Loshchilov and Hutter 2019, algorithm 1.

    The decay is not in the momentum. As in torch's AdamW it is multiplied by the learning rate of the step.

    Args:
        params: parameters, or groups of them.
        lr: learning rate.
        weight_decay: share of a weight that a step of learning rate 1 takes away.
        momentum, nesterov: of the gradients.
    """

    def __init__(
        self,
        params: Any,
        *,
        lr: float,
        weight_decay: float = 0.0,
        momentum: Annotated[float, Range(0, 1, below=True)] = 0.9,
        nesterov: bool = True,
    ) -> None:
        super().__init__(params, lr=lr, weight_decay=weight_decay, momentum=momentum, nesterov=nesterov)

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Decay, then the gradient's step."""
        decays = [group["weight_decay"] for group in self.param_groups]
        try:
            for group, decay in zip(self.param_groups, decays, strict=True):
                group["weight_decay"] = 0.0
                for value in group["params"]:
                    if decay and value.grad is not None:
                        value.mul_(1 - group["lr"] * decay)
            return super().step(closure)
        finally:
            for group, decay in zip(self.param_groups, decays, strict=True):
                group["weight_decay"] = decay


@dataclass(frozen=True)
class Steps:
    """What a schedule is made for: the highest learning rate, and the numbers of steps."""

    peak: float
    warmup: int
    total: int


def learning_rate(schedule: str, steps: Steps, step: int) -> float:
    """The learning rate of a step, the first one being 0; a registered schedule's after the linear warm-up.

    Example:
        >>> steps = Steps(1e-3, warmup=10, total=100)
        >>> [round(learning_rate("exponential", steps, i), 6) for i in (0, 5, 10, 100, 500)]
        [0.0001, 0.00055, 0.001, 0.0001, 0.0001]
    """
    if step < steps.warmup:
        return steps.peak / 10 + (steps.peak - steps.peak / 10) * step / steps.warmup
    done = min((step - steps.warmup) / max(steps.total - steps.warmup, 1), 1.0)
    return float(make_part("schedule", schedule, steps.peak, done))


@register("schedule", "exponential", summary="decays to a tenth; chemprop's", paper="Vaswani et al. 2017, section 5.3")
def exponential(peak: float, done: float) -> float:
    """``peak (1 / 10)^done``."""
    return peak * (peak / 10 / peak) ** done


@register("schedule", "cosine", summary="half a cosine down to 0", paper="Loshchilov and Hutter 2017, ICLR")
def cosine(peak: float, done: float) -> float:
    """``peak (1 + cos(pi done)) / 2``."""
    return 0.5 * peak * (1 + math.cos(math.pi * done))


@register("schedule", "linear", summary="straight down to 0")
def linear(peak: float, done: float) -> float:
    """``peak (1 - done)``."""
    return peak * (1 - done)


@register("schedule", "constant", summary="the same rate to the end")
def constant(peak: float, done: float) -> float:
    """``peak``."""
    return peak
