"""Run an encoder's layers as an ordinary differential equation, or as a reversible network."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Annotated, Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.atom_encoder import AtomEncoder, Pooled, SharedStates
from molgraph.nn.block import BlockOption
from molgraph.nn.encoder import Encoder

Layer = Callable[[Tensor], Tensor]


class Stack(BlockOption):
    """The base class of ways through layers of one width (``AtomEncoder.through``)."""

    key = "stack"
    same_rows = True

    def build(self, encoder: Encoder) -> str:
        """An encoder whose layers are not of one width, or draw at random, is refused."""
        if not isinstance(encoder, AtomEncoder) or not encoder.stacked:
            return "has no stack of layers of one width"
        if any(isinstance(m, _DropoutNd) and m.p > 0 for m in encoder.modules()):
            return "drops values at random, which a layer that is computed twice would do otherwise"
        return ""

    def run(
        self, layers: Sequence[Layer], h: Float[Tensor, "n d"], skips: Sequence[Layer] = ()
    ) -> list[Float[Tensor, "_ d"]]:
        """The states after each layer; ``skips`` as in ``AtomEncoder.through``."""
        raise NotImplementedError


@register(
    "block",
    "ode",
    tags=("stack",),
    systems=(
        SystemCard(
            "tisode",
            left_out="adversarial attacks on pixels; a solver with adaptive steps",
            off="-s params.stack=none",
            beside=("the layers one after the other",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.stack=ode(time=1)'",
            modules=("molgraph.nn.block", "molgraph.nn.atom_encoder"),
        ),
    ),
    summary="the first layer as an ordinary differential equation, with a steady-state penalty",
    paper="Yan et al. 2020, ICLR",
)
class ODE(Stack):
    """``dh/dt = layer(h) - h`` from 0 to ``time``, by Runge-Kutta steps, one for each layer.

    Yan et al. 2020, "On Robustness of Neural Ordinary Differential Equations", section 4: the right-hand side does not
    depend on time, so that the first layer's weights serve at all times, and the penalty ``steady``,
    ``weight * int_T^2T mean |f(h(t))| dt``, keeps what comes after ``time`` near what is read (equation 5).

    Args:
        time: T, in units of a layer.
        weight: of the steady-state penalty; 0 does not go on to 2 T.
    """

    def __init__(
        self, time: Annotated[float, Range(0, 1_000, above=True)] = 1.0, weight: Annotated[float, Range(0, 1_000)] = 0.0
    ) -> None:
        super().__init__()
        self.time, self.weight = time, weight
        self.steady: Float[Tensor, ""] | None = None

    def run(
        self, layers: Sequence[Layer], h: Float[Tensor, "n d"], skips: Sequence[Layer] = ()
    ) -> list[Float[Tensor, "_ d"]]:
        """States at ``time / n``, ``2 time / n``, ... of n layers."""

        def slope(h: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
            return layers[0](h) - h

        step, states = self.time / len(layers), []
        for _ in layers:
            h = runge_kutta(slope, h, step)
            states.append(h)
        self.steady = None
        if self.training and self.weight > 0:
            moved = []
            for _ in layers:
                moved.append(slope(h).abs().mean())
                h = runge_kutta(slope, h, step)
            self.steady = self.weight * step * torch.stack(moved).sum()
        return states

    def pool(self, call: Callable[[SharedStates], Pooled], found: SharedStates) -> Pooled:
        """The encoder's own, with the steady-state penalty."""
        graphs, penalties = call(found)
        return graphs, penalties if self.steady is None else {**penalties, "steady": self.steady}


def runge_kutta(slope: Layer, h: Float[Tensor, " *d"], step: float) -> Float[Tensor, " *d"]:
    """One step of the classical fourth-order method.

    Example:
        >>> runge_kutta(lambda h: -h, torch.ones(1), 0.1).item()
        0.9048374891281128
    """
    a = slope(h)
    b = slope(h + step / 2 * a)
    c = slope(h + step / 2 * b)
    d = slope(h + step * c)
    return h + step / 6 * (a + 2 * b + 2 * c + d)


