"""Prompt: learn numbers that are added to the features of atoms, and leave a pretrained encoder as it is."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.data.batch import GraphBatch
from molgraph.train.callback import Callback, Compute, Phase
from molgraph.train.callbacks.lp_ft import new_parameters
from molgraph.train.objective import Loss, StepState

PROMPT = "prompt"  # its place among the network's parts


class Prompt(nn.Module):
    """``x_i + sum_j softmax_j(a_j . x_i) p_j`` for the features x_i of atom i and n vectors p_j, which start at 0.

    Args:
        n: vectors.
        d: width of the features.
        level: whose rows have them, such as ``atom``.
    """

    def __init__(self, n: int, d: int, level: str) -> None:
        super().__init__()
        self.p, self.level = nn.Parameter(torch.zeros(n, d)), level
        self.a = nn.Parameter(torch.randn(n, d) / d**0.5) if n > 1 else None

    def forward(self, x: Tensor) -> Tensor:
        """The features with the prompt added, float [rows, d]."""
        return x + (self.p if self.a is None else (x @ self.a.T).softmax(1) @ self.p)

    def add(self, encoder: nn.Module, args: tuple[GraphBatch], kwargs: Any) -> Any:
        """Before the encoder's pass: a batch with other features."""
        (batch,) = args
        return (batch.with_level(self.level, table=self(batch[self.level].table)),), kwargs


@register(
    "callback",
    "prompt",
    summary="learns a few hundred numbers that are added to atoms' features; the encoder stays as it is",
    paper="Elsayed et al. 2019, ICLR; of graphs: Fang et al. 2023, NeurIPS",
    systems=(
        SystemCard(
            "adversarial-reprogramming",
            left_out="tanh, the image's mask and the hard-coded map of labels: a head is learned",
            off="linear-probe",
            beside=("the head alone", "a random encoder"),
        ),
    ),
    command="molgraph pretrain dataset:nci --epochs 2 -o encoder.mgm && "
    "molgraph finetune encoder.mgm dataset:chembl2321810 --callback prompt -s params.head_layers=1 -o model.mgm",
)
class PromptTuning(Callback):
    """A new task is learned by changing what a frozen encoder reads: ``loss + decay |p|^2`` over the prompt p.

    Elsayed, Goodfellow and Sohl-Dickstein 2019, "Adversarial reprogramming of neural networks", equation 3, in the
    form of Fang et al. 2023, "Universal prompt tuning for graph neural networks", equations 8 and 12: one vector is
    added to the features of every atom, or several, weighted by attention. A prompt of 0 is the encoder itself.

    Use it for many small assays on one large encoder; with ``-s params.head_layers=1`` an assay is some hundred
    numbers beside it. Known limits: a linear encoder answers a prompt by the same shift for every atom.

    Args:
        n: vectors; 1 has no attention.
        decay: of the squared prompt, for each label.
    """

    needs_start = True

    def __init__(self, *, n: Width = 4, decay: NotNegative = 0.0) -> None:
        super().__init__()
        self.n, self.decay = n, decay

    def begin(self, network: Any) -> None:
        """Put the prompt before the encoder."""
        spec, encoder = network.inputs[0].spec, network.encoder
        for option in encoder.options:
            spec = option.widen(spec)
        level = next((name for name in ("atom", "token") if spec.widths.get(name)), "")
        if len(network.encoders) > 1 or encoder.by_code or not level:
            hint = "choose one encoder of atoms' features, such as gin or dmpnn"
            raise UnsupportedError("a prompt is added to the features of one column's atoms", hint=hint)
        network.parts[PROMPT] = Prompt(self.n, spec.width(level), level)
        encoder.register_forward_pre_hook(network.parts[PROMPT].add, with_kwargs=True)

    def phases(self, network: Any) -> list[Phase]:
        """One phase, of what is new."""
        return [Phase(1.0, new_parameters(network, "prompt"))]

    def loss(self, objective: Compute, network: Any, batch: Any, state: StepState) -> Loss:
        """The objective's loss with the penalty."""
        loss = objective(network, batch, state)
        if not (state.training and self.decay):
            return loss
        return loss.with_penalties({PROMPT: network.parts[PROMPT].p.square().sum()}, {PROMPT: self.decay})

    def notes(self, network: Any) -> list[str]:
        """How many numbers the task has learned."""
        sizes = [sum(value.numel() for value in part.parameters()) for part in (network.parts[PROMPT], network.head)]
        whole = sum(value.numel() for value in network.parameters())
        share = f"{sum(sizes) / whole:.1%} of the network"
        return [f"learned {sizes[0]:,} numbers of the prompt and {sizes[1]:,} of the head, {share}"]
