"""Graph network block: update edge, node and global states of a graph (Battaglia et al. 2018)."""

from __future__ import annotations

from typing import NamedTuple

import torch
from jaxtyping import Float
from torch import Tensor, nn

from molgraph.data.batch import GraphBatch
from molgraph.nn import relations
from molgraph.nn.joined_linear import CodedRows, JoinedLinear
from molgraph.nn.propagate import propagate
from molgraph.nn.relation import Relation


class GraphState(NamedTuple):
    """States of a batch's edges, nodes and graphs.

    Args:
        edges: float [p, d_e], in the order of the bond level.
        nodes: float [n, d_v].
        graphs: float [g, d_u]; d_u may be 0.
    """

    edges: Float[Tensor, "p d_e"]
    nodes: Float[Tensor, "n d_v"]
    graphs: Float[Tensor, "g d_u"]


class Widths(NamedTuple):
    """Widths of the states of edges, nodes and graphs."""

    edges: int
    nodes: int
    graphs: int


class GNBlock(nn.Module):
    """A full graph-network block.

    Battaglia et al. 2018, "Relational inductive biases, deep learning, and graph networks", algorithm 1:
    ``e' = phi_e(e, v_source, v_target, u)``, ``v' = phi_v(sum of e' that arrive, v, u)``,
    ``u' = phi_u(sum e', sum v', u)``, each ``phi`` a perceptron of one hidden layer on its parts side by side.

    Args:
        d_in: widths before.
        d_hidden: width of the hidden layers.
        d_out: width of all states after.
        updates_graphs: whether there is a ``phi_u``; without it u stays as it was.
    """

    def __init__(self, d_in: Widths, d_hidden: int, d_out: int, *, updates_graphs: bool = True) -> None:
        super().__init__()
        d_e, d_v, d_u = d_in
        self.edge = _Perceptron(d_e + 2 * d_v + d_u, d_hidden, d_out)
        self.node = _Perceptron(d_out + d_v + d_u, d_hidden, d_out)
        self.graph = _Perceptron(2 * d_out + d_u, d_hidden, d_out) if updates_graphs else None

    def forward(self, state: GraphState, batch: GraphBatch) -> GraphState:
        """The states after the block."""
        e, v, u = state
        bonds = relations.bonds(batch)
        of_edge, of_node = batch.graph_of("bond"), batch.graph_of("atom")
        e = self.edge(e, CodedRows(v, bonds.source), CodedRows(v, bonds.target), CodedRows(u, of_edge))
        v = self.node(_sum(e, relations.arriving(batch)), v, CodedRows(u, of_node))
        if self.graph is None:
            return GraphState(e, v, u)
        u = self.graph(_sum(e, relations.members(batch, "bond")), _sum(v, relations.members(batch)), u)
        return GraphState(e, v, u)


class GraphGRU(nn.Module):
    """A recurrent graph-network block: each edge, node and graph has a GRU, whose input a block computes.

    Tacchetti et al. 2019, "Relational Forward Models for Multi-Agent Learning", section 2: ``h' = GRU(GN([x, h]), h)``,
    x the graph that comes in and h the one that is kept. The paper names the parts; this wiring is our reading.

    Args:
        d: width of all states.
        d_hidden: width of the block's hidden layers.
    """

    def __init__(self, d: int, d_hidden: int) -> None:
        super().__init__()
        self.block = GNBlock(Widths(2 * d, 2 * d, 2 * d), d_hidden, d)
        self.cells = nn.ModuleList(nn.GRUCell(d, d) for _ in GraphState._fields)

    def forward(self, x: GraphState, h: GraphState, batch: GraphBatch) -> GraphState:
        """The kept states after the step."""
        both = GraphState(*(torch.cat(parts, dim=1) for parts in zip(x, h, strict=True)))
        m = self.block(both, batch)
        return GraphState(*(cell(new, old) for cell, new, old in zip(self.cells, m, h, strict=True)))


class _Perceptron(nn.Module):
    """``W' ReLU(W [x_1, x_2, ...] + b) + b'``."""

    def __init__(self, d_in: int, d_hidden: int, d_out: int) -> None:
        super().__init__()
        self.first, self.last = JoinedLinear(d_in, d_hidden), nn.Linear(d_hidden, d_out)

    def forward(self, *parts: Tensor | CodedRows) -> Float[Tensor, "rows d_out"]:
        """Parts of as many rows, side by side."""
        return self.last(self.first(*parts).relu())


def _sum(rows: Tensor, relation: Relation) -> Tensor:
    """In single precision at least: sums over whole molecules are too coarse in bfloat16."""
    return propagate(rows.to(torch.promote_types(rows.dtype, torch.float32)), relation)