@register(
    "block",
    "reversible",
    tags=("stack",),
    systems=(
        SystemCard(
            "reformer",
            left_out="attention by locality-sensitive hashing and chunks, of no use for molecules of a hundred atoms",
            off="-s params.stack=none",
            beside=("the layers one after the other",),
            command="molgraph train dataset:chembl2321810 -m gin -s params.stack=reversible",
            modules=("molgraph.nn.block", "molgraph.nn.atom_encoder"),
        ),
    ),
    summary="layers in reversible pairs: memory for the gradient does not grow with depth",
    paper="Kitaev et al. 2020, ICLR; Gomez et al. 2017, NeurIPS 30",
)
class Reversible(Stack):
    """``y1 = x1 + F(x2)``, ``y2 = x2 + G(y1)`` with F and G two layers, from ``x1 = x2 = h``; the states' mean is read.

    Kitaev et al. 2020, "Reformer", equations 8 and 9: the inputs are computed again from the outputs on the way back,
    so that no states are stored between layers. A last layer without a partner is an F alone. Gradients of gradients,
    as forces need them in training, are not to be had.
    """

    def build(self, encoder: Encoder) -> str:
        """Keep the batch norms, whose statistics a second pass leaves alone."""
        self.norms = [m for m in encoder.modules() if isinstance(m, _BatchNorm)]
        return super().build(encoder)

    def run(
        self, layers: Sequence[Layer], h: Float[Tensor, "n d"], skips: Sequence[Layer] = ()
    ) -> list[Float[Tensor, "_ d"]]:
        """The mean of both halves after each layer."""
        pairs = _Coupled.apply(layers, self.norms, h) if torch.is_grad_enabled() else forward_pairs(layers, h)
        return [(a + b) / 2 for a, b in zip(pairs[::2], pairs[1::2], strict=True)]


def forward_pairs(layers: Sequence[Layer], h: Float[Tensor, "n d"]) -> tuple[Float[Tensor, "n d"], ...]:
    """Both halves after each layer, side by side."""
    halves, out = [h, h], list[Tensor]()
    for i, layer in enumerate(layers):
        halves[i % 2] = halves[i % 2] + layer(halves[1 - i % 2])
        out += halves
    return tuple(out)


def inverse(layers: Sequence[Layer], halves: Sequence[Float[Tensor, "n d"]]) -> list[Float[Tensor, "_ d"]]:
    """The halves before the first layer, from those after the last."""
    halves = [*halves]
    for i in reversed(range(len(layers))):
        halves[i % 2] = halves[i % 2] - layers[i](halves[1 - i % 2])
    return halves


class _Coupled(torch.autograd.Function):
    """All layers at once: the last halves alone are saved."""

    @staticmethod
    def forward(
        ctx: Any, layers: Sequence[Layer], norms: list[nn.Module], h: Float[Tensor, "n d"]
    ) -> tuple[Float[Tensor, "n d"], ...]:
        out = forward_pairs(layers, h)
        ctx.layers, ctx.norms = layers, norms
        ctx.save_for_backward(*(tensor.detach() for tensor in out[-2:]))
        return tuple(tensor.clone() if tensor is h else tensor for tensor in out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[None, None, Tensor]:
        halves, down = [*ctx.saved_tensors], [torch.zeros_like(grads[0]), torch.zeros_like(grads[0])]
        with _without_statistics(ctx.norms):
            for i in reversed(range(len(ctx.layers))):
                down = [total + grad for total, grad in zip(down, grads[2 * i : 2 * i + 2], strict=True)]
                mine, other = i % 2, 1 - i % 2
                with torch.enable_grad():
                    x = halves[other].detach().requires_grad_()
                    added = ctx.layers[i](x)
                halves[mine] = halves[mine] - added.detach()
                torch.autograd.backward(added, down[mine])
                down[other] = down[other] + (torch.zeros_like(x) if x.grad is None else x.grad)
        return None, None, down[0] + down[1]


@contextmanager
def _without_statistics(norms: list[nn.Module]) -> Iterator[None]:
    """Leave running statistics as they are."""
    kept = [(norm.momentum, norm.num_batches_tracked) for norm in norms]
    for norm in norms:
        norm.momentum, norm.num_batches_tracked = 0.0, None  # type: ignore[assignment]
    try:
        yield
    finally:
        for norm, (momentum, tracked) in zip(norms, kept, strict=True):
            norm.momentum, norm.num_batches_tracked = momentum, tracked
