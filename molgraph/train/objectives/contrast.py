"""Contrastive pretraining: bring two views of a molecule together and push those of others apart."""

from __future__ import annotations

from collections.abc import Sequence
from types import MappingProxyType
from typing import Annotated, Any, Literal

import torch
from torch import Tensor
from torch.nn import functional as F

from molgraph.base.errors import ConflictError
from molgraph.base.ranges import Count, NotNegative, Positive, Range, Width
from molgraph.base.recipe_keys import GradientDescent
from molgraph.base.registry import register
from molgraph.data.subgraph import last_graphs
from molgraph.nn.barlow_twins import barlow_twins
from molgraph.nn.contrastive import Contrast as Contrasted
from molgraph.nn.contrastive import debiased_info_nce, info_nce
from molgraph.nn.perceptron import Perceptron
from molgraph.nn.wasserstein import gradient_penalty
from molgraph.nn.whitening import Whitening, whitening_mse
from molgraph.train.adversary import Changed
from molgraph.train.contrast_cards import CARDS
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.replay import Replay
from molgraph.train.samples import Sample
from molgraph.train.scaffold_labels import ClassPrior, ScaffoldLabels


@register(
    "objective",
    "contrast",
    systems=CARDS,
    summary="InfoNCE of two views of each molecule",
    paper="van den Oord et al. 2018",
)
class Contrast(Objective):
    """InfoNCE between two views of each molecule, for pretraining any encoder.

    van den Oord et al. 2018, "Representation Learning with Contrastive Predictive Coding", equation 4, in the form of
    Chen et al. 2020 (NT-Xent) and, for graphs, You et al. 2020: both views of a molecule are encoded and projected,
    the score of two is their cosine over the temperature, and each of the 2 n vectors of a batch has its other view as
    the positive and the 2 n - 2 others as negatives. Rows of the same standardised molecule are no negatives of each
    other. The curves have the bound on the mutual information of the views, and its ceiling, log(2 n - 1) nats.

    Views are named as for any objective, ``--views "mask(p=0.25)+drop"``.

    Args:
        network: its one encoder is trained.
        inputs: the one column that it reads.
        temperature: of the cosines.
        debias: probability that another molecule is of the anchor's class (Chuang et al. 2020), 0 for none; ``auto``
            takes the share of pairs of the corpus that have one Murcko scaffold.
        width: of the projection; less than the 2 n rows of a batch for ``whitening``.
        loss: ``nce``; without negatives ``whitening`` (Ermolov and Sebe 2020) or ``barlow`` (Zbontar et al. 2021).
        bound: ``nce``, or ``wpc``, which keeps the score 1-Lipschitz in the encoder's states (Ozair et al. 2019).
        penalty: weight of how far the score's gradients are from length 1, for ``wpc``.
        adversarial: steps by which atoms' features of the second views are changed to raise the loss, of which a second
            loss is taken: 1 for CLAE (Ho and Vasconcelos 2020); 0 for none.
        eps: the largest change of a feature.
        weight: of the second loss.
        positive: whether a molecule so changed is another positive, and an anchor (RoCL, Kim et al. 2020).
        replay: an earlier corpus, with whose states the new ones are mixed (LUMP, Madaan et al. 2022).
        kept: molecules of it that are kept.
        mix: alpha of the Beta distribution of the mixtures' shares.

    Raises:
        UsageError: the network reads several columns. ConflictError: settings that exclude each other.
    """

    labelled = False
    least_rows = 2
    copies = 2
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
        loss: Literal["nce", "whitening", "barlow"] = "nce",
        bound: Literal["nce", "wpc"] = "nce",
        penalty: NotNegative = 10.0,
        adversarial: Annotated[int, Range(0, 64)] = 0,
        eps: NotNegative = 0.03,
        weight: NotNegative = 1.0,
        positive: bool = False,
        replay: str | None = None,
        kept: Count = 200,
        mix: Positive = 0.4,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "contrast learns one encoder")
        if loss != "nce" and (debias or adversarial or bound != "nce"):
            hint = "leave them out, or choose loss=nce"
            raise ConflictError(f"{loss} has no negatives: debias, adversarial and bound are of nce", hint=hint)
        if positive and not adversarial:
            raise ConflictError("no molecule is changed to be a positive", hint="set adversarial to 7, or leave it out")
        self.temperature, self.debias, self.kind, self.bound = temperature, debias, loss, bound
        self.penalty, self.steps, self.eps, self.weight, self.positive = penalty, adversarial, eps, weight, positive
        d = network.encoder.d_out
        self.project = Perceptron(d, d, width)
        self.scaffolds = ClassPrior()
        if loss == "whitening":
            self.whiten, self.least_rows = Whitening(width), width // 2 + 1
        self.replay = None if replay is None else Replay(replay, kept, mix, inputs[0], self.usual_views)

    @classmethod
    def row_labels(cls, *, debias: float | str = 0.0, **_: Any) -> ScaffoldLabels | None:
        """The scaffolds of the molecules, where pairs of one scaffold are counted."""
        return ScaffoldLabels() if debias == "auto" else None

    def check_parts(self, how: GradientDescent, n_train: int, n_valid: int) -> None:
        """Refuse too few rows; those of a validation part are whitened by the training's running means."""
        super().check_parts(how, n_train, 0 if self.kind == "whitening" else n_valid)

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the views of a batch."""
        assert batch.weights is not None
        encoded, weights = network.encoder(batch.parts[0].batch), batch.weights[:, 0]
        h, count = encoded.graphs, int((weights > 0).sum())
        if self.replay is not None and state.training:
            h = self.replay.mixed(h, network.encoder)
        if self.kind != "nce":
            z = self.project(h)
            losses = (
                whitening_mse(self.whiten(z)) if self.kind == "whitening" else barlow_twins(*z.chunk(2)).expand(len(z))
            )
            return Loss((losses * weights).sum(), count).with_penalties(encoded.penalties)
        z, extra = self.vectors(h), dict[str, Tensor]()
        more: Tensor | None = None
        if self.steps and state.training:
            near = self.attacked(network.encoder, z, batch)
            more = (z * near.repeat(2, 1)).sum(dim=1, keepdim=True) / self.temperature if self.positive else None
            extra["adversarial"] = self.against(z, near, batch).loss
        if self.bound == "wpc" and state.training:
            share = torch.rand(len(h) // 2, 1, device=h.device)
            first, second = h.chunk(2)
            extra["gradient"] = gradient_penalty(self.score, first, second, share)
        contrast = self.contrast(z @ z.T / self.temperature, batch, more)
        parts = {"bound": contrast.bound * count, "ceiling": contrast.ceiling * count}
        share = 1 / repeats(batch)  # a molecule that comes several times counts as one
        share = weights * share * (count / share[weights > 0].sum())
        loss = Loss((contrast.losses * share).sum(), count, parts).with_penalties(encoded.penalties)
        return loss.with_penalties(extra, {"adversarial": self.weight, "gradient": self.penalty})

    def vectors(self, h: Tensor) -> Tensor:
        """float [n, width]: the projected states, of length 1."""
        return F.normalize(self.project(h), dim=1)

    def score(self, a: Tensor, b: Tensor) -> Tensor:
        """float [n]: the score of pairs of states."""
        return (self.vectors(a) * self.vectors(b)).sum(dim=1) / self.temperature

    def contrast(self, scores: Tensor, batch: Sample, more: Tensor | None = None) -> Contrasted:
        """The losses of the last k of the 2 n views of a batch, and their bound.

        Args:
            scores: float [k, 2 n], of them and of all views.
            batch: whose first n rows are seen again as its last n.
            more: float [k, any], scores of further positives.
        """
        assert batch.graphs is not None
        k, n = len(scores), len(batch.graphs) // 2
        positive = torch.arange(2 * n, device=scores.device).roll(n)[2 * n - k :]
        same = batch.graphs[2 * n - k :, None] == batch.graphs[None, :]
        if self.debias == 0.0 or more is not None:
            return info_nce(scores, positive, same, more, repeats(batch))
        return debiased_info_nce(scores, positive, self.prior(batch), -1 / self.temperature, same, repeats(batch))

    def attacked(self, encoder: Any, z: Tensor, batch: Sample) -> Tensor:
        """float [n, width]: the vectors of the second views with changed features."""
        vectors = Changed(encoder, self.vectors, self.steps, self.eps)
        second = last_graphs(batch.parts[0].batch, len(z) // 2)
        return vectors(second, lambda near: self.against(z.detach(), near, batch).losses.sum())

    def against(self, z: Tensor, near: Tensor, batch: Sample) -> Contrasted:
        """The losses where second views whose features were changed have the vectors ``near``.

        They take the place of the second views (CLAE, whose gradient of the whole loss then makes hard negatives too),
        or are the anchors, each of which has the first view as its positive (RoCL, equation 2).
        """
        if self.positive:
            return self.contrast(near @ z.T / self.temperature, batch)
        z = torch.cat([z[: len(near)], near])
        return self.contrast(z @ z.T / self.temperature, batch)

    def prior(self, batch: Sample) -> float:
        """The probability that two molecules are of one class; by scaffolds it is that of the pairs seen so far."""
        if not isinstance(self.debias, str):
            return self.debias
        assert batch.y is not None
        return float(self.scaffolds(batch.y[: len(batch.y) // 2, 0]))


def repeats(batch: Sample) -> Tensor:
    """int64 [2 n]: how many of the n molecules of a batch are that of each view."""
    assert batch.graphs is not None
    _, place, counts = batch.graphs.unique(return_inverse=True, return_counts=True)
    return counts[place] // 2
