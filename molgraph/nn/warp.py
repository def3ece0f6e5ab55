"""Warp layers: linear layers between those that are trained, which precondition the gradient of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from torch import nn
from torch.utils.hooks import RemovableHandle


class Warps(nn.Module):
    """Square linear layers that stand before and between the layers of a head, the identity at first.

    Flennerhag et al. 2020, "Meta-Learning with Warped Gradient Descent", section 2.2: of ``f = w_2 h_2 w_1 h_1``, tasks
    train the layers h alone. The gradient of h reaches it through the warps w, whose Jacobian preconditions it; with
    linear warps the step in the space of ``w h`` is multiplied by ``w w^T``.

    Args:
        widths: of the head's input, and of its hidden layers.
    """

    def __init__(self, widths: Sequence[int]) -> None:
        super().__init__()
        layers = [nn.Linear(d, d) for d in widths]
        self.layers = nn.ModuleList(layers)
        for layer in layers:
            nn.init.eye_(layer.weight)
            nn.init.zeros_(layer.bias)

    def attach(self, head: Any) -> list[RemovableHandle]:
        """Put the warps before the head and after its hidden layers; the handles take them off."""
        first, *rest = self.layers
        hooks = [head.register_forward_pre_hook(_before(first))]
        return hooks + [
            layer.register_forward_hook(_after(warp)) for layer, warp in zip(head.layers, rest, strict=False)
        ]


def _before(warp: nn.Module) -> Callable[..., tuple[Any, ...]]:
    def change(head: nn.Module, args: tuple[Any, ...]) -> tuple[Any, ...]:
        return warp(args[0]), *args[1:]

    return change


def _after(warp: nn.Module) -> Callable[..., Any]:
    def change(layer: nn.Module, args: Any, raw: Any) -> Any:
        return warp(raw)

    return change


def widths_of(head: Any, d_state: int) -> list[int]:
    """Those of a head's state and of its hidden layers."""
    return [d_state, *(layer.out_features for layer in head.layers[:-1])]
