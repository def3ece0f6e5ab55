"""Uniform quantisation of weights with learned step sizes and ranges, within a budget of bits."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from molgraph.train.callback import Callback, Compute
from molgraph.train.callbacks.mixout import weights_replaced
from molgraph.train.objective import Loss, StepState
from molgraph.train.packed_weights import FEWEST, MOST, PACKED, SHORTEST, Steps, dequantised

RATE = 10.0  # how much faster than a weight the logarithms of steps and ranges learn
PRICE, GROWTH = 0.03, 100.0  # of a bit too much for each weight, squared, at first; how much it grows by the end
WIDER, LEARNED, NEVER = 2, 2 / 3, 1e6  # bits more at first; when they are fixed; a loss that no epoch has
TRIED = 100  # steps of different lengths that are tried on a weight


class UniformQuantiser(torch.autograd.Function):
    """``Q(x) = d round(x / d)`` where ``|x| <= q``, else ``q sign(x)``, q being a multiple of d, at least one.

    Uhlich et al. 2020, the uniform quantiser with its gradients, straight through the rounding: ``dQ/dx`` is 1 inside
    and 0 outside, ``dQ/dd = (Q - x) / d`` inside and 0 outside, ``dQ/dq`` is 0 inside and ``sign(x)`` outside. So
    ``|dQ/dd| <= 1 / 2`` and ``|dQ/dq| <= 1`` whatever d and q are: why the paper learns these two, and has the bits
    follow as ``ceil(log2(q / d + 1)) + 1``, one of them the sign. Of bits and d the gradients are without bound.
    """

    @staticmethod
    def forward(ctx: Any, x: Tensor, step: Tensor, top: Tensor) -> Tensor:
        """Quantised x of any shape; ``step`` and ``top`` are above 0, without axes."""
        most = (top / step).round().clamp(min=1)
        output = step * torch.clamp((x / step).round(), -most, most)
        ctx.save_for_backward(x, output, step, top)
        return output

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Gradients of x, step and top."""
        (grad,), (x, output, step, top) = grads, ctx.saved_tensors
        inside = x.abs() <= top
        of_step = torch.where(inside, grad * (output - x) / step, 0).sum()
        of_top = torch.where(inside, 0, grad * x.sign()).sum()
        return grad * inside, of_step, of_top


def bits_of(step: Tensor, top: Tensor) -> Tensor:
    """``ceil(log2(q / d + 1)) + 1``, float of any shape; the gradient is that without rounding.

    Example:
        >>> bits_of(torch.tensor([1.0, 1.0]), torch.tensor([3.0, 4.0]))
        tensor([3., 4.])
    """
    smooth = torch.log2(top / step + 1) + 1
    whole = torch.log2((top / step).round().clamp(min=1) + 1).ceil() + 1
    return smooth + (whole - smooth).detach()


def levels(bits: Any) -> Any:
    """The largest whole number of so many bits, one of which is the sign: 7 of 4."""
    return 2 ** (bits - 1) - 1


def best_step(x: np.ndarray, bits: int) -> float:
    """The step, of a hundred, that rounds x to so many bits with the least squared error."""
    x, most = x.astype(np.float64), levels(bits)
    steps = [(float(np.abs(x).max()) or 1.0) * share / most for share in np.linspace(1 / TRIED, 1, TRIED)]
    errors = [float(np.square(step * np.rint(x / step).clip(-most, most) - x).sum()) for step in steps]
    return steps[int(np.argmin(errors))]


def within(smooth: np.ndarray, sizes: np.ndarray, budget: float) -> np.ndarray:
    """int64 [w]: whole numbers of bits from real ones, rounded up, and one less where they were rounded up most, until
    the mean over all weights is within the budget.

    Args:
        smooth: float [w], from 2 on.
        sizes: the number of weights that each is for.
        budget: 2 or more.

    Example:
        >>> within(np.array([3.1, 4.9]), np.array([10, 10]), 4.0).tolist()
        [3, 5]
    """
    widths = np.ceil(smooth - 1e-6).astype(np.int64).clip(FEWEST, MOST)
    while (widths * sizes).sum() > budget * sizes.sum():
        widths[int(np.argmax(np.where(widths > FEWEST, widths - smooth, -np.inf)))] -= 1
    return widths


def matrices(network: nn.Module) -> Iterator[tuple[str, nn.Parameter]]:
    """The weights that are quantised, by name: all but vectors, and those of torch's own recurrent layers."""
    spared = {value for module in network.modules() if isinstance(module, nn.RNNBase) for value in module.parameters()}
    for name, value in network.named_parameters():
        if value.ndim > 1 and value not in spared and value.numel():
            yield name, value


