"""GROVER's pretraining: the contexts of atoms and bonds, and the functional groups of the molecule."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import NotNegative, Share, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.chem.functional_groups import GROUPS
from molgraph.data.feature_layout import FEATURISER
from molgraph.nn.contexts import Contexts, context_keys
from molgraph.train.group_labels import GroupLabels
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample

PART = "contexts"


@register(
    "objective",
    "grover",
    systems=(
        SystemCard(
            "grover",
            left_out="groups from the vectors of bonds; the 10 million molecules and 250 GPUs of the paper",
            off="--objective masked-atoms",
            beside=("the entropy of the labels", "the encoder without training"),
            command="molgraph pretrain dataset:chembl2321810 -m grover -s params.size=tiny --objective grover "
            "-o encoder.mgm",
            modules=(
                "molgraph.models.grover",
                "molgraph.nn.contexts",
                "molgraph.nn.gtransformer",
                "molgraph.nn.heads.agreement",
                "molgraph.chem.functional_groups",
            ),
        ),
    ),
    summary="contexts of atoms and bonds, and the 85 functional groups of RDKit",
    paper="Rong et al. 2020, NeurIPS",
)
class GroverObjective(Objective):
    """Contextual property prediction and motif prediction, for pretraining ``grover``.

    Rong et al. 2020, section 4.2: a random share of the atoms and of the bonds each predict their context
    (``nn.contexts``) by a cross-entropy, from the states of both views; the graph's vector of each view predicts which
    of the 85 groups of ``rdkit.Chem.Fragments`` the molecule has, by the mean binary cross-entropy. To these is added,
    as in the authors' code, ``agreement`` times the mean squared difference of the predictions of the two views.

    The vocabulary is counted in the training part, and kept in the file with the encoder; a context that it lacks is
    the class "other".

    Args:
        network: its one encoder is trained; it must have two views of atoms and bonds.
        inputs: the one column of molecules that it reads.
        share: of the atoms and bonds that predict their contexts in a step; in validation all do.
        vocabulary: contexts of atoms, and of bonds, that are told apart.
        agreement: weight of the difference of the views.

    Raises:
        UsageError: the network reads something else, or its encoder has no two views.
    """

    labelled = False
    small = MappingProxyType({"vocabulary": 16})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        share: Share = 0.15,
        vocabulary: Width = 1024,
        agreement: NotNegative = 0.1,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "grover learns from one column of molecules", FEATURISER)
        self.share, self.agreement = share, agreement
        self.groups = nn.ModuleList(nn.Linear(network.encoder.d_out // 2, len(GROUPS)) for _ in range(2))

    @classmethod
    def row_labels(cls, **_: Any) -> GroupLabels:
        """The functional groups."""
        return GroupLabels()

    @classmethod
    def parts(cls, encoder: Any, *, vocabulary: int = 1024, **_: Any) -> Mapping[str, nn.Module]:
        """The vocabulary, and the layers that predict it.

        Raises:
            UnsupportedError: an encoder of one view.
        """
        if getattr(encoder, "n_views", 1) != 2:
            words = f"the objective grover reads two views of atoms and bonds, and {type(encoder).__name__} has one"
            raise UnsupportedError(words, hint="choose -m grover, or another objective, such as descriptors")
        return {PART: Contexts(encoder.d_rows // 2, encoder.d_features, vocabulary)}

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """The sum over the molecules of a batch of the mean losses of atoms, bonds and groups."""
        assert batch.y is not None and batch.weights is not None
        graphs, contexts = batch.parts[0].batch, network.parts[PART]
        encoded, weights = network.encoder(graphs, rows=True), batch.weights[:, 0]
        losses, apart = dict[str, Tensor](), list[Tensor]()
        views = contexts.views(graphs, encoded.rows)
        for level, keys, rows in zip(Contexts.LEVELS, context_keys(graphs), encoded.rows, strict=True):
            chosen = self._chosen(len(keys), state).to(keys.device)
            row_weights = weights.index_select(0, rows.graph_of.index_select(0, chosen))
            labels = contexts.labels(level, keys.index_select(0, chosen))
            one, two = contexts(level, [h.index_select(0, chosen) for h in views[level]])
            terms = sum_of(F.cross_entropy, (one, two), labels)
            losses[f"{level}s"] = (terms * row_weights).sum() / row_weights.sum().clamp(min=1)
            apart.append((one - two).square().sum() / max(one.numel(), 1))
        known = torch.isfinite(batch.y) * weights[:, None]
        y = torch.nan_to_num(batch.y)
        one, two = (layer(h) for layer, h in zip(self.groups, encoded.graphs.chunk(2, dim=1), strict=True))
        terms = sum_of(F.binary_cross_entropy_with_logits, (one, two), y)
        losses["groups"] = (terms * known).sum() / known.sum().clamp(min=1)
        apart.append((one - two).square().mean())
        losses["disagreement"] = self.agreement * torch.stack(apart).sum()
        count = int((weights > 0).sum())
        parts = {name: value * count for name, value in losses.items()}
        return Loss(torch.stack([*parts.values()]).sum(), count, parts).with_penalties(encoded.penalties)

    def _chosen(self, n: int, state: StepState) -> Tensor:
        """int64: the rows that predict their contexts; the same for the same step."""
        if not state.training:
            return torch.arange(n)
        order = torch.randperm(n, generator=torch.Generator().manual_seed(state.step))
        return order[: max(round(self.share * n), min(n, 1))]


def sum_of(loss: Callable[..., Tensor], views: Sequence[Tensor], labels: Tensor) -> Tensor:
    """The losses of each label, summed over the views' scores."""
    return torch.stack([loss(scores.float(), labels, reduction="none") for scores in views]).sum(dim=0)
