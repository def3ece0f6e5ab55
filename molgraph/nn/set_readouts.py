"""Readouts that are neural networks over sets: PointNetST and Perceiver."""

from __future__ import annotations

import math
from typing import Annotated

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.ranges import Range, Width
from molgraph.base.registry import register
from molgraph.base.systems import SystemCard
from molgraph.nn.attention import attend
from molgraph.nn.propagate import propagate
from molgraph.nn.readouts import GraphStates, Readout
from molgraph.nn.relation import Relation
from molgraph.nn.segment import Sources, segment_mean


class SetTransmission(nn.Module):
    """A linear layer in which each row hears the sum of its graph's rows.

    Segol and Lipman 2020, equation 3: ``h_v <- A h_v + B sum_{u in graph(v)} h_u + c``.

    Args:
        d_in, d_out: widths.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.own, self.sent = nn.Linear(d_in, d_out), nn.Linear(d_in, d_out, bias=False)

    def forward(self, h: Float[Tensor, "r d_in"], relation: Relation) -> Float[Tensor, "p d_out"]:
        """float [r, d_in] to [p, d_out]: a row that stands in several graphs hears a sum in each."""
        graphs = self.sent(propagate(h, relation))
        return self.own(h).index_select(0, relation.source) + graphs.index_select(0, relation.target)


@register(
    "readout",
    "pointnetst",
    systems=(SystemCard("pointnetst", off="mean", beside=("mean",)),),
    summary="perceptrons of each row and the sum of all rows, then the mean",
    paper="Segol and Lipman 2020, ICLR",
)
class PointNetST(Readout):
    """PointNet with one transmission layer, then the mean over the rows.

    Segol and Lipman 2020, "On Universal Equivariant Set Networks", theorem 2: layers that treat each row alone, and one
    that tells each row the sum of all, approximate every continuous function of sets that follows their order.

    Args:
        d_in: width of the rows.
    """

    def __init__(self, d_in: int) -> None:
        super().__init__(d_in)
        self.before, self.transmission = nn.Linear(d_in, d_in), SetTransmission(d_in, d_in)
        self.after = nn.Linear(d_in, d_in)

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d] to [g, d]."""
        return segment_mean(self.after(self.transmission(self.before(h).relu(), relation).relu()), relation)


class CrossAttention(nn.Module):
    """Attention of several latent rows of each graph over the rows of the graph.

    Jaegle et al. 2021, section 3.1: ``W softmax(Q(z) K(h)^T / sqrt(d)) V(h)``, in several heads; linear in the rows.

    Args:
        d: width of the latent rows, a multiple of ``heads``.
        d_in: width of the rows.
        heads: number of heads.
    """

    def __init__(self, d: int, d_in: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key_value, self.out = nn.Linear(d, d), nn.Linear(d_in, 2 * d), nn.Linear(d, d)

    def forward(
        self, z: Float[Tensor, "{relation.n_target} latents d"], h: Sources, relation: Relation
    ) -> Float[Tensor, "{relation.n_target} latents d"]:
        """float [g, latents, d] and [r, d_in] to [g, latents, d]."""
        n, split = z.shape[1], (self.heads, -1)
        q = self.query(z).unflatten(2, split).flatten(1, 2)
        k, v = (part.unflatten(1, split).repeat(1, n, 1) for part in self.key_value(h).chunk(2, dim=1))
        return self.out(attend(q, k, v, relation).unflatten(1, (n, -1)).flatten(2))


class _SelfAttention(nn.Module):
    """Attention of the latent rows of each graph over each other."""

    def __init__(self, d: int, heads: int) -> None:
        super().__init__()
        self.heads, self.query_key_value, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)

    def forward(self, z: Float[Tensor, "g latents d"]) -> Float[Tensor, "g latents d"]:
        parts = self.query_key_value(z).chunk(3, dim=2)
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in parts)
        weights = (q @ k.transpose(2, 3) / math.sqrt(q.shape[3])).softmax(3)
        return self.out((weights @ v).transpose(1, 2).flatten(2))


class _Block(nn.Module):
    """Cross-attention and self-attention, a perceptron after each, all with skips."""

    def __init__(self, d: int, d_in: int, heads: int) -> None:
        super().__init__()
        self.norm_rows, self.norms = nn.LayerNorm(d_in), nn.ModuleList(nn.LayerNorm(d) for _ in range(2))
        self.cross, self.own = CrossAttention(d, d_in, heads), _SelfAttention(d, heads)
        self.perceptrons = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(2)
        )

    def forward(
        self, z: Float[Tensor, "{relation.n_target} latents d"], h: Sources, relation: Relation
    ) -> Float[Tensor, "{relation.n_target} latents d"]:
        z = z + self.cross(self.norms[0](z), self.norm_rows(h), relation)
        z = z + self.perceptrons[0](z)
        z = z + self.own(self.norms[1](z))
        return z + self.perceptrons[1](z)


@register(
    "readout",
    "perceiver",
    systems=(SystemCard("perceiver", off="sum", beside=("sum", "full attention")),),
    summary="a few latent rows attend to the graph's rows and to each other, several times",
    paper="Jaegle et al. 2021, ICML",
)
class Perceiver(Readout):
    """Learned latent rows that read the rows of a graph, and their mean.

    Jaegle et al. 2021, "Perceiver: General Perception with Iterative Attention", section 3: ``depth`` times attention
    of the latents over the rows, then over each other, a perceptron after each. It costs rows x latents, so a graph of
    thousands of atoms is no burden.

    Args:
        d_in: width of the rows.
        latents: latent rows of a graph.
        d: their width, that of the output, a multiple of ``heads``.
        depth: rounds of attention, 1 or more.
        heads: of each attention.
        share: whether all rounds have the same weights.

    Raises:
        ValueError: a depth below 1, or a width that the heads do not divide.
    """

    def __init__(
        self,
        d_in: int,
        latents: Width = 8,
        d: Width = 64,
        depth: Annotated[int, Range(1, 100)] = 2,
        heads: Width = 4,
        share: bool = True,
    ) -> None:
        super().__init__(d_in)
        if depth < 1 or d % heads:
            raise ValueError(f"depth is {depth}, d {d}, heads {heads}: 1 or more, and heads divide d")
        self.depth, self.d_out = depth, d
        self.latents = nn.Parameter(nn.init.trunc_normal_(torch.empty(latents, d), std=0.02, a=-2, b=2))
        self.blocks = nn.ModuleList(_Block(d, d_in, heads) for _ in range(1 if share else depth))

    def read(self, h: Sources, relation: Relation) -> GraphStates:
        """float [r, d_in] to [g, d]."""
        z = self.latents.expand(relation.n_target, -1, -1)
        for t in range(self.depth):
            z = self.blocks[t % len(self.blocks)](z, h, relation)
        return z.mean(1)
