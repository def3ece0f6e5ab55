"""Base class of graph encoders with pooling layers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.base.errors import UnsupportedError
from molgraph.base.parts import make_part
from molgraph.data.batch import GraphBatch
from molgraph.data.graph_store import InputSpec
from molgraph.nn import norms, readouts, relations  # noqa: F401 - registers the norms and readouts
from molgraph.nn.encoder import Encoded, Encoder, Rows
from molgraph.nn.norms import make_norms
from molgraph.nn.penalties import add_penalties
from molgraph.nn.relation import Relation
from molgraph.nn.row_graph import RowGraph, SumConv
from molgraph.nn.segment import segment_sum
from molgraph.nn.size_groups import size_groups


class PoolingNet(Encoder):
    """Convolutions, then poolings each followed by one more; the readouts of all pooled graphs side by side.

    ``h <- ReLU(norm(h W + A h W'))`` ``depth`` times, from atoms' features beside the sum of those of their bonds;
    after each pooling once more on its clusters, where ``A h`` is divided by the degree. A subclass ends its
    constructor with ``self.build``, or sets ``convs``, ``pools``, ``after`` (an identity for no convolution),
    ``norms``, ``readouts``, ``dropout``, ``d_rows`` and ``d_out``.
    """

    l_hop: int | None = None
    activation = staticmethod(torch.relu)
    dropout: nn.Module  # no value here: an attribute of the class would hide the instance's module
    with_bonds = False

    def build(
        self, spec: InputSpec, pools: Sequence[nn.Module], d: int, depth: int, norm: str, dropout: float, readout: str
    ) -> None:
        """Make the layers: ``depth`` convolutions of width ``d``, 1 or more, before the first of ``pools``."""
        if depth < 1:
            raise ValueError(f"depth must be 1 or more, got {depth}")
        self.with_bonds = spec.has_edge_features
        widths = (spec.width("atom") + self.with_bonds * spec.width("bond"), *[d] * depth)
        self.convs = nn.ModuleList(SumConv(a, b) for a, b in pairwise(widths))
        self.pools = nn.ModuleList(pools)
        self.after = nn.ModuleList(SumConv(d, d) for _ in pools)
        self.norms = make_norms(norm, [d] * (depth + len(pools)))
        reading = [make_part("readout", readout, d) for _ in pools]
        self.readouts = nn.ModuleList(reading)
        self.dropout = nn.Dropout(dropout)
        self.d_out, self.d_rows = sum(reader.d_out for reader in reading), d

    def prepare(self, batch: GraphBatch) -> None:
        """Make the relations and the groups of graphs of alike size ahead."""
        _ = relations.bonds(batch).transpose, relations.members(batch), size_groups(batch), self._near(batch)

    def forward(self, batch: GraphBatch, *, rows: bool = False) -> Encoded:
        """Encode a batch; with ``rows``, write out the atoms' states too."""
        graph = self._atoms(batch)
        atoms, states, penalties = graph.h, [], []
        after_norms = list(self.norms)[len(self.convs) :]
        for pool, after, norm, readout in zip(self.pools, self.after, after_norms, self.readouts, strict=True):
            graph = pool(graph)
            graph = (
                graph if isinstance(after, nn.Identity) else replace(graph, h=self._layer(after, norm, graph.h, graph))
            )
            state, penalty = readout(graph.h, graph.members)
            states.append(state)
            penalties.append(penalty)
        below = (Rows("atom", atoms, batch.graph_of("atom")),) if rows else ()
        return Encoded(torch.cat(states, dim=1), below, add_penalties([graph.penalties, *penalties]))

    def clusters(self, batch: GraphBatch) -> Float[Tensor, "n_atoms k"]:
        """How much of each atom is in each cluster of the first pooling, shares that sum to 1: float [n_atoms, k].

        Raises:
            UnsupportedError: a pooling that keeps some atoms and has no clusters.
        """
        assignment = self.pools[0](self._atoms(batch)).assignment
        if assignment is None:
            raise UnsupportedError(
                "this pooling keeps some of the atoms and has no clusters",
                hint="structpool, and the poolings diffpool and mincut of pyg_pool, have them",
            )
        return assignment

    def _atoms(self, batch: GraphBatch) -> RowGraph:
        """The atoms' states after all convolutions, with their graph."""
        bonds, h = relations.bonds(batch), batch.features("atom")
        if self.with_bonds:
            h = torch.cat([h, segment_sum(batch.features("bond"), bonds)], dim=1)
        graph = RowGraph(h, relations.members(batch), bonds, size_groups(batch), self._near(batch))
        for conv, norm in zip(self.convs, self.norms, strict=False):
            h = self._layer(conv, norm, h, graph)
        return replace(graph, h=h)

    def _layer(self, conv: nn.Module, norm: nn.Module, h: Tensor, graph: RowGraph) -> Float[Tensor, "n d"]:
        return self.dropout(self.activation(norm(conv(h, graph), graph.members)))

    def _near(self, batch: GraphBatch) -> Relation | None:
        if self.limit is not None:
            self.limit.check(batch)
        return None if self.l_hop is None else relations.hops(batch, self.l_hop)
