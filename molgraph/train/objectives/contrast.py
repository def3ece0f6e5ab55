"""Contrastive pretraining: bring two views of a molecule together and push those of others apart."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.ranges import Positive, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.contrastive import Contrast as Contrasted
from molgraph.nn.contrastive import debiased_info_nce, info_nce
from molgraph.nn.perceptron import Perceptron
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample
from molgraph.train.scaffold_labels import ScaffoldLabels, equal_pairs


@register(
    "objective",
    "contrast",
    systems=(
        SystemCard(
            "infonce-cpc",
            left_out="prediction of later steps by an autoregressive context; audio and images",
            off="masked-atoms",
            beside=("the encoder without training", "chance"),
            modules=("molgraph.nn.contrastive",),
        ),
        SystemCard(
            "debiased-contrastive-loss",
            left_out="several positives of an anchor",
            off="contrast(debias=0)",
            beside=("the loss with true negatives",),
            command="molgraph pretrain dataset:chembl2321810 -m gin --objective contrast(debias=auto) -o encoder.mgm",
            modules=("molgraph.nn.contrastive", "molgraph.train.scaffold_labels"),
        ),
    ),
    summary="InfoNCE of two views of each molecule",
    paper="van den Oord et al. 2018",
)
class Contrast(Objective):
    """InfoNCE between two views of each molecule, for pretraining any encoder.

    van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding", equation 4, in the form of
    Chen et al. 2020 (NT-Xent) and, for graphs, You et al. 2020: both views of a molecule are encoded and projected,
    the score of two is their cosine over the temperature, and each of the 2 n vectors of a batch has its other view as
    the positive and the 2 n - 2 others as negatives. Rows of the same standardised molecule are no negatives of each
    other. The curves have the bound on the mutual information of the views, at most log(2 n - 1) nats.

    Views are named as for any objective, ``--views "mask(p=0.25)+drop"``.

    Args:
        network: its one encoder is trained.
        inputs: the one column that it reads.
        temperature: of the cosines.
        debias: probability that another molecule is of the anchor's class (Chuang et al. 2020), 0 for none; ``auto``
            takes the share of pairs of the corpus that have one Murcko scaffold.
        width: of the projection.

    Raises:
        UsageError: the network reads several columns.
    """

    labelled = False
    least_rows = 2
    copies = 2
    pairs: Tensor
    usual_views = "mask+drop"
    small = MappingProxyType({"width": 8})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        temperature: Positive = 0.1,
        debias: Annotated[float, Range(0, 0.99)] | Literal["auto"] = 0.0,
        width: Width = 128,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "contrast learns one encoder")
        self.temperature, self.debias = temperature, debias
        d = network.encoder.d_out
        self.project = Perceptron(d, d, width)
        self.register_buffer("pairs", torch.zeros(2, dtype=torch.float64))  # of one scaffold, and all that were seen

    @classmethod
    def row_labels(cls, *, debias: float | str = 0.0, **_: Any) -> ScaffoldLabels | None:
        """The scaffolds of the molecules, where pairs of one scaffold are counted."""
        return ScaffoldLabels() if debias == "auto" else None

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the views of a batch."""
        assert batch.weights is not None and batch.graphs is not None
        encoded, weights = network.encoder(batch.parts[0].batch), batch.weights[:, 0]
        z = F.normalize(self.project(encoded.graphs), dim=1)
        contrast = self.contrast(z @ z.T / self.temperature, batch)
        count = int((weights > 0).sum())
        loss = Loss((contrast.losses * weights).sum(), count, {"bound": contrast.bound * count})
        return loss.with_penalties(encoded.penalties)

    def contrast(self, scores: Tensor, batch: Sample) -> Contrasted:
        """The losses of the 2 n views of a batch whose scores are [2 n, 2 n]."""
        positive = torch.arange(len(scores), device=scores.device).roll(len(scores) // 2)
        assert batch.graphs is not None
        same = batch.graphs[:, None] == batch.graphs[None, :]
        if self.debias == 0.0:
            return info_nce(scores, positive, same)
        return debiased_info_nce(scores, positive, self.prior(batch), -1 / self.temperature, same)

    def prior(self, batch: Sample) -> float:
        """The probability that two molecules are of one class; by scaffolds it is that of the pairs seen so far."""
        if not isinstance(self.debias, str):
            return self.debias
        assert batch.y is not None
        if self.training:
            self.pairs += equal_pairs(batch.y[: len(batch.y) // 2, 0])
        return float(self.pairs[0] / self.pairs[1].clamp(min=1))
