"""Take gradient steps that gradients flow through, to train one network for what the other will do next."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn
from torch.func import functional_call

Weights = dict[str, Tensor]


def looked_ahead(loss: Callable[[Weights], Tensor], weights: Mapping[str, Tensor], steps: int, rate: float) -> Weights:
    """Weights after some gradient steps on a loss, as functions of all else that the loss depends on.

    ``w_(k+1) = w_k - rate dL(w_k)/dw_k``: the unrolled steps of an adversary (Metz et al. 2017, "Unrolled Generative
    Adversarial Networks", ICLR), of which one is the step that a player of LOLA anticipates (Foerster
    et al. 2018, "Learning with Opponent-Learning Awareness", AAMAS). Those that are passed stay as they are, and get no
    gradient.

    Args:
        loss: weights by name -> the loss of the player whose weights they are.
        weights: of that player now.
        steps: K; without any, the weights as they are.
        rate: the learning rate of a step.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> after = looked_ahead(lambda w: (w["y"] - x) ** 2, {"y": torch.tensor(0.0)}, 1, 0.5)
        >>> after["y"].item(), torch.autograd.grad(after["y"], x)[0].item()
        (3.0, 1.0)
    """
    now = {name: value.detach().requires_grad_() for name, value in weights.items()}
    for _ in range(steps):
        with torch.enable_grad():
            slopes = torch.autograd.grad(loss(now), [*now.values()], create_graph=True)
        now = {name: value - rate * slope for (name, value), slope in zip(now.items(), slopes, strict=True)}
    return now


def weights_of(network: nn.Module) -> Weights:
    """The parameters of a network by name."""
    return dict(network.named_parameters())


def with_weights(network: nn.Module, weights: Weights, x: Tensor) -> Tensor:
    """A network's answer with other weights in the place of its parameters."""
    output: Tensor = functional_call(network, weights, (x,))
    return output
