"""UDA: semi-supervised training by consistency between molecules and their views, with annealed training signal."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
from torch import Tensor

from molgraph.base.ranges import NotNegative, Positive, Probability
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.guesses import CLASSES, check_one_column, log_probabilities, sharpened
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample

Schedule = Literal["all", "log", "linear", "exp"]


@register(
    "objective",
    "uda",
    summary="labels of some rows, annealed; all rows agree with their views",
    paper="Xie et al. 2020, NeurIPS",
    systems=(
        SystemCard(
            "uda-tsa",
            left_out="images and texts with their augmentations, a filter of unlabelled rows of other domains",
            off="-s params.objective.weight=0 -s params.objective.tsa=all",
            beside=("labels alone", "mean-teacher"),
            command="molgraph train dataset:tox21 -m gin --objective uda -s params.objective.weight=1 "
            '-s params.objective.tsa=exp --unlabelled dataset:nci --views "mask+drop" -o m.mgm',
            modules=("molgraph.train.guesses", "molgraph.train.draws"),
        ),
    ),
    command="molgraph train dataset:chembl2321810 -m gin --objective uda --unlabelled dataset:nci -o m.mgm",
)
class UDA(Objective):
    """Unsupervised data augmentation for few labels and many molecules.

    Xie et al. 2020, "Unsupervised Data Augmentation for Consistency Training", equation 1: the loss is the supervised
    one of molecules as they are, plus, over all rows, ``weight KL(p(y|x) || p(y|view(x)))``, where x is the molecule
    as it is and view(x) is seen through the views (``--views``). No gradient goes through p(y|x), which is
    sharpened to ``softmax(logits / temperature)`` and left out where its largest probability is below ``threshold``.
    Numbers agree by the squared distance of scaled values.

    Training signal annealing: a class label counts while ``p(y*|x) <= eta``, with
    ``eta = a (1 - 1/K) + 1/K`` of K classes, and a at the share t of the training: ``t`` (linear),
    ``1 - exp(-5 t)`` (log) or ``exp(5 (t - 1))`` (exp, for the fewest labels). The loss is the mean over labels that
    count.

    Use it where few rows have labels and many like them have none. Known limits: a view that changes the label
    teaches errors; every step encodes each molecule twice.

    Args:
        network: it reads one column.
        inputs: that column.
        outputs: the targets, those of whole rows, on the scale of the labelled rows.
        weight: of the consistency.
        tsa: schedule of the annealing; ``all`` counts all labels, as those of numbers always do.
        temperature: of the sharpening; 1 for none.
        threshold: lowest confidence of a class that is a target.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets of atoms or bonds, or several columns.
    """

    semi_supervised = True
    plain = "all"
    usual_views = "mask+drop"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        weight: NotNegative = 1.0,
        tsa: Schedule = "linear",
        temperature: Positive = 0.4,
        threshold: Probability = 0.8,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        check_one_column("uda", inputs, outputs)
        self.supervised = Supervised(outputs, penalties=penalties)
        self.weight, self.tsa, self.temperature, self.threshold = weight, tsa, temperature, threshold
        self.valid_parts = self.supervised.valid_parts

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the mean distance over its rows is added."""
        plain = batch.plain
        if not state.training or plain is None:
            return self.supervised(network, batch, state)
        assert plain.y is not None and plain.weights is not None
        raw, penalties = network(plain)
        check_penalties(self.supervised.penalties, penalties)
        losses, known = network.head.losses(raw, plain.y), plain.weights > 0
        counted = known & self.hard(losses, state.progress)
        total = (losses * plain.weights * counted).sum() * known.sum() / counted.sum().clamp(min=1)
        loss = Loss(total, int(known.sum())).with_penalties(penalties, self.supervised.penalties)
        distance = self.distances(network, raw.detach(), network(batch)[0]).mean()
        return loss.with_penalties({"consistency": distance}, {"consistency": self.weight})

    @torch.no_grad()
    def hard(self, losses: Tensor, progress: float) -> Tensor:
        """bool [n, t]: which labels are not yet known too well; ``losses`` of classes are ``-log p(y*|x)``."""
        limits = [
            eta(self.tsa, progress, max(stop - start, 2)) if kind in CLASSES else math.inf
            for kind, start, stop in self.supervised.kinds
        ]
        return (-losses).exp() <= losses.new_tensor(limits)

    def distances(self, network: Network, taught: Tensor, raw: Tensor) -> Tensor:
        """float [n, t]: of outputs through the views from those of the molecules as they are."""
        (taught, _), (seen, _) = network.head.values(taught), network.head.values(raw)
        columns = []
        for kind, start, stop in self.supervised.kinds:
            target, value = taught[:, start:stop].float(), seen[:, start:stop].float()
            if kind in CLASSES:
                sharp = sharpened(log_probabilities(kind, target), self.temperature)
                divergence = (torch.xlogy(sharp, sharp) - sharp * log_probabilities(kind, value)).sum(dim=1)
                sure = log_probabilities(kind, target).exp().amax(dim=1) >= self.threshold
                columns.append(divergence * sure)
            else:
                target, value = (target.sigmoid(), value.sigmoid()) if kind == "bounded" else (target, value)
                columns.append((target - value).square()[:, 0])
        return torch.stack(columns, dim=1)


def eta(schedule: Schedule, progress: float, n_classes: int) -> float:
    """The largest probability of a label that still counts, at a share of the training.

    Example:
        >>> eta("linear", 0.5, 2), round(eta("exp", 0.5, 2), 3), round(eta("log", 0.5, 2), 3)
        (0.75, 0.541, 0.959)
    """
    alphas = {
        "all": 1.0,
        "log": 1 - math.exp(-5 * progress),
        "linear": progress,
        "exp": math.exp(5 * (progress - 1)),
    }
    return alphas[schedule] * (1 - 1 / n_classes) + 1 / n_classes
