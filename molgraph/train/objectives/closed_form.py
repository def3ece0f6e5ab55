"""Base classes of few-shot objectives that make a head from each task's support set without gradient descent."""

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

    A batch has a few tasks, each with a support and a query; the outputs of a task's query are a function of the
    support's states and labels (``raw``), and a step minimises the loss of the queries, through that function.

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
    def raw(self, network: Any, h: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """Raw outputs [q] of the query's states [q, d], from the states [n, d] and labels [n] of a task's support."""

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over tasks of the query's mean loss under the head of the support."""
        assert batch.y is not None and batch.weights is not None
        encoded = network.encode(batch)
        h = network.answer(encoded, batch)
        total, tasks = h.sum() * 0, batch.weights[1].any(dim=0).nonzero()[:, 0].tolist()
        right = torch.zeros((), device=h.device)
        for task in tasks:
            support, query = (batch.weights[part, :, task] > 0 for part in (0, 1))
            raw, y = self.raw(network, h[support], batch.y[support, task], h[query]), batch.y[query, task]
            losses = (
                F.binary_cross_entropy_with_logits(raw, y, reduction="none") if self.classes else (raw - y).square()
            )
            total = total + losses.mean()
            right = right + ((raw > 0) == (y > 0.5)).float().mean().detach()
        parts = {"accuracy": right} if self.classes else {}
        loss = Loss(total, len(tasks), parts)
        return loss if not tasks else loss.with_penalties({k: v for item in encoded for k, v in item.penalties.items()})


class LinearClosedForm(ClosedForm):
    """The head of a task is linear: a function of its support alone."""

    @abstractmethod
    def solve(self, network: Any, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """Weight [1, d] and bias [1] of a task's head, from the states [n, d] and labels [n] of its support."""

    def raw(self, network: Any, h: Tensor, y: Tensor, query: Tensor) -> Tensor:
        """The query's outputs under the head of the support."""
        weight, bias = self.solve(network, h, y)
        return (query @ weight.T + bias)[:, 0]


class SupportHead(LinearClosedForm):
    """The head of a task is what a trained part of the network makes of its support (``network.parts[name]``)."""

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
        super().__init__(network, inputs, outputs, shots=shots, queries=queries, n_tasks=n_tasks)
        network.parts[self.name].numbers.fill_(not self.classes)  # type: ignore[operator]

    def solve(self, network: Any, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The part's answer to the support."""
        head: tuple[Tensor, Tensor] = network.parts[self.name](h, centred(y) if self.classes else y)
        return head


def centred(y: Tensor) -> Tensor:
    """Labels of two classes as -1 and 1."""
    return 2 * y - 1
