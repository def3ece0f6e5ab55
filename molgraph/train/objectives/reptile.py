"""Reptile: first-order meta-learning, towards the weights that several gradient steps on one task reach."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, StepState
from molgraph.train.objectives.maml import MAML
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "reptile",
    summary="weights near those that several steps reach on each task, by first derivatives",
    paper="Nichol et al. 2018, arXiv:1803.02999",
    systems=(
        SystemCard(
            "reptile",
            left_out="Adam within a task",
            off="-s params.objective.inner_steps=1",
            beside=("joint training", "maml"),
            command="molgraph pretrain dataset:tox21 --objective reptile --epochs 3 -o init.mgm",
        ),
    ),
)
class Reptile(MAML):
    """Reptile: the first-order meta-learner for big encoders and many inner steps.

    Nichol et al. 2018, "On First-Order Meta-Learning Algorithms", algorithm 2 (batched): k steps of gradient descent on
    a task lead from ``theta`` to ``theta_t``, and the mean over tasks of ``(theta - theta_t) / inner_rate`` is the
    gradient of the outer optimiser, whose rate times ``1 / inner_rate`` is the paper's epsilon. The steps take the two
    halves of a task's rows in turn, as two batches of it. With one step it is joint training.

    Memory holds one task's step at a time, so that k may be large. The validation part is judged as maml's is, by the
    query's loss after k steps on the support. Batch norm is refused.

    Args:
        network: all of its weights are adapted, those of the head too.
        inputs: what it reads.
        outputs: the tasks: targets of rows, of one kind.
        inner_rate: step size within a task.
        inner_steps: steps within a task (k).
        shots: rows of a task's first half, at most half of those that it has.
        queries: rows of its second half, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.

    Raises:
        LabelError: tasks that one output cannot have.
        UnsupportedError: a network with batch norm.
    """

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        inner_rate: Positive = 0.01,
        inner_steps: Annotated[int, Range(1, 256)] = 6,
        shots: Count = 16,
        queries: Count = 16,
        n_tasks: Count = 4,
    ) -> None:
        how: dict[str, Any] = {"first_order": True, "shots": shots, "queries": queries, "n_tasks": n_tasks}
        super().__init__(network, inputs, outputs, inner_rate=inner_rate, inner_steps=inner_steps, **how)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """In training a loss whose gradient is ``(theta - theta_t) / inner_rate``, and whose value the last step's."""
        if not state.training:
            return super().forward(network, batch, state)
        assert batch.weights is not None
        weights = self.adapted(network)
        tasks = batch.weights[1].any(dim=0).nonzero()[:, 0].tolist()
        total = torch.stack([value.sum() for value in weights.values()]).sum() * 0
        for task in tasks:
            fast, loss = self.walk(network, weights, batch, task)
            pull = [(value * (value - fast[name]).detach()).sum() for name, value in weights.items()]
            way = torch.stack(pull).sum() / self.inner_rate
            total = total + way - way.detach() + loss
        return Loss(total, len(tasks))

    def walk(
        self, network: nn.Module, weights: dict[str, Tensor], batch: Sample, task: int
    ) -> tuple[dict[str, Tensor], Tensor]:
        """The weights after ``inner_steps``, support and query in turn, and the loss before the last step."""
        fast, loss = {name: value.detach() for name, value in weights.items()}, torch.zeros(())
        for step in range(self.inner_steps):
            leaves = {name: value.requires_grad_() for name, value in fast.items()}
            loss = self.loss(network, leaves, batch, task, step % 2)
            gradients = torch.autograd.grad(loss, list(leaves.values()), materialize_grads=True)
            pairs = zip(fast.items(), gradients, strict=True)
            fast = {name: (value - self.inner_rate * gradient).detach() for (name, value), gradient in pairs}
        return fast, loss.detach()
