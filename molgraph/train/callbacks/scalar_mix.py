"""Scalar mix: read a property from a learned weighted mean of the layers of a frozen encoder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.encoder import Encoded
from molgraph.nn.head import Head
from molgraph.train.callback import Callback, Compute, Phase
from molgraph.train.callbacks.lp_ft import new_parameters
from molgraph.train.objective import Loss, StepState

MIX = "scalar_mix"  # its place among the network's parts


@dataclass
class Mixed:
    """What the encoder gave in this pass: the sums over the atoms of each graph, and how many atoms those are."""

    layers: tuple[Tensor, ...]
    atoms: Tensor


class ScalarMix(nn.Module):
    """``gamma sum_j softmax(s)_j h_j`` of layers j = 1 to L, h_j the mean of the atoms' states after layer j.

    Args:
        n_layers: L.
        norm: whether each h_j is brought to mean 0 and variance 1 first.
    """

    def __init__(self, n_layers: int, norm: bool = False) -> None:
        super().__init__()
        self.s, self.gamma, self.norm = nn.Parameter(torch.zeros(n_layers)), nn.Parameter(torch.ones(())), norm
        self.seen: Mixed | None = None

    def forward(self, layers: Tensor) -> Tensor:
        """The mix of the layers' states, float [l, n, d] to [n, d]."""
        if self.norm:
            layers = F.layer_norm(layers, layers.shape[-1:])
        return self.gamma * torch.einsum("l,lnd->nd", self.s.softmax(0), layers)

    def ask(self, encoder: nn.Module, args: Any, kwargs: Any) -> Any:
        """Before the encoder's pass: ask for the states of its layers."""
        return args, kwargs | {"rows": True}

    def keep(self, encoder: nn.Module, args: Any, encoded: Encoded) -> None:
        """After the encoder's pass: keep them for the head."""
        self.seen = Mixed(encoded.layers, args[0]["atom"].offsets.diff().clamp(min=1))

    def read(self, head: nn.Module, args: Any) -> Any:
        """Before the head's pass: the mix in the place of the encoder's state."""
        assert self.seen is not None
        layers, self.seen = torch.stack(self.seen.layers) / self.seen.atoms[:, None], None
        return self(layers.to(args[0].dtype)), *args[1:]


@register(
    "callback",
    "scalar-mix",
    summary="reads the property from a learned mix of a frozen encoder's layers, and says at which depth",
    paper="Peters et al. 2018, NAACL",
    systems=(
        SystemCard(
            "elmo",
            left_out="the bidirectional language model of tokens: any pretrained encoder of molecules is mixed; layer "
            "0, the atoms' features; the pull of s to equal weights",
            off="linear-probe",
            beside=("the last layer", "equal weights"),
        ),
    ),
    command="molgraph pretrain dataset:nci -m gin --epochs 2 -o gin.mgm && "
    "molgraph finetune gin.mgm dataset:chembl2321810 --callback scalar-mix -o model.mgm",
)
class ScalarMixing(Callback):
    """The head reads ``gamma sum_j softmax(s)_j h_j`` in the place of the encoder's own state; the encoder is frozen.

    Peters et al. 2018, "Deep contextualized word representations", equation 1, over ``Encoded.layers``: L + 1 numbers
    and the head learn. Where layers are narrower than the encoder's state the head's first layer is made anew. The
    curves have the weights of the layers (``train_layer_1`` and so on), and the record of the fit says at which depth
    the property is read.

    Use it on an encoder that was pretrained by another task, whose last layer is often not the best for a property.
    Known limits: encoders that give no states of layers are refused; the step size of the head is that of the weights.

    Args:
        norm: whether each layer's states are brought to mean 0 and variance 1 first, as the paper does at times.
    """

    needs_start = needs_layers = True

    def __init__(self, *, norm: bool = False) -> None:
        super().__init__()
        self.norm = norm

    def begin(self, network: Any) -> None:
        """Put the mix between encoder and head."""
        encoder, head = network.encoder, network.head
        if not encoder.d_layers or len(set(encoder.d_layers)) > 1:
            hint = "choose one that does, such as gin, mpnn or attentivefp"
            raise UnsupportedError(f"scalar-mix reads the states of layers, which {type(encoder).__name__} does not "
                                   "give", hint=hint)  # fmt: skip
        if len(network.encoders) > 1 or network.level != "row" or not isinstance(head, Head) or head.reads_atoms:
            hint = "choose one column of molecules and a head such as params.head=perceptron"
            raise UnsupportedError("scalar-mix mixes the states of one column for a head of rows", hint=hint)
        mix, first = ScalarMix(len(encoder.d_layers), self.norm), head.layers[0]
        assert isinstance(first, nn.Linear)
        if encoder.d_layers[0] != network.d_state:
            width = first.in_features - network.d_state + encoder.d_layers[0]
            head.layers[0] = nn.Linear(width, first.out_features)
        network.parts[MIX] = mix
        encoder.register_forward_pre_hook(mix.ask, with_kwargs=True)
        encoder.register_forward_hook(mix.keep)
        head.register_forward_pre_hook(mix.read)

    def phases(self, network: Any) -> list[Phase]:
        """One phase, of what is new."""
        return [Phase(1.0, new_parameters(network, "scalar-mix"))]

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss, with the weights of the layers for the curves."""
        loss = objective(network, batch, state)
        if not state.training:
            return loss
        weights = network.parts[MIX].s.softmax(0).detach()
        shown = {f"layer_{j}": weight * loss.count for j, weight in enumerate(weights, 1)}
        return loss._replace(parts={**loss.parts, **shown})

    def notes(self, network: Any) -> list[str]:
        """The depth, from 1, at which the property is read."""
        weights = network.parts[MIX].s.detach().softmax(0)
        depth = float((weights * torch.arange(1, len(weights) + 1)).sum())
        shown = ", ".join(f"layer {j} {weight:.2f}" for j, weight in enumerate(weights.tolist(), 1))
        return [f"read at depth {depth:.1f} of {len(weights)} layers, by the weights {shown}"]
