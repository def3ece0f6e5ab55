"""MixMatch: guess labels from several views, sharpen them, and mix the graph vectors and labels of all molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, NotNegative, Positive, Share
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.train.guesses import CLASSES, check_one_column, log_probabilities, sharpened
from molgraph.train.inputs import Input
from molgraph.train.network import Network
from molgraph.train.objective import Loss, Objective, StepState, check_penalties
from molgraph.train.objectives.supervised import Supervised
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "mixmatch",
    summary="class labels of some rows; guessed, sharpened and mixed labels of all rows",
    paper="Berthelot et al. 2019, NeurIPS",
    systems=(
        SystemCard(
            "mixmatch",
            left_out="images, of which inputs are mixed: here the vectors of graphs; the average of weights",
            off="-s params.objective.weight=0",
            beside=("labels alone",),
            modules=("molgraph.train.guesses", "molgraph.train.draws"),
        ),
    ),
    command="molgraph train dataset:tox21 -m gin --objective mixmatch --unlabelled dataset:nci -o m.mgm",
)
class MixMatch(Objective):
    """MixMatch for few class labels and many molecules.

    Berthelot et al. 2019, "MixMatch: A Holistic Approach to Semi-Supervised Learning", algorithm 1. A label that is
    missing is guessed: the mean of the class probabilities over the ``copies`` views of a molecule, sharpened by the
    temperature (equation 7), without a gradient. Every view of an unlabelled molecule, and one of each labelled one, is
    mixed with a random one of them, graph vectors and labels alike (equations 8 to 11): ``x' = s x_1 + (1 - s) x_2``
    with ``s = max(l, 1 - l)``, ``l ~ Beta(alpha, alpha)``. The loss is the cross-entropy of the mixed labels
    of known rows, plus ``weight`` times the mean squared distance of the probabilities of the others from theirs
    (equations 2 to 5); the weight rises linearly over the share ``ramp`` of the training.

    Use it where few rows have labels and many like them have none. Known limits: classes alone; a step encodes each
    molecule ``copies`` times.

    Args:
        network: its head reads the vectors of graphs.
        inputs: the one column that it reads.
        outputs: the targets, classes of whole rows.
        copies: views of each molecule, K.
        temperature: T; 1 leaves guesses as they are, towards 0 they are classes.
        alpha: of the Beta distribution.
        weight: of the squared distance after the ramp; the paper has 75 and more for images.
        ramp: share of the training over which the weight rises; 16,000 of about a million steps in the paper.
        penalties: the weights of the network's penalties by name; 1 if not given.

    Raises:
        UnsupportedError: targets that are no classes or of atoms or bonds, several columns, or a head of atoms.
    """

    semi_supervised = True
    classes_only = True
    usual_views = "mask+drop"

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        copies: Count = 2,
        temperature: Positive = 0.5,
        alpha: Positive = 0.75,
        weight: NotNegative = 2.0,
        ramp: Share = 0.02,
        penalties: Mapping[str, NotNegative] | None = None,
    ) -> None:
        super().__init__()
        check_one_column("mixmatch", inputs, outputs)
        if network.reads_atoms:
            words = "mixmatch mixes the vectors of graphs, and the head reads the states of atoms"
            raise UnsupportedError(words, hint="choose another head, such as params.head=perceptron")
        self.supervised = Supervised(outputs, penalties=penalties)
        self.copies, self.temperature, self.weight, self.ramp = copies, temperature, weight, ramp
        self.alpha = alpha
        self.valid_parts = self.supervised.valid_parts

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """The targets, all of which are classes."""
        for target in outputs.targets:
            if target.kind not in CLASSES:
                words = f"mixmatch guesses classes, and {target.name!r} is {target.kind}"
                raise UnsupportedError(words, hint="choose uda or mean-teacher, or name other targets: -t NAME")
        return outputs

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the labels of a batch, to each of which the mean distance of guessed labels is added."""
        if not state.training:
            return self.supervised(network, batch, state)
        assert batch.y is not None and batch.weights is not None
        (encoded,) = network.encode(batch)
        check_penalties(self.supervised.penalties, encoded.penalties)
        h, n = encoded.graphs, len(batch.y) // self.copies
        labels = self.labels(network, network.answer([encoded], batch), batch)
        bare = (batch.weights == 0).all(dim=1)
        bare[:n] = True  # of rows with labels the first view alone
        rows = bare.nonzero()[:, 0]
        others, share = rows[torch.randperm(len(rows), device=rows.device)], self.shares(len(rows)).to(h)
        mixed = copy(batch)
        mixed.extra = None if batch.extra is None else _mixed(batch.extra, rows, others, share)
        raw = network.answer([replace(encoded, graphs=_mixed(h, rows, others, share))], mixed)
        weights, total, distances = batch.weights[rows], raw.new_zeros(()), []
        scores, _ = network.head.values(raw)
        for j, (kind, start, stop) in enumerate(self.supervised.kinds):
            log_p, label = log_probabilities(kind, scores[:, start:stop]), _mixed(labels[j], rows, others, share)
            total = total - ((label * log_p).sum(dim=1) * weights[:, j]).sum()
            distances.append((log_p.exp() - label).square().mean(dim=1))
        guessed, rise = weights == 0, min(state.progress / self.ramp, 1.0)
        distance = (torch.stack(distances, dim=1) * guessed).sum() / guessed.sum().clamp(min=1)
        loss = Loss(total, int((weights > 0).sum())).with_penalties(encoded.penalties, self.supervised.penalties)
        return loss.with_penalties({"guessed": distance}, {"guessed": self.weight * rise})

    @torch.no_grad()
    def labels(self, network: Any, raw: Tensor, batch: Sample) -> list[Tensor]:
        """float [copies n, classes] of each target: the class of a label, or the guess where there is none."""
        assert batch.y is not None and batch.weights is not None
        (scores, _), labels = network.head.values(raw), []
        for j, (kind, start, stop) in enumerate(self.supervised.kinds):
            p = log_probabilities(kind, scores[:, start:stop]).exp().unflatten(0, (self.copies, -1)).mean(dim=0)
            guess = sharpened(p.log(), self.temperature).repeat(self.copies, 1)
            one_hot = F.one_hot(batch.y[:, j].long(), guess.shape[1]).to(guess)
            labels.append(torch.where(batch.weights[:, j : j + 1] > 0, one_hot, guess))
        return labels

    def shares(self, n: int) -> Tensor:
        """float [n, 1], from 1/2 to 1: how much of a mixture is the row itself."""
        share = torch.distributions.Beta(self.alpha, self.alpha).sample((n, 1))
        return torch.maximum(share, 1 - share)


def _mixed(values: Tensor, rows: Tensor, others: Tensor, share: Tensor) -> Tensor:
    """float [r, d]: ``share`` of each row of ``rows``, and the rest of its row of ``others``."""
    return share * values[rows] + (1 - share) * values[others]
