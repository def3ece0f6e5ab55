"""Graphs of atoms or clusters with a sparse or dense adjacency, the input and output of pooling layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.size_groups import SizeGroups


@dataclass(frozen=True)
class RowGraph:
    """Rows of several graphs, and who is beside whom.

    Args:
        h: float [n, d].
        members: from rows to graphs, row i once, graph after graph.
        adjacency: a relation between the rows, or of pooled graphs, all with k rows, float [g, k, k]: ``[target,
            source]``.
        groups: the graphs by size.
        near: the pairs that a potential of pairs reads; None for all pairs of a graph.
        assignment: float [n_before, k], how much of each row before the pooling is in each cluster; None where rows
            are no clusters.
        penalties: of the poolings so far.
    """

    h: Float[Tensor, "n d"]
    members: Relation
    adjacency: Relation | Float[Tensor, "g k k"]
    groups: SizeGroups
    near: Relation | None = None
    assignment: Float[Tensor, "n_before k"] | None = None
    penalties: Penalties = field(default_factory=dict)

    def neighbour_sum(self, h: Float[Tensor, "n d"]) -> Float[Tensor, "n d"]:
        """``A h``: float [n, d] to [n, d]."""
        if isinstance(self.adjacency, Relation):
            return propagate(h, self.adjacency)
        return (self.adjacency @ h.view(*self.adjacency.shape[:2], h.shape[1])).flatten(0, 1)

    @cached_property
    def degree(self) -> Float[Tensor, "n 1"]:
        """The sum of each row of A: float [n, 1]."""
        return self.neighbour_sum(self.h.new_ones(len(self.h), 1))

    def pooled(
        self,
        x: Float[Tensor, "g k d"],
        adjacency: Float[Tensor, "g k k"],
        assignment: Float[Tensor, "n_before k"],
        penalties: Penalties,
    ) -> RowGraph:
        """Graphs of k clusters each, from dense tensors."""
        n_graphs, k = x.shape[:2]
        every = torch.arange(n_graphs * k, device=x.device)
        offsets = row_offsets(every.new_full((n_graphs,), k))
        back = every // k, torch.arange(n_graphs * k + 1, device=x.device)
        members = Relation(every, offsets, n_graphs * k, n_graphs, back)
        groups = SizeGroups((), (), every, 0)
        if n_graphs:
            groups = SizeGroups((every.view(n_graphs, k),), (every[:n_graphs],), every, n_graphs)
        return RowGraph(x.flatten(0, 1), members, adjacency, groups, None, assignment, penalties)


class MeanConv(nn.Module):
    """``D^-1 ((A + I) X W + b)`` with D the degrees of A + I, as the authors' code has it.

    Args:
        d_in, d_out: widths.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.linear = nn.Linear(d_in, d_out)

    def forward(self, h: Float[Tensor, "n d_in"], graph: RowGraph) -> Float[Tensor, "n d_out"]:
        """float [n, d_in] to [n, d_out]."""
        return self.linear(graph.neighbour_sum(h) + h) / (graph.degree + 1)


class SumConv(nn.Module):
    """``X W + b + A X W'``: a row's own state is told from its neighbours' sum.

    Args:
        d_in, d_out: widths.
    """

    def __init__(self, d_in: int, d_out: int) -> None:
        super().__init__()
        self.own, self.heard = nn.Linear(d_in, d_out), nn.Linear(d_in, d_out, bias=False)

    def forward(self, h: Float[Tensor, "n d_in"], graph: RowGraph) -> Float[Tensor, "n d_out"]:
        """float [n, d_in] to [n, d_out]; soft adjacencies of pooled graphs, which grow with the graph, are averaged."""
        heard = graph.neighbour_sum(h)
        if isinstance(graph.adjacency, Tensor):
            heard = heard / graph.degree.clamp(min=1.0)
        return self.own(h) + self.heard(heard)
