"""Self-training: train a teacher on labels, then a student on labels and the teacher's confident pseudo-labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import deepcopy
from typing import Annotated, Any

import torch
from torch import Tensor

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample

DECAY = 0.99  # of the running means of the two losses
LEAST = 1e-8  # mean loss of pseudo-labels, below which they count no more


@register(
    "objective",
    "self-training",
    summary="labels of some rows; a teacher's confident predictions are the labels of others",
    paper="Zoph et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "self-training",
            left_out="images and their augmentations (views stand in their place); a student with fresh weights",
            off="-s params.objective.threshold=2",
            beside=("labels alone", "shuffled pseudo-labels"),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m gin --objective self-training --unlabelled dataset:nci -o m.mgm",
)
class SelfTraining(Objective):
    """Self-training with normalised losses; the network is the student, the teacher is the objective's own.

    Zoph et al. 2020, "Rethinking Pre-training and Self-training", section 3 and appendix: the teacher learns the
    labels alone over the share ``teacher`` of the steps, then it is frozen. The student begins with its weights and
    minimises
    ``1 / (1 + alpha) (L_h + alpha mean(L_h) / mean(L_p) L_p)``, where L_h is the mean loss of labels, L_p that of
    pseudo-labels, alpha is ``weight``, and the means run over the steps. A batch without pseudo-labels gives L_h.
    Classes are pseudo-labels where the likeliest has a probability of ``threshold`` or more. Values are where the
    teacher's variance is at most ``1 - threshold`` of the labels'; all values where the head gives no deviation.

    Use it where few rows have labels and many like them have none. Known limits: the errors of a poor teacher are
    learnt.

    Args:
        network: the student.
        inputs: what it reads.
        outputs: the targets, those of whole rows, on the scale of the labelled rows.
        threshold: lowest confidence of a pseudo-label; above 1 there are none, at 0 all are.
        weight: alpha.
        teacher: share of the steps in which the teacher learns.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets of atoms or bonds.
    """

    semi_supervised = True
    unused_parameters = True  # the student's first, then the teacher's

    mean_labels: Tensor
    mean_pseudo: Tensor
    steps: Tensor

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        threshold: NotNegative = 0.9,
        weight: NotNegative = 1.0,
        teacher: Annotated[float, Range(0, 1, below=True)] = 0.5,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        if outputs.level != "row":
            words = f"self-training labels rows, and {outputs.targets[0].name} is one of each {outputs.level}"
            raise UnsupportedError(words, hint="leave the objective out")
        self.supervised, self.teacher = Supervised(outputs, penalties=penalties), deepcopy(network)
        self.threshold, self.weight, self.share = threshold, weight, teacher
        self.valid_parts = self.supervised.valid_parts
        for name in ("mean_labels", "mean_pseudo"):
            self.register_buffer(name, torch.tensor(0.0))
        self.register_buffer("steps", torch.tensor(0.0))

    def teaching(self, state: StepState) -> bool:
        """Whether the teacher still learns."""
        return state.step < int(self.share * state.n_steps)

    def warming_up(self, state: StepState) -> bool:
        """Whether the student has not yet begun."""
        return self.teaching(state)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the normalised mean of the pseudo-labels' is added."""
        assert batch.y is not None and batch.weights is not None
        learner = self.teacher if self.teaching(state) else network
        if not state.training:
            return self.supervised(learner, batch, state)
        self.teacher.train(learner is self.teacher)
        raw, penalties = learner(batch)
        check_penalties(self.supervised.penalties, penalties)
        count = int((batch.weights > 0).sum())
        total, parts = (learner.head.losses(raw, batch.y) * batch.weights).sum(), {"pseudo": raw.new_zeros(())}
        if learner is network and count:
            labels, confidence = self.pseudo_labels(batch)
            chosen = (batch.weights == 0) & (confidence >= self.threshold)
            if chosen.any() and self.weight:
                pseudo = network.head.losses(raw, labels)[chosen].mean()
                alpha, ratio = self.weight, self._ratio(total / count, pseudo)
                parts["pseudo"] = alpha / (1 + alpha) * ratio * pseudo * count
                total = total / (1 + alpha) + parts["pseudo"]
        return Loss(total, count, parts).with_penalties(penalties, self.supervised.penalties)

    @torch.no_grad()
    def after_step(self, network: Any, state: StepState) -> None:
        """Hand the weights over when the teacher is done."""
        if self.teaching(state) and not self.teaching(state._replace(step=state.step + 1)):
            network.load_state_dict(self.teacher.state_dict())

    @torch.no_grad()
    def pseudo_labels(self, batch: Sample) -> tuple[Tensor, Tensor]:
        """The teacher's label of each row and target, and its confidence; float [n, t] both, without a gradient."""
        raw, deviation = self.teacher.head.values(self.teacher(batch)[0])
        labels, confidence = [], []
        for kind, start, stop in self.supervised.kinds:
            part = raw[:, start:stop].float()
            if kind == "regression":
                labels.append(part)
                spread = torch.zeros_like(part) if deviation is None else deviation[:, start:stop].nan_to_num().float()
                confidence.append(1 - spread.square())
            else:
                p = part.softmax(1) if kind == "multiclass" else torch.cat([(-part).sigmoid(), part.sigmoid()], dim=1)
                likeliest = p.max(dim=1, keepdim=True)
                labels.append(likeliest.indices.float())
                confidence.append(likeliest.values)
        return torch.cat(labels, dim=1), torch.cat(confidence, dim=1)

    @torch.no_grad()
    def _ratio(self, labels: Tensor, pseudo: Tensor) -> Tensor:
        """The running mean of the loss of labels over that of pseudo-labels, both with this step."""
        self.steps += 1
        share = (1 - DECAY) / (1 - DECAY**self.steps)  # so that the first steps have equal weights
        self.mean_labels.lerp_(labels.detach().to(self.mean_labels), share)
        self.mean_pseudo.lerp_(pseudo.detach().to(self.mean_pseudo), share)
        return self.mean_labels / self.mean_pseudo.clamp(min=LEAST)
