"""Base class of few-shot objectives that fit a linear head in closed form on each task's support set."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F
from torch.nn.modules.batchnorm import _BatchNorm

from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.base.ranges import Count
from molgraph.train.episodes import Episodes
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


class ClosedForm(Objective):
    """An objective over episodes of tasks, which are target columns: the encoder learns, its head is solved for.

    A batch has a few tasks, each with a support and a query; the head of a task is a function of its support's states
    and labels (``solve``), and a step minimises the loss of the queries, through that function.

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, numbers or of two classes.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.

    Raises:
        UnsupportedError: a network with batch norm.
    """

    labelled = False
    tasks = True
    trains_head = False
    name: str

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        shots: Count = 16,
        queries: Count = 32,
        n_tasks: Count = 4,
    ) -> None:
        super().__init__()
        if any(isinstance(module, _BatchNorm) for module in network.modules()):
            words = f"{self.name} trains no network with batch norm, whose statistics mix the rows of support and query"
            raise UnsupportedError(words, hint="choose another norm, such as params.norm=layer")
        self.classes = outputs.targets[0].kind == "binary"
        self.episodes = Episodes(n_tasks, shots, queries, classes=self.classes)

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """None: a head is solved for where it is needed."""
        kinds = {target.kind for target in outputs.targets}
        if kinds not in ({"binary"}, {"regression"}) or outputs.level != "row" or kinds == {cls.refused_kind()}:
            words = ", ".join(f"{target.name} ({target.kind})" for target in outputs.targets)
            wanted = "of two classes" if cls.classes_only else "all numbers, or all of two classes"
            raise LabelError(
                f"the tasks of {cls.name} are targets of rows, {wanted}: {words}",
                hint="name such targets: --target A --target B",
            )
        return Outputs((), np.zeros(0), np.ones(0))

    @classmethod
    def refused_kind(cls) -> str:
        """The kind of target that is no task of it; none by default."""
        return "regression" if cls.classes_only else ""

    @abstractmethod
    def solve(self, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Weight [1, d] and bias [1] of a task's head, from the states [n, d] and labels [n] of its support."""

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over tasks of the query's mean loss under the head of the support."""
        assert batch.y is not None and batch.weights is not None
        encoded = network.encode(batch)
        h = network.answer(encoded, batch)
        total, tasks = h.sum() * 0, batch.weights[1].any(dim=0).nonzero()[:, 0].tolist()
        right = torch.zeros((), device=h.device)
        for task in tasks:
            support, query = (batch.weights[part, :, task] > 0 for part in (0, 1))
            weight, bias = self.solve(h[support], batch.y[support, task])
            raw, y = (h[query] @ weight.T + bias)[:, 0], batch.y[query, task]
            losses = (
                F.binary_cross_entropy_with_logits(raw, y, reduction="none") if self.classes else (raw - y).square()
            )
            total = total + losses.mean()
            right = right + ((raw > 0) == (y > 0.5)).float().mean().detach()
        parts = {"accuracy": right} if self.classes else {}
        loss = Loss(total, len(tasks), parts)
        return loss if not tasks else loss.with_penalties({k: v for item in encoded for k, v in item.penalties.items()})
