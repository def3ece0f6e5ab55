"""RFM and its graph-network block against PyG's MetaLayer and a loop by hand."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.nn import MetaLayer
from torch_geometric.utils import scatter

from molgraph.data.batch import GraphBatch
from molgraph.data.featurize import featurize
from molgraph.models.rfm import RFM
from molgraph.nn.gn_block import GNBlock, GraphState, Widths
from tests.models.test_rfm import SMILES, double_batch


def perceptron(own: nn.Module, *parts: Tensor) -> Tensor:
    hidden = torch.cat(parts, dim=-1) @ own.first.weight.T + own.first.bias
    return own.last(hidden.relu())


def meta_layer(own: GNBlock, n: int, g: int) -> MetaLayer:
    class Edge(nn.Module):
        def forward(self, src: Tensor, dst: Tensor, e: Tensor, u: Tensor, graph: Tensor) -> Tensor:
            return perceptron(own.edge, e, src, dst, u[graph])

    class Node(nn.Module):
        def forward(self, x: Tensor, edges: Tensor, e: Tensor, u: Tensor, graph: Tensor) -> Tensor:
            return perceptron(own.node, scatter(e, edges[1], 0, n), x, u[graph])

    class Whole(nn.Module):
        def forward(self, x: Tensor, edges: Tensor, e: Tensor, u: Tensor, graph: Tensor) -> Tensor:
            return perceptron(own.graph, scatter(e, graph[edges[1]], 0, g), scatter(x, graph, 0, g), u)

    return MetaLayer(Edge(), Node(), Whole())


def by_meta_layer(own: GNBlock, state: GraphState, batch: GraphBatch) -> GraphState:
    edges, (e, v, u) = torch.stack([batch.source, batch.target]), state
    v, e, u = meta_layer(own, batch.n_atoms, batch.n_graphs)(v, edges, e, u, batch.graph_of("atom"))
    return GraphState(e.detach(), v.detach(), u.detach())


def random_state(batch: GraphBatch, widths: Widths) -> GraphState:
    rng = torch.Generator().manual_seed(1)
    sizes = batch.n_bonds, batch.n_atoms, batch.n_graphs
    return GraphState(*(torch.randn(n, d, generator=rng).double() for n, d in zip(sizes, widths, strict=True)))


@pytest.mark.parametrize("widths", [Widths(3, 4, 2), Widths(3, 4, 0), Widths(2, 5, 6)])
@pytest.mark.system("rfm", rung="exact")
def test_the_block_is_pygs_meta_layer_and_a_loop_by_hand(widths: Widths, off: str) -> None:
    torch.manual_seed(0)
    own, batch = GNBlock(widths, 7, 5).double(), double_batch()
    state = random_state(batch, widths)
    found = own(state._replace(edges=0 * state.edges) if off else state, batch)
    for mine, theirs in zip(found, by_meta_layer(own, state, batch), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-9)
    ends, graph_of = list(zip(batch.source.tolist(), batch.target.tolist(), strict=True)), batch.graph_of("atom")
    e, v, u = state
    e = [perceptron(own.edge, e[k], v[s], v[t], u[graph_of[s]]) for k, (s, t) in enumerate(ends)]
    zero = torch.zeros(5).double()
    sums = [sum((e[k] for k, (_, t) in enumerate(ends) if t == a), zero) for a in range(batch.n_atoms)]
    v = [perceptron(own.node, sums[a], v[a], u[graph_of[a]]) for a in range(batch.n_atoms)]
    for i in range(batch.n_graphs):
        of_edges = sum((e[k] for k, (s, _) in enumerate(ends) if graph_of[s] == i), zero)
        whole = sum((v[a] for a in range(batch.n_atoms) if graph_of[a] == i), zero)
        torch.testing.assert_close(found.graphs[i], perceptron(own.graph, of_edges, whole, u[i]), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.edges, torch.stack(e), rtol=0, atol=1e-9)
    torch.testing.assert_close(found.nodes, torch.stack(v), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.system("rfm", rung="exact")
def test_rfm_is_encoder_recurrent_core_and_decoder(rounds: int, off: str) -> None:
    torch.manual_seed(0)
    batch = double_batch()
    own = RFM(featurize(SMILES).spec, d_hidden=6, rounds=rounds).double()
    none = torch.zeros(len(SMILES), 0).double()
    x = by_meta_layer(own.encode, GraphState(batch.features("bond"), batch.features("atom"), none), batch)
    h = GraphState(*(0 * part for part in x))
    for _ in range(rounds):
        both = GraphState(*(torch.cat(parts, 1) for parts in zip(x, h, strict=True)))
        m = by_meta_layer(own.core.block, both, batch)
        h = GraphState(*(cell(new, old) for cell, new, old in zip(own.core.cells, m, h, strict=True)))
    known = by_meta_layer(own.decode, h, batch)
    if off:
        own.rounds = 0  # the core never steps
    encoded = own(batch, rows=True)
    atoms, bonds = encoded.rows
    assert (atoms.level, bonds.level) == ("atom", "bond") and bonds.graph_of.equal(batch.graph_of("bond"))
    for mine, theirs in zip((bonds.h, atoms.h, encoded.graphs), known, strict=True):
        torch.testing.assert_close(mine, theirs, rtol=0, atol=1e-9)
