"""Graphs of atoms or clusters with a sparse or dense adjacency, the input and output of pooling layers."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch
from molgraph.nn.penalties import Penalties
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation, row_offsets
from molgraph.nn.relations import once_a_batch


@dataclass(frozen=True)
class SizeGroups:
    """Packed rows put side by side in padded tensors, one for graphs of a size from 2^i to 2^(i + 1).

    Padding is less than half of each tensor, so one graph of thousands of rows does not stretch all others.

    Args:
        rows: int64 [graphs of the group, length] each; n_rows where no row stands.
        graphs: int64 [graphs of the group] each; a graph without rows is in no group.
        place: int64 [n_rows], where each row stands in the groups laid flat one after another.
        n_graphs: of all groups and of graphs without rows.
    """

    rows: tuple[Int[Tensor, "_ _"], ...]
    graphs: tuple[Int[Tensor, " _"], ...]
    place: Int[Tensor, " n_rows"]
    n_graphs: int

    @classmethod
    def of(cls, offsets: Int[Tensor, " g_1"]) -> SizeGroups:
        """The groups of graphs with those row offsets.

        Example:
            >>> SizeGroups.of(torch.tensor([0, 1, 4, 6])).rows
            (tensor([[0]]), tensor([[1, 2, 3],
                    [4, 5, 6]]))
        """
        sizes, n_rows = offsets.diff(), int(offsets[-1])
        power = sizes.double().log2().floor()
        rows, graphs, found = [], [], []
        for each in power[sizes > 0].unique().tolist():
            own = (power == each).nonzero().flatten()
            step = torch.arange(int(sizes[own].max()), device=offsets.device)
            index = offsets[own].unsqueeze(1) + step
            rows.append(index.where(step < sizes[own].unsqueeze(1), n_rows))
            graphs.append(own)
            found.append(rows[-1].flatten())
        flat = torch.cat(found) if found else offsets.new_zeros(0)
        place = offsets.new_empty(n_rows + 1).index_copy_(0, flat, torch.arange(len(flat), device=offsets.device))
        return cls(tuple(rows), tuple(graphs), place[:-1], len(sizes))

    def pad(self, x: Float[Tensor, "n_rows d"]) -> list[Float[Tensor, "_ _ d"]]:
        """The rows of each group, zeros where no row stands."""
        padded = torch.cat([x, x.new_zeros(1, x.shape[1])])
        return [padded.index_select(0, own.flatten()).view(*own.shape, -1) for own in self.rows]

    def unpad(self, parts: list[Float[Tensor, "_ _ d"]], like: Float[Tensor, "n_rows d"]) -> Float[Tensor, "n_rows d"]:
        """The packed rows of padded ones; ``like`` gives the type where there is no row at all."""
        if not parts:
            return like
        return torch.cat([part.flatten(0, 1) for part in parts]).index_select(0, self.place)

    def join(self, parts: list[Float[Tensor, " _ *d"]], empty: Float[Tensor, " *d"]) -> Float[Tensor, " n_graphs *d"]:
        """One tensor a graph of all groups, in the graphs' order; ``empty`` for a graph without rows."""
        order = self.place.new_full((self.n_graphs,), sum(map(len, parts)))
        for first, own in zip(torch.tensor([0, *map(len, parts)]).cumsum(0).tolist(), self.graphs, strict=False):
            order[own] = torch.arange(first, first + len(own), device=order.device)
        return torch.cat([*parts, empty.unsqueeze(0)]).index_select(0, order)

    def outer(self, a: Float[Tensor, "n_rows d"], b: Float[Tensor, "n_rows k"]) -> Float[Tensor, "n_graphs d k"]:
        """``sum_i a_i b_i^T`` over the rows of each graph: float [n_rows, d] and [n_rows, k] to [n_graphs, d, k]."""
        parts = [x.mT @ y for x, y in zip(self.pad(a), self.pad(b), strict=True)]
        return self.join(parts, a.new_zeros(a.shape[1], b.shape[1]))


@once_a_batch
def size_groups(batch: GraphBatch) -> SizeGroups:
    """The graphs of a batch by their numbers of atoms."""
    return SizeGroups.of(batch["atom"].offsets)


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
