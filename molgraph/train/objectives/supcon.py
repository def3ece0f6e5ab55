"""Supervised contrastive pretraining (SupCon): molecules of one class are brought together, others pushed apart."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Any

import numpy as np
from torch.nn import functional as F

from molgraph.base.errors import LabelError
from molgraph.base.ranges import NotNegative, Positive, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.supervised_contrast import sup_con
from molgraph.train.fingerprint_labels import FingerprintLabels, tanimoto
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.outputs import Outputs
from molgraph.train.samples import Sample


@register(
    "objective",
    "supcon",
    systems=(
        SystemCard(
            "supcon",
            left_out="images; negatives that are near by fingerprint count more here",
            off="maml",
            beside=("contrast without labels", "the encoder without training"),
            command="molgraph pretrain dataset:tox21 --objective 'supcon(cliffs=2)' -o encoder.mgm",
            modules=("molgraph.nn.supervised_contrast",),
        ),
    ),
    summary="classes: molecules of one class together, near ones of another apart",
    paper="Khosla et al. 2020, NeurIPS",
)
class SupCon(Objective):
    """Supervised contrast of two views of each molecule, for pretraining any encoder on classes.

    Khosla et al. 2020, "Supervised Contrastive Learning", equation 2 (``nn.supervised_contrast``): the positives of a
    view are all views of molecules of its class; of several targets the losses are those of the known labels. A linear
    classifier, or any head, is then trained on the encoder: ``molgraph finetune encoder.mgm DATA``.

    With ``cliffs`` a molecule of another class counts ``1 + cliffs T`` times, T being its Tanimoto similarity by
    Morgan fingerprints, so that activity cliffs, near molecules of different classes, are pushed apart first.

    Args:
        network: its one encoder is trained.
        inputs: the one column that it reads.
        outputs: targets of rows, each of two or more classes.
        temperature: of the cosines.
        cliffs: how much more a negative counts that is the same by fingerprint.
        width: of the projection.

    Raises:
        LabelError: a target that is a number. UsageError: the network reads several columns.
    """

    labelled = False
    tasks = True
    trains_head = False
    classes_only = True
    least_rows = 2
    copies = 2
    usual_views = "mask+drop"
    small = MappingProxyType({"width": 8})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        outputs: Outputs,
        *,
        temperature: Positive = 0.1,
        cliffs: NotNegative = 0.0,
        width: Width = 128,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "supcon learns one encoder")
        self.temperature, self.cliffs, self.n_targets = temperature, cliffs, len(outputs.targets)
        self.project = Perceptron(network.encoder.d_out, network.encoder.d_out, width)

    @classmethod
    def heads(cls, outputs: Outputs) -> Outputs:
        """None: the encoder alone is trained."""
        numbers = [t.name for t in outputs.targets if t.kind not in ("binary", "multiclass")]
        if numbers or outputs.level != "row":
            words = f"supcon learns classes of rows, and {(numbers or [outputs.targets[0].name])[0]} is none"
            raise LabelError(words, hint="name targets of classes, such as --target ACTIVE")
        return Outputs((), np.zeros(0), np.ones(0))

    @classmethod
    def row_labels(cls, *, cliffs: float = 0.0, **_: Any) -> FingerprintLabels | None:
        """The fingerprints of the molecules, where near ones count more."""
        return FingerprintLabels() if cliffs else None

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the known labels of the views of a batch."""
        assert batch.y is not None and batch.weights is not None
        encoded = network.encoder(batch.parts[0].batch)
        z = F.normalize(self.project(encoded.graphs), dim=1)
        scores, total = z @ z.T / self.temperature, z.sum() * 0
        near = 1 + self.cliffs * tanimoto(batch.y[:, self.n_targets :]) if self.cliffs else None
        for target in range(self.n_targets):
            rows = (batch.weights[:, target] > 0).nonzero()[:, 0]
            labels, weights = batch.y[rows, target].long(), None if near is None else near[rows][:, rows]
            losses = sup_con(scores[rows][:, rows], labels, weights)
            total = total + (losses * batch.weights[rows, target]).sum()
        return Loss(total, int((batch.weights > 0).sum())).with_penalties(encoded.penalties)
