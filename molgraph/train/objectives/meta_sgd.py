"""Meta-SGD: learn weights and a step size for each layer, by which a few steps reach a good model of a new task."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import Count, Positive
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objectives.maml import MAML, Steps
from molgraph.train.outputs import Outputs

FASTER = 10  # than the weights the logarithms of the step sizes move, as few epochs are many steps of the weights


@register(
    "objective",
    "meta-sgd",
    summary="weights and step sizes of the layers that adapt to a new task in few steps",
    paper="Li et al. 2017, arXiv:1707.09835",
    systems=(
        SystemCard(
            "lpg",
            left_out="the learned rule itself, an LSTM over an agent's experience: the step sizes of gradient descent "
            "alone are learned (Li et al. 2017)",
            off="maml",
            beside=("the best single step size",),
            command="molgraph pretrain dataset:tox21 --objective meta-sgd --epochs 3 -o init.mgm",
            modules=("molgraph.train.objectives.maml",),
        ),
    ),
)
class MetaSGD(MAML):
    """MAML whose step sizes are learned: an update rule that is discovered from tasks, in its smallest form.

    Li et al. 2017, "Meta-SGD: Learning to Learn Quickly for Few-Shot Learning", equation 3: ``theta' = theta - alpha o
    grad L_S(theta)``, and theta and alpha are learned together from the loss of the queries. Here alpha has one value
    for the weights, and one for the bias, of each layer. Oh et al. 2020, "Discovering Reinforcement Learning
    Algorithms", learn a whole update rule in the same way, from an agent's lifetimes.

    The step sizes are those of the steps within a task; ``molgraph finetune`` starts from the weights alone.

    Args:
        network: all of its weights are adapted, those of the head too.
        inputs: what it reads.
        outputs: the tasks: targets of rows, of one kind.
        inner_rate: step size of all layers at the start.
        inner_steps: steps within a task (k).
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
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
        inner_steps: Steps = 1,
        shots: Count = 16,
        queries: Count = 16,
        n_tasks: Count = 4,
    ) -> None:
        how: dict[str, Any] = {"shots": shots, "queries": queries, "n_tasks": n_tasks}
        super().__init__(network, inputs, outputs, inner_rate=inner_rate, inner_steps=inner_steps, **how)
        self.places = {name: i for i, (name, _) in enumerate(network.named_parameters())}
        self.log_rates = nn.Parameter(torch.full((len(self.places),), math.log(inner_rate) / FASTER))

    def rate(self, name: str) -> Tensor:
        """The learned step size of the weights of that name."""
        return (FASTER * self.log_rates[self.places[name]]).exp()
