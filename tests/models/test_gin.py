"""GIN against PyG's GINConv and GINEConv, with copied weights, norms in training and eps other than 0."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch_geometric.nn import GINConv, GINEConv, global_add_pool

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_graph import GraphFeaturiser
from molgraph.data.graph_values import Graph
from molgraph.models.gin import GIN

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "OC(=O)c1ccncc1", "C"]


@pytest.mark.parametrize("edges", [False, True])
@pytest.mark.parametrize("norm", ["none", "batch"])
@pytest.mark.parametrize("distinct", [False, True])
def test_gin_is_pygs(edges: bool, norm: str, distinct: bool) -> None:
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    torch.manual_seed(0)
    own = GIN(store.spec, d_hidden=8, depth=3, norm=norm, edges=edges, distinct=distinct)
    with torch.no_grad():
        own.eps.copy_(torch.tensor([0.3, -0.2, 0.7]))
    h, index, bonds = (
        own.embed(batch.features("atom")),
        torch.stack([batch.source, batch.target]),
        batch.features("bond"),
    )
    states = [h]
    for t, perceptron in enumerate(own.perceptrons):
        first, last = perceptron.layers
        network = nn.Sequential(first, nn.ReLU(), last)
        if edges:
            conv = GINEConv(network, train_eps=True, edge_dim=bonds.shape[1])
            conv.lin.load_state_dict(own.embed_edges[t].state_dict())
        else:
            conv = GINConv(network, train_eps=True)
        conv.eps.data.fill_(own.eps[t].item())
        h = conv(h, index, *[bonds] * edges)
        h = (nn.BatchNorm1d(8)(h) if norm == "batch" else h).relu()
        states.append(h)
    known = global_add_pool(torch.cat(states, dim=1), batch.graph_of("atom"))
    torch.testing.assert_close(own(batch).graphs, known, rtol=1e-5, atol=1e-5)


def test_bonds_are_read_unless_they_are_left_out() -> None:
    store = featurize(["C=CC", "CCC"])
    batch = collate(store, np.arange(2))
    plain = batch.with_level("bond", table=torch.zeros_like(batch["bond"].table))
    for edges in (True, False):
        torch.manual_seed(0)
        own = GIN(store.spec, d_hidden=8, depth=1, norm="none", edges=edges)
        assert torch.equal(own(batch).graphs, own(plain).graphs) != edges


@pytest.mark.parametrize("name", ["gin", "structpool", "pyg_pool"])
def test_one_number_of_an_edge_is_a_feature_and_no_number_is_none(name: str) -> None:
    edges = np.array([[0, 1], [1, 0], [1, 2], [2, 1]])
    weighed = [Graph(3, edges, edge_features=np.full((4, 1), w, np.float32)) for w in (1, 5)]
    for values, reads in ((weighed, True), ([Graph(3, edges)] * 2, False)):
        store = GraphFeaturiser().featurise(values)
        torch.manual_seed(0)
        made = get("encoder", name)(store.spec, d_hidden=16).eval()
        assert store.spec.has_edge_features == reads
        one, five = made(collate(store, np.arange(2))).graphs
        assert ((one - five).abs().max() > 1e-3) == reads
