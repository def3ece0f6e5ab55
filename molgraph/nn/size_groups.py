"""Rows of the graphs of a batch as padded tensors, one for graphs of about the same size."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor

from molgraph.data.batch import GraphBatch
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
        rows, graphs, indices = [], [], []
        for exponent in power[sizes > 0].unique().tolist():
            members = (power == exponent).nonzero().flatten()
            step = torch.arange(int(sizes[members].max()), device=offsets.device)
            index = offsets[members].unsqueeze(1) + step
            rows.append(index.where(step < sizes[members].unsqueeze(1), n_rows))
            graphs.append(members)
            indices.append(rows[-1].flatten())
        flat = torch.cat(indices) if indices else offsets.new_zeros(0)
        place = offsets.new_empty(n_rows + 1).index_copy_(0, flat, torch.arange(len(flat), device=offsets.device))
        return cls(tuple(rows), tuple(graphs), place[:-1], len(sizes))

    def pad(self, x: Float[Tensor, "n_rows d"]) -> list[Float[Tensor, "_ _ d"]]:
        """The rows of each group, zeros where no row stands."""
        padded = torch.cat([x, x.new_zeros(1, x.shape[1])])
        return [padded.index_select(0, index.flatten()).view(*index.shape, -1) for index in self.rows]

    def unpad(self, parts: list[Float[Tensor, "_ _ d"]], like: Float[Tensor, "n_rows d"]) -> Float[Tensor, "n_rows d"]:
        """The packed rows of padded ones; ``like`` gives the type where there is no row at all."""
        if not parts:
            return like
        return torch.cat([part.flatten(0, 1) for part in parts]).index_select(0, self.place)

    def join(self, parts: list[Float[Tensor, " _ *d"]], empty: Float[Tensor, " *d"]) -> Float[Tensor, " n_graphs *d"]:
        """One tensor a graph of all groups, in the graphs' order; ``empty`` for a graph without rows."""
        order = self.place.new_full((self.n_graphs,), sum(map(len, parts)))
        for first, index in zip(torch.tensor([0, *map(len, parts)]).cumsum(0).tolist(), self.graphs, strict=False):
            order[index] = torch.arange(first, first + len(index), device=order.device)
        return torch.cat([*parts, empty.unsqueeze(0)]).index_select(0, order)

    def outer(self, a: Float[Tensor, "n_rows d"], b: Float[Tensor, "n_rows k"]) -> Float[Tensor, "n_graphs d k"]:
        """``sum_i a_i b_i^T`` over the rows of each graph: float [n_rows, d] and [n_rows, k] to [n_graphs, d, k]."""
        parts = [x.mT @ y for x, y in zip(self.pad(a), self.pad(b), strict=True)]
        return self.join(parts, a.new_zeros(a.shape[1], b.shape[1]))


@once_a_batch
def size_groups(batch: GraphBatch) -> SizeGroups:
    """The graphs of a batch by their numbers of atoms."""
    return SizeGroups.of(batch["atom"].offsets)


@once_a_batch
def bond_groups(batch: GraphBatch) -> SizeGroups:
    """The graphs of a batch by their numbers of directed bonds."""
    return SizeGroups.of(batch["bond"].offsets)
