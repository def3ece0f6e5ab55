"""Gradients as features: a linear model of the states of a pretrained encoder and of how its weights change them."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import ordinary_tensors
from molgraph.nn.head import Head
from molgraph.train.callback import Callback, Phase
from molgraph.train.callbacks.mixout import weights_replaced

PART = "gradient_features"  # its place among the network's parts


class GradientFeatures(nn.Module):
    """``w_1 h(x) + J(x) w_2``, where J is the derivative of the network's outputs by the weights theta.

    Args:
        weights: theta by name, matrices of the encoder; w_2 has their shapes and starts at 0.
        d: width of the state h.
        d_out: raw outputs of the head.
    """

    def __init__(self, weights: dict[str, Tensor], d: int, d_out: int) -> None:
        super().__init__()
        self.names = tuple(weights)
        self.w_2 = nn.ParameterList(torch.zeros_like(value) for value in weights.values())
        self.w_1 = nn.Linear(d, d_out)
        nn.init.zeros_(self.w_1.weight)
        nn.init.zeros_(self.w_1.bias)

    def product(self, network: Any, sample: Any) -> tuple[Tensor, Tensor]:
        """``J(x) w_2``, float [n, d_out], in one forward pass of dual numbers; and the states h, float [n, d]."""

        def outputs(theta: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
            with weights_replaced(network.encoder, theta):
                encoded = network.encode(sample)
            return network.answer(encoded, sample), encoded[0].graphs

        theta = {name: network.encoder.get_parameter(name).detach() for name in self.names}
        result: Any = torch.func.jvp(outputs, (theta,), (dict(zip(self.names, self.w_2, strict=True)),))
        (_, h), (change, _) = result
        return change, h.detach()

    def add(self, network: Any, args: Any, found: Any) -> Any:
        """After the network's pass: its raw outputs with both terms added."""
        raw, penalties = found
        if not any(value.requires_grad or value.any() for value in self.parameters()):
            return found  # the head is learned first, and alone
        with ordinary_tensors():
            change, h = self.product(network, args[0])
        return raw + change.to(raw.dtype) + self.w_1(h.to(raw.dtype)), penalties


@register(
    "callback",
    "gradient-features",
    summary="a linear model of a frozen encoder's states and of their gradients by its weights",
    paper="Mu et al. 2020, ICLR",
    systems=(
        SystemCard(
            "gradient-features",
            left_out="the kernel's closed form; the head of the Jacobian is a perceptron unless head_layers is 1",
            off="linear-probe",
            beside=("the head alone",),
        ),
    ),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback gradient-features -o model.mgm",
)
class GradientFeaturesModel(Callback):
    """``head(h) + w_1 h + J w_2``: the head learns first, then w_1 and w_2 alone; the encoder stays as it is.

    Mu, Liang and Li 2020, "Gradients as features for deep representation learning", equation 4: J(x) is the derivative
    of the outputs by the encoder's last weights at those of the start, and J w_2 the first-order change of the outputs
    when they move by w_2. So it is the linear approximation of fine-tuning, without its lack of a single solution.
    J is never written out: ``torch.func.jvp`` gives the product in one pass.

    Use it for tens to hundreds of labels, where a probe is too little and fine-tuning too much. Known limits: training
    and prediction take about three times as long as those of the head alone.

    Args:
        last: how many of the encoder's matrices, the last ones, may move.
        share: of the epochs that the head learns alone.
    """

    needs_start = True

    def __init__(self, *, last: Count = 2, share: Share = 0.5) -> None:
        super().__init__()
        self.last, self.share = last, share

    def begin(self, network: Any) -> None:
        """Put both terms after the network."""
        if len(network.encoders) > 1 or network.level != "row" or not isinstance(network.head, Head):
            hint = "choose one column of molecules and a head such as params.head=perceptron"
            raise UnsupportedError("gradients are features of one column's states, for a head of rows", hint=hint)
        if network.reads_atoms:
            hint = "choose a head such as params.head=perceptron"
            raise UnsupportedError("gradient-features reads the states of rows, and the head those of atoms", hint=hint)
        matrices = [(name, value) for name, value in network.encoder.named_parameters() if value.ndim == 2]
        d_out: Any = network.head.layers[-1].out_features
        network.parts[PART] = GradientFeatures(dict(matrices[-self.last :]), network.d_state, d_out)
        network.register_forward_hook(network.parts[PART].add)

    def phases(self, network: Any) -> list[Phase]:
        """The head, then the terms."""
        names = [name for name, _ in network.named_parameters()]
        head = frozenset(name for name in names if name.startswith("head."))
        return [Phase(self.share, head), Phase(1 - self.share, frozenset(n for n in names if f"parts.{PART}" in n))]
