"""Prune attention heads by learned gates with an L0 penalty."""

from __future__ import annotations

import math
from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.contracts import Method
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.seeds import derive
from molgraph.base.systems import SystemCard
from molgraph.compress.compressor import Compressor
from molgraph.compress.heads import attentions, with_heads
from molgraph.compress.retrain import graph_method, rates_of, retrain
from molgraph.data.table import Table
from molgraph.nn.removable import Heads, largest
from molgraph.train.callback import Callback, Compute
from molgraph.train.model import Model
from molgraph.train.objective import Loss, StepState

TEMPERATURE, LOW, HIGH = 2 / 3, -0.1, 1.1  # beta, gamma and zeta of Louizos et al. 2018
START = 2.0  # of log alpha: a head is open with probability 0.97
REACH = 12.0  # how far log alpha could go in the whole training, were each step of the optimiser a learning rate


@register(
    "compressor",
    "l0-heads",
    summary="trains gates on attention heads with an L0 penalty and removes those that close",
    paper="Voita et al. 2019, ACL; gates: Louizos et al. 2018, ICLR",
    systems=(
        SystemCard(
            "l0-attention-head-gates",
            left_out="relevance of heads (LRP) and their roles; translation; attentions without any head",
            off="'l0-heads(lam=0)'",
            beside=("as many heads removed at random",),
            command="molgraph train dataset:adme_sol -m graphgps -o gps.mgm && "
            "molgraph compress gps.mgm dataset:adme_sol --how 'l0-heads(lam=0.01)' -o pruned.mgm",
            modules=("molgraph.compress.heads", "molgraph.nn.removable"),
        ),
    ),
)
class L0Heads(Compressor):
    """Train a network of several heads on with a gate on each, then remove the heads whose gate is shut.

    Voita et al. 2019, "Analyzing Multi-Head Self-Attention", section 6: ``Concat(g_i head_i) W_O`` with gates of the
    Hard Concrete distribution, ``s = sigmoid((log u - log(1 - u) + log a) / beta)``,
    ``g = clip(s (zeta - gamma) + gamma, 0, 1)``, and the loss ``L + lam sum_i P(g_i != 0)`` with
    ``P(g != 0) = sigmoid(log a - beta log(-gamma / zeta))``. In prediction a gate has the value of
    ``s = sigmoid(log a)``, which is multiplied into the output weights of the heads that stay.

    The last epoch's weights are kept: an epoch chosen by the validation part would be the first one, in which all gates
    are open. One head of each attention stays.

    Args:
        lam: of the expected number of open gates, beside the mean loss of a label.
        rewind: the share of the training's epochs whose learning rates are gone through once more; 1: all of them.
    """

    source = "graphgps(d_hidden=8, walk=4, depth=2)"
    small = MappingProxyType({"lam": 0.01})

    def __init__(self, lam: NotNegative = 0.01, *, rewind: Annotated[float, Range(0, 1, above=True)] = 0.5) -> None:
        self.lam, self.rewind = lam, rewind

    def compress(self, model: Model, table: Table, valid: Table, seed: int) -> Method:
        """The network without the heads whose gates are shut."""
        method = graph_method(model, "attention heads")
        rates = rates_of(method, self.rewind, "lr_rewind")
        steps = math.ceil(len(table) / method.batch_size)
        gates = HeadGates(attentions(method), self.lam, pace=REACH / max(sum(rates) * steps, 1e-12))
        result = retrain(method, table, None, rates, seed=derive(seed, "gates"), callbacks=[gates])
        values = gates.values()
        left = [largest(value, max(1, int((value > 0).sum()))) for value in values]
        return with_heads(result, left)


class HeadGates(Callback):
    """A gate on each head of several attentions, whose values are in the output weights at the end.

    Args:
        found: the attentions.
        lam: of the expected number of open gates.
        pace: what log alpha moves by where the optimiser moves by 1.
    """

    def __init__(self, found: Sequence[Heads], lam: float, *, pace: float = 1.0) -> None:
        super().__init__()
        self.found, self.lam, self.pace = found, lam, pace
        self.moves = nn.ParameterList(nn.Parameter(torch.zeros(layer.units.n)) for layer in found)

    def log_alpha(self) -> list[Tensor]:
        """Of the gates of each attention."""
        return [START + self.pace * move for move in self.moves]

    def begin(self, network: Any) -> None:
        """Put a gate before each layer that reads heads."""
        self.hooks = [
            network.get_submodule(layer.output).register_forward_pre_hook(self._gate(place))
            for place, layer in enumerate(self.found)
        ]

    def _gate(self, place: int) -> Any:
        def hook(module: nn.Module, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            gates = gate_values(self.log_alpha()[place], draw=module.training)
            x = args[0]
            return (x * gates.to(x.dtype).repeat_interleave(x.shape[1] // len(gates)),)

        return hook

    def expected_open(self) -> Tensor:
        """``sum_i P(g_i != 0)``."""
        return torch.stack([chance_open(alpha).sum() for alpha in self.log_alpha()]).sum()

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss with the penalty."""
        loss = objective(network, batch, state)
        return loss.with_penalties({"l0_heads": self.lam * self.expected_open()}) if state.training else loss

    @torch.no_grad()
    def values(self) -> list[Tensor]:
        """Those of the gates in prediction."""
        return [gate_values(alpha, draw=False).cpu() for alpha in self.log_alpha()]

    @torch.no_grad()
    def end(self, network: Any) -> None:
        """Multiply the gates into the output weights and take them off."""
        for hook in self.hooks:
            hook.remove()
        for layer, value in zip(self.found, self.values(), strict=True):
            weight = network.get_submodule(layer.output).weight
            weight *= value.repeat_interleave(weight.shape[1] // len(value))


def gate_values(log_alpha: Tensor, *, draw: bool) -> Tensor:
    """Gates of 0 to 1: drawn from the Hard Concrete distribution, or those of prediction.

    Example:
        >>> gate_values(torch.tensor([-9.0, 0.0, 9.0]), draw=False).tolist()
        [0.0, 0.5, 1.0]
    """
    if draw:
        u = torch.rand_like(log_alpha).clamp(1e-6, 1 - 1e-6)
        s = torch.sigmoid((u.log() - (1 - u).log() + log_alpha) / TEMPERATURE)
    else:
        s = torch.sigmoid(log_alpha)
    return (s * (HIGH - LOW) + LOW).clamp(0, 1)


def chance_open(log_alpha: Tensor) -> Tensor:
    """The probability that a drawn gate is above 0."""
    return torch.sigmoid(log_alpha - TEMPERATURE * math.log(-LOW / HIGH))
