"""Few-shot ridge regression: train an encoder through the ridge regression of each task's support set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from molgraph.base.ranges import Count, Positive
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.closed_form import ridge_head
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objectives.closed_form import LinearClosedForm
from molgraph.train.outputs import Outputs
from molgraph.train.ridge_probe import LOGIT


@register(
    "objective",
    "ridge",
    summary="states from which ridge regression on a few molecules predicts the others",
    paper="Bertinetto et al. 2019, ICLR",
    systems=(
        SystemCard(
            "learned-unsupervised-update-rule",
            left_out="the learned update rule and its unrolling: the meta-objective alone, a differentiable ridge",
            off="-s params.objective.penalty=1e9",
            beside=("random weights", "ridge regression on fingerprints"),
            command="molgraph pretrain dataset:tox21 --objective ridge --epochs 3 -o ridge.mgm",
            modules=("molgraph.nn.closed_form", "molgraph.train.objectives.closed_form"),
        ),
    ),
)
class Ridge(LinearClosedForm):
    """Few-shot ridge regression: the loss of the queries under the ridge regression of the support, differentiated.

    Bertinetto et al. 2019, "Meta-learning with differentiable closed-form solvers", R2-D2: the penalty and the scale
    of the outputs are learned beside the encoder. Metz et al. 2019, "Meta-Learning Update Rules for Unsupervised
    Representation Learning", section 3.2, judge representations by the same loss. ``molgraph finetune ridge.mgm
    assay.csv`` sets the head of a new assay by ridge regression (``--callback ridge``).

    Args:
        network: an encoder without a head.
        inputs: what it reads.
        outputs: the tasks: targets of rows, all numbers or all of two classes (learned as -2 and 2).
        penalty: at the start, for each number of a state.
        shots: rows of a task's support, at most half of those that it has.
        queries: rows of its query, at most.
        n_tasks: tasks of a batch; ``batch_size`` says how many steps an epoch has.
    """

    name = "ridge"
    adapts_by = "ridge"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        penalty: Positive = 1.0,
        shots: Count = 16,
        queries: Count = 32,
        n_tasks: Count = 4,
    ) -> None:
        super().__init__(network, inputs, outputs, shots=shots, queries=queries, n_tasks=n_tasks)
        self.log_penalty = nn.Parameter(torch.tensor(penalty).log())

    def solve(self, network: Any, h: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        """The ridge regression of the support."""
        values = torch.where(y > 0.5, LOGIT, -LOGIT) if self.classes else y
        return ridge_head(h, values[:, None], self.log_penalty.exp() * h.shape[1] ** 0.5)
