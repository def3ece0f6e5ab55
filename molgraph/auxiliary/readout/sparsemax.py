"""Attention over the rows of a graph with exact zeros: sparsemax of Gaussian scores."""

from __future__ import annotations

from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, segment_sum


@register(
    "readout",
    "sparsemax",
    systems=(
        SystemCard(
            "mixed-random-variables",
            left_out="mixed Dirichlet distributions, maximum-entropy mixed distributions, divergences between them",
            off="-s params.readout=mean",
            beside=("the mean",),
            command="molgraph train dataset:chembl2321810 -m gin -s 'params.readout=sparsemax(sigma=0.5)'",
        ),
    ),
    summary="attention over the rows with exact zeros, drawn by Gaussian noise in training",
    paper="Farinhas et al. 2022, ICLR; sparsemax: Martins and Astudillo 2016, ICML",
)
class Sparsemax(Readout):
    """``sum_v y_v h_v`` with ``y = sparsemax(z + sigma N(0, 1))`` over the rows of each graph, ``z = w h``.

    Farinhas et al. 2022, "Sparse Communication via Mixed Distributions", section 4.2, the Gaussian-sparsemax: a
    distribution on the simplex that gives faces of it a mass of their own, so that weights are exactly 0 with a chance
    above 0. In prediction there is no noise.

    Args:
        d_in: width of the rows, and of the output.
        sigma: standard deviation of the noise.
    """

    def __init__(self, d_in: int, sigma: Annotated[float, Range(0, 100)] = 0.5) -> None:
        super().__init__(d_in)
        self.sigma, self.score = sigma, nn.Linear(d_in, 1)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        z = self.score(h).squeeze(1).index_select(0, relation.source)
        if self.training and self.sigma > 0:
            z = z + self.sigma * torch.randn_like(z)
        weights = sparsemax(z, relation).unsqueeze(1)
        return segment_sum(weights * h.index_select(0, relation.source), relation)


def sparsemax(z: Float[Tensor, " p"], relation: Relation) -> Float[Tensor, " p"]:
    """The point of the simplex nearest to each graph's scores.

    Martins and Astudillo 2016, algorithm 1: ``max(z - tau, 0)`` with ``tau = (sum of the k largest - 1) / k`` and k the
    most for which ``1 + k z_(k) > sum of the k largest``.

    Args:
        z: a score for each pair of the relation.
        relation: from rows to graphs.

    Example:
        >>> relation = Relation.from_pairs(torch.arange(5), torch.tensor([0, 0, 0, 1, 1]), 5, 2)
        >>> sparsemax(torch.tensor([1.0, 0.5, -1.0, 3.0, 0.0]), relation).tolist()
        [0.75, 0.25, 0.0, 1.0, 0.0]
    """
    with torch.no_grad():
        first = z.argsort(descending=True)
        order = first[relation.target[first].argsort(stable=True)]
        rank = torch.arange(1, len(z) + 1, device=z.device) - relation.offsets[relation.target]
        sums = z[order].double().cumsum(0)
        before = torch.cat([sums.new_zeros(1), sums])[relation.offsets[relation.target]]
        inside = torch.zeros_like(z, dtype=torch.bool)
        inside[order] = 1 + rank * z[order].double() > sums - before
    kept = inside.to(z.dtype)
    total, count = segment_sum((z * kept).unsqueeze(1), relation), segment_sum(kept.unsqueeze(1), relation)
    tau = (total - 1) / count.clamp(min=1)
    return (z - tau.squeeze(1).index_select(0, relation.target)).relu()
