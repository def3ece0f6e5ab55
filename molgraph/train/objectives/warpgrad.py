"""WarpGrad: learn layers between those of the head that make gradient descent on a new task go straight and fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.warp import Warps, widths_of
from molgraph.train.network import Network
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.reptile import Reptile
from molgraph.train.samples import Sample

WARPS = "warps"  #: their place among the network's parts


@register(
    "objective",
    "warpgrad",
    summary="layers of the head that precondition gradient descent on each task, and weights to start from",
    paper="Flennerhag et al. 2020, ICLR",
    systems=(
        SystemCard(
            "warpgrad",
            left_out="warps inside the encoder, and non-linear ones: linear layers around those of the head",
            off="reptile",
            beside=("gradient descent without warps",),
            command="molgraph pretrain dataset:tox21 --objective warpgrad --epochs 3 -o warp.mgm",
            modules=("molgraph.nn.warp", "molgraph.train.objectives.reptile", "molgraph.train.callbacks.warp"),
        ),
    ),
)
class WarpGrad(Reptile):
    """Warped gradient descent over tasks; the weights that tasks start from are learned by Reptile.

    Flennerhag et al. 2020, "Meta-Learning with Warped Gradient Descent", equation 8: with theta on the way of gradient
    descent on a task, where it is held fixed, the warps phi minimise ``L_Q(theta - alpha grad L_S(theta; phi); phi)``,
    averaged over the way. No gradient goes through the way, so that it may be long. ``molgraph finetune warp.mgm
    assay.csv`` keeps the warps and trains all other weights (``--callback warp``).

    Use it where new assays have hundreds of labels, too many for the few steps of ``maml``. Args and errors are those
    of ``reptile``.
    """

    adapts_by = "warp"

    @classmethod
    def network_parts(cls, network: Network, **_: Any) -> Mapping[str, nn.Module]:
        """The warps."""
        return {WARPS: Warps(widths_of(network.head, network.d_state))} if network.has_head else {}

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Reptile's loss, and that of the warps."""
        hooks = network.parts[WARPS].attach(network.head)
        try:
            return super().forward(network, batch, state)
        finally:
            for hook in hooks:
                hook.remove()

    def adapted(self, network: nn.Module) -> dict[str, Tensor]:
        """All weights but the warps."""
        return {name: value for name, value in super().adapted(network).items() if not name.startswith("parts.")}

    def walk(
        self, network: nn.Module, weights: dict[str, Tensor], batch: Sample, task: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The weights after ``inner_steps`` on the support, and the loss of the warps, whose value is the query's."""
        fast, losses = {name: value.detach() for name, value in weights.items()}, list[Tensor]()
        for _ in range(self.inner_steps):
            leaves = {name: value.requires_grad_() for name, value in fast.items()}
            gradients = torch.autograd.grad(
                self.loss(network, leaves, batch, task, 0),
                [*leaves.values()],
                create_graph=True,
                materialize_grads=True,
            )
            pairs = zip(fast.items(), gradients, strict=True)
            moved = {name: value.detach() - self.inner_rate * gradient for (name, value), gradient in pairs}
            losses.append(self.loss(network, moved, batch, task, 1))
            fast = {name: value.detach() for name, value in moved.items()}
        return fast, torch.stack(losses).mean()
