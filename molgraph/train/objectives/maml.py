"""MAML: learn weights from which a few steps of gradient descent reach a good model of a new task."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Annotated, Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.batchnorm import _BatchNorm

from molgraph.base.contracts import Target
from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.base.ranges import Count, Positive, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.meta_dropout import MetaDropout
from molgraph.train.episodes import Episodes
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample

Steps = Annotated[int, Range(0, 64)]


@register(
    "objective",
    "maml",
    summary="weights that adapt to a new task in few steps",
    paper="Finn et al. 2017, ICML",
    systems=(
        SystemCard(
            "maml",
            left_out="its reinforcement learning; batch norm is refused",
            off="-s params.objective.inner_steps=0",
            beside=("joint training", "first order"),
            command="molgraph pretrain dataset:tox21 --objective maml --epochs 3 -o init.mgm",
        ),
        SystemCard(
            "meta-dropout",
            left_out="noise in the encoder: the hidden layers of the head alone have it, and none after pretraining",
            off="maml",
            beside=("maml",),
            command="molgraph pretrain dataset:tox21 --objective 'maml(meta_dropout=true)' --epochs 3 -o init.mgm",
            modules=("molgraph.nn.meta_dropout",),
        ),
    ),
)
class MAML(Objective):
    """Model-agnostic meta-learning; a task is a target column, and all tasks share one output.

    Finn et al. 2017, "Model-Agnostic Meta-Learning for Fast Adaptation of Deep Networks": a batch has a few
    tasks, each with a support S and a query Q among its labelled rows, and a step minimises the sum over tasks of
    ``L_Q(theta_k)``, where ``theta_(i+1) = theta_i - inner_rate grad L_S(theta_i)``, k times from ``theta_0 = theta``.

    What is held in memory grows with tasks times inner steps. Batch norm is refused: statistics over rows of support
    and query together would tell one of the other. With all tasks in each batch, on Tox21, supervised pretraining on
    nine assays was the better start of three others (ROC AUC with 16 labels 0.686, with MAML 0.658, by ridge
    regression on fingerprints 0.625).

    Args:
        network: all of its weights are adapted, those of the head too.
        inputs: what it reads.
        outputs: the tasks: targets of rows, of one kind.
        inner_rate: step size within a task.
        inner_steps: steps within a task (k).
        first_order: whether the gradient of ``theta_k`` is taken for that of ``theta`` (FOMAML), at less work.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
        meta_dropout: whether the steps on the support have noise in the head whose mean is learned by the queries'
            loss alone, and not within a task (Lee et al. 2020, ``nn.meta_dropout``); queries have the mean.

    Raises:
        LabelError: tasks that one output cannot have.
        UnsupportedError: a network with batch norm; noise in a head without a hidden layer.
    """

    labelled = False
    tasks = True
    grad_in_validation = True

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        inner_rate: Positive = 0.01,
        inner_steps: Steps = 1,
        first_order: bool = False,
        shots: Count = 16,
        queries: Count = 16,
        n_tasks: Count = 4,
        meta_dropout: bool = False,
    ) -> None:
        super().__init__()
        if any(isinstance(module, _BatchNorm) for module in network.modules()):
            raise UnsupportedError(
                "maml trains no network with batch norm, whose statistics mix the rows of support and query",
                hint="choose another norm, such as params.norm=layer",
            )
        self.heads(outputs)  # which refuses tasks that one column cannot have
        self.inner_rate, self.inner_steps = inner_rate, inner_steps
        self.first_order = first_order
        self.noise: MetaDropout | None = None
        if meta_dropout:
            if len(getattr(network.head, "layers", ())) < 2:
                words = "meta_dropout is noise on the hidden layers of the head, which has none"
                raise UnsupportedError(words, hint="set params.head_layers=2")
            self.noise = MetaDropout(network.head)
        self.episodes = Episodes(n_tasks, shots, queries, classes=outputs.targets[0].kind == "binary")

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """One column for all tasks."""
        kinds = {target.kind for target in outputs.targets}
        if len(kinds) > 1 or "multiclass" in kinds or outputs.level != "row":
            words = ", ".join(
                f"{t.name} ({t.kind}{'' if t.level == 'row' else f', {t.level}'})" for t in outputs.targets
            )
            raise LabelError(
                f"the tasks of maml share one output, which these targets cannot: {words}",
                hint="name targets of rows that are all numbers or all of two classes: --target A --target B",
            )
        bounds = outputs.targets[0].bounds
        return Outputs((Target("task", outputs.targets[0].kind, bounds=bounds),), np.zeros(1), np.ones(1))

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over tasks of the query's mean loss under weights that were adapted to the support."""
        assert batch.weights is not None
        weights = self.adapted(network)
        tasks = batch.weights[1].any(dim=0).nonzero()[:, 0].tolist()
        if not tasks:
            return Loss(torch.stack([w.sum() for w in weights.values()]).sum() * 0, 0)
        total = torch.zeros((), device=batch.weights.device)
        for task in tasks:
            fast = self.adapt(network, weights, batch, task, second_order=state.training and not self.first_order)
            loss = self.loss(network, fast, batch, task, 1)
            total = total + (loss if state.training else loss.detach())
        return Loss(total, len(tasks))

    def adapted(self, network: nn.Module) -> dict[str, Tensor]:
        """The weights that the steps within a task move."""
        return {name: value for name, value in network.named_parameters() if value.requires_grad}

    def adapt(
        self, network: nn.Module, weights: dict[str, Tensor], batch: Sample, task: int, *, second_order: bool = False
    ) -> dict[str, Tensor]:
        """The weights after ``inner_steps`` on a task's support; the network itself is not changed.

        With ``second_order`` gradients go through the steps to ``weights``.
        """
        for _ in range(self.inner_steps):
            loss = self.loss(network, weights, batch, task, 0)
            gradients = torch.autograd.grad(
                loss, list(weights.values()), create_graph=second_order, materialize_grads=True
            )
            weights = {
                name: value - self.rate(name) * gradient
                for (name, value), gradient in zip(weights.items(), gradients, strict=True)
            }
        return weights

    def rate(self, name: str) -> float | Tensor:
        """The step size of the weights of that name."""
        return self.inner_rate

    def loss(self, network: Any, weights: dict[str, Tensor], batch: Sample, task: int, part: int) -> Tensor:
        """The mean loss of a task's support (part 0) or query (part 1) under these weights, with the penalties."""
        assert batch.y is not None and batch.weights is not None
        noise = (
            nullcontext() if self.noise is None else self.noise.on(network.head, sample=not part and network.training)
        )
        with noise:
            raw, penalties = torch.func.functional_call(network, weights, (batch,))
        counts = batch.weights[part, :, task]
        mean = (network.head.losses(raw, batch.y[:, task : task + 1])[:, 0] * counts).sum() / (counts > 0).sum()
        return sum(penalties.values(), mean)