class QuantisedTraining(Callback):
    """Train with quantised weights, whose steps and ranges are learned under a budget of bits (Uhlich et al. 2020).

    The loss has ``p max(0, b - budget)^2`` added, b being the mean number of bits of a weight (in the paper their sum);
    p grows as training goes on. After two thirds of the steps the bits are fixed within the budget, and weights and
    steps learn on; one of those epochs is kept. Steps and ranges are learned by their logarithms, so that they stay
    above 0. In the end the network has quantised weights.

    Args:
        budget: mean number of bits of a weight.
        learn_widths: whether each matrix learns a range of its own, or all have as many bits, and learn steps alone.
    """

    def __init__(self, budget: float, *, learn_widths: bool = True) -> None:
        super().__init__()
        self.budget, self.learn_widths = budget, learn_widths
        self.names: list[str] = []
        self.widths: np.ndarray | None = None  # the bits, once they are fixed

    def begin(self, network: Any) -> None:
        """Begin with two bits more than the budget has, or with as many as it has, and the steps that round best."""
        weights = dict(matrices(network))
        self.names = [*weights]
        self.sizes = np.array([value.numel() for value in weights.values()])
        width = min(int(self.budget) + (WIDER if self.learn_widths else 0), MOST)
        steps = [best_step(value.detach().cpu().numpy(), width) for value in weights.values()]
        part = nn.Module()
        part.step = nn.Parameter(torch.tensor(steps).log() / RATE)
        part.top = nn.Parameter(torch.tensor(steps).mul(levels(width)).log() / RATE)
        network.parts[PACKED] = part
        if not self.learn_widths:
            self.widths = np.full(len(steps), width)

    def scales(self, network: Any) -> tuple[Tensor, Tensor]:
        """float [w]: the steps and ranges of the matrices."""
        part = network.parts[PACKED]
        step = (RATE * part.step).exp()
        if self.widths is None:
            return step, torch.maximum((RATE * part.top).exp(), step)
        return step, step * step.new_tensor(levels(self.widths))

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss of the quantised weights, and the price of bits beyond the budget."""
        step, top = self.scales(network)
        weights = {
            name: UniformQuantiser.apply(network.get_parameter(name), step[i], top[i])
            for i, name in enumerate(self.names)
        }
        with weights_replaced(network, weights):
            loss = objective(network, batch, state)
        if not state.training:  # an epoch before the bits are fixed is never the best
            return loss.with_penalties({"bits": step.new_tensor(0.0 if self.widths is not None else NEVER)})
        share = step.new_tensor(self.sizes / self.sizes.sum())
        over = ((bits_of(step, top) * share).sum() - self.budget).clamp(min=0)
        return loss.with_penalties({"bits": PRICE * GROWTH**state.progress * over.square()})

    def after_step(self, network: Any, state: StepState) -> None:
        """Fix the bits when their time has come; a matrix that loses one has its range in longer steps."""
        if self.widths is not None or (state.progress < LEARNED and state.step + 1 < state.n_steps):
            return
        step, top = (scale.detach().double().cpu().numpy() for scale in self.scales(network))
        self.widths = within(np.log2(top / step + 1) + 1, self.sizes, self.budget)
        longer = np.maximum(step, top / levels(self.widths))
        network.parts[PACKED].step.data.copy_(torch.from_numpy(np.log(longer) / RATE))

    def end(self, network: Any) -> None:
        """Leave the network with quantised weights, as its file keeps them, within the budget."""
        assert self.widths is not None
        steps = self.scales(network)[0].detach().double().numpy()
        del network.parts[PACKED]
        quantise_weights(
            network, {n: Steps(int(b), float(d)) for n, b, d in zip(self.names, self.widths, steps, strict=True)}
        )


def quantise_weights(network: Any, steps: Mapping[str, Steps]) -> None:
    """Round the named weights of a network to multiples of a step, as many as their bits can tell apart."""
    network.quantised = {}
    for name, (bits, length) in steps.items():
        weight, step = network.get_parameter(name), float(np.float32(max(length, SHORTEST)))
        codes = np.rint(weight.detach().numpy().astype(np.float64) / step).clip(-levels(bits), levels(bits))
        weight.data = torch.from_numpy(dequantised(codes, step))
        network.quantised[name] = Steps(bits, step)


def round_weights(network: Any, budget: float) -> None:
    """Round the weights of a network to the widest whole number of bits within the budget, without training."""
    bits = int(budget)
    steps = {name: Steps(bits, best_step(value.detach().numpy(), bits)) for name, value in matrices(network)}
    quantise_weights(network, steps)
