"""Shape matching: pretrain an encoder of 2D graphs so that molecules of like 3D shape are near each other."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from molgraph.base.errors import UnsupportedError
from molgraph.base.ranges import Count, NotNegative, Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.match_embedding import Gaussians, MatchEmbedding
from molgraph.train.inputs import Input
from molgraph.train.network import Network, check_one_encoder
from molgraph.train.objective import Loss, Objective, StepState
from molgraph.train.samples import Sample
from molgraph.train.shape_labels import ShapeLabels, shape_tanimoto

PART = "shape"  # its name among a network's parts


@register(
    "objective",
    "shape-match",
    systems=(
        SystemCard(
            "pr-vipe",
            left_out="views of a camera and their augmentation: a 2D graph has one view; the table of positive pairs, "
            "in whose place the pairs of a batch are compared",
            off="masked-atoms",
            beside=("Morgan Tanimoto", "the encoder without training"),
            modules=(
                "molgraph.nn.match_embedding",
                "molgraph.train.shape_labels",
                "molgraph.chem.shape_grid",
            ),
        ),
    ),
    summary="a Gaussian for each molecule, near those of like 3D shape",
    paper="Sun et al. 2020, ECCV",
)
class ShapeMatch(Objective):
    """A probabilistic embedding of 2D graphs in which molecules of like 3D shape match.

    Sun et al. 2020, "View-Invariant Probabilistic Embedding for Human Pose": two molecules match where the Tanimoto
    coefficient of the shapes of their conformers (``train.shape_labels``) is ``threshold`` or more. With
    ``D = -log p(match)`` (``nn.match_embedding``) the loss of a molecule is the mean over its matches in the batch of

    - the triplet ratio loss ``max(0, D(i, p) - D(i, n) + log beta)``, equation 5, n being the nearest of those that do
      not match and are farther than p (semi-hard), or else the farthest,
    - ``positive`` times ``D(i, p)``, equation 6,

    and ``prior`` times ``KL(N(mu, Sigma) || N(0, I))``, equation 7. Molecules without a conformer have the last alone.
    The embedding is kept with the encoder (``shape_gaussians``). A batch needs matches: take 64 rows or more.

    Args:
        network: its one encoder is trained.
        inputs: the one column of molecules that it reads.
        threshold: Tanimoto coefficient of shapes from which on two molecules match.
        width: of the embedding.
        samples: points drawn of each Gaussian.
        beta: how many times as likely a match must be as one that is none.
        positive: weight of the matches' own loss.
        prior: weight of the divergence.

    Raises:
        UsageError: the network reads several columns, or no molecules.
    """

    labelled = False
    least_rows = 2
    small = MappingProxyType({"width": 4, "samples": 2})

    def __init__(
        self,
        network: Network,
        inputs: Sequence[Input],
        *,
        threshold: Annotated[float, Range(0.1, 0.99)] = 0.7,
        width: Width = 16,
        samples: Count = 8,
        beta: Annotated[float, Range(1, 1000)] = 2.0,
        positive: NotNegative = 0.005,
        prior: NotNegative = 0.001,
    ) -> None:
        super().__init__()
        check_one_encoder(network, inputs, "shape-match learns one encoder")
        if inputs[0].kind != "molecule":
            words = f"shapes are those of molecules, and {inputs[0].column!r} holds a {inputs[0].kind}"
            raise UnsupportedError(words, hint="name a column of SMILES")
        self.threshold, self.margin, self.positive, self.prior = threshold, math.log(beta), positive, prior

    @classmethod
    def row_labels(cls, **_: Any) -> ShapeLabels:
        """The shapes of conformers."""
        return ShapeLabels()

    @classmethod
    def parts(cls, encoder: Any, *, width: int = 16, samples: int = 8, **_: Any) -> Mapping[str, nn.Module]:
        """The embedding."""
        return {PART: MatchEmbedding(encoder.d_out, width, samples)}

    def forward(self, network: Any, batch: Sample, state: StepState) -> Loss:
        """Sum over the molecules of a batch."""
        assert batch.y is not None and batch.weights is not None
        encoded, weights = network.encoder(batch.parts[0].batch), batch.weights[:, 0]
        embed: MatchEmbedding = network.parts[PART]
        gaussians = embed(encoded.graphs.float())
        random = None if state.training else torch.Generator().manual_seed(0)
        distance = -embed.log_probability(gaussians, gaussians, random)
        match, other = self.pairs(batch.y, weights)
        triplet = triplet_ratio(distance, match, other, self.margin)
        losses = {
            "triplet": (triplet * weights).sum(),
            "positive": self.positive * (mean_over(distance, match) * weights).sum(),
            "prior": self.prior * (gaussians.divergence() * weights).sum(),
        }
        count = int((weights > 0).sum())
        return Loss(torch.stack([*losses.values()]).sum(), count, losses).with_penalties(encoded.penalties)

    def pairs(self, shapes: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """bool [n, n] each: pairs of molecules that match, and pairs that do not; the others have no shape."""
        alike, apart = shape_tanimoto(shapes, shapes), ~torch.eye(len(shapes), dtype=torch.bool, device=shapes.device)
        known = torch.isfinite(alike) & apart & (weights > 0)[None, :]
        return known & (alike >= self.threshold), known & (alike < self.threshold)


def triplet_ratio(distance: Tensor, match: Tensor, other: Tensor, margin: float) -> Tensor:
    """float [n]: the mean over each row's matches of ``max(0, D(i, p) - D(i, n) + margin)``, 0 where there are none.

    Args:
        distance: float [n, n], D of rows and columns.
        match, other: bool [n, n], the columns p and n of each row.
        margin: log beta.
    """
    reach = distance.masked_fill(~other, float("inf"))
    farther = other[:, None, :] & (distance[:, None, :] > distance[:, :, None])  # [row, p, n]
    nearest = reach[:, None, :].expand_as(farther).masked_fill(~farther, float("inf")).amin(dim=2)
    farthest = distance.masked_fill(~other, float("-inf")).amax(dim=1)[:, None]
    negative = torch.where(torch.isfinite(nearest), nearest, farthest.expand_as(nearest))
    counts = match & torch.isfinite(negative)
    hinge = F.relu(distance - torch.where(counts, negative, distance) + margin)
    return mean_over(hinge, counts)


def mean_over(values: Tensor, where: Tensor) -> Tensor:
    """float [n]: the mean of the values of each row at some of its columns, 0 where there are none."""
    return (values * where).sum(dim=1) / where.sum(dim=1).clamp(min=1)


def shape_gaussians(network: Network, states: Tensor) -> Gaussians:
    """The Gaussians of an encoder's states, by a network that learned them.

    Their ``mean`` is the vector to search neighbours with; ``network.parts["shape"].probability(a, b)`` gives the
    probability that two molecules are of like shape.

    Args:
        network: of a model pretrained by ``shape-match``.
        states: float [n, d], as ``embed`` gives.

    Raises:
        UnsupportedError: the model has no such embedding.
    """
    if PART not in network.parts:
        words = "the model has no embedding of shapes"
        raise UnsupportedError(words, hint="pretrain one: molgraph pretrain LIB --objective shape-match")
    with torch.no_grad():
        gaussians: Gaussians = network.parts[PART](states)
    return gaussians
