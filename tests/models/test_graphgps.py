"""GraphGPS's layer against PyG's, with copied weights; its walks against powers of a matrix."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import GINEConv, GPSConv

from molgraph.base.contracts import Target
from molgraph.base.errors import UnsupportedError
from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.data.graph_values import Graph
from molgraph.data.sources.graph_files import classes_table
from molgraph.models.graphgps import GraphGPS
from molgraph.nn import relations
from molgraph.nn.propagate import propagate
from molgraph.train.method import GraphMethod
from tests.models.shift import shift, shifted

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "OC(=O)c1ccncc1"]


def test_a_layer_is_pygs() -> None:
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    torch.manual_seed(0)
    made = GraphGPS(store.spec, d_hidden=12, depth=1)
    layer, mlp = made.layers[0], torch.nn.Sequential(torch.nn.Linear(12, 12), torch.nn.ReLU(), torch.nn.Linear(12, 12))
    theirs = GPSConv(12, GINEConv(mlp, edge_dim=store.spec.width("bond")), heads=4, norm="batch_norm")
    with torch.no_grad():
        for mine, linear in (
            (layer.local.layers[0], mlp[0]), (layer.local.layers[1], mlp[2]), (layer.of_bond, theirs.conv.lin),
            (layer.mlp.layers[0], theirs.mlp[0]), (layer.mlp.layers[1], theirs.mlp[3]),
            (layer.attended, theirs.attn.out_proj),
        ):  # fmt: skip
            mine.load_state_dict(linear.state_dict())
        layer.query_key_value.weight.copy_(theirs.attn.in_proj_weight)
        layer.query_key_value.bias.copy_(theirs.attn.in_proj_bias)
        h = torch.randn(batch.n_atoms, 12)
        edges, bonds = torch.stack([batch.source, batch.target]), batch.features("bond")
        known = theirs(h, edges, batch.graph_of("atom"), edge_attr=bonds)
        torch.testing.assert_close(layer(h, bonds, batch), known, rtol=0, atol=1e-5)


class Thrice(torch.nn.Module):
    """In the place of dropout."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 3 * x


def test_both_branches_and_the_perceptron_have_dropout() -> None:
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    torch.manual_seed(0)
    layer, h = shifted(GraphGPS(store.spec, d_hidden=12, depth=1).layers[0]), torch.randn(batch.n_atoms, 12)
    layer.dropout, bonds = Thrice(), batch.features("bond")
    with torch.no_grad():
        layer.attended.weight.zero_(), layer.attended.bias.fill_(0.5)
        heard = propagate(
            h, relations.bonds(batch), edge_rows=layer.of_bond(bonds), message=lambda s, t, b: (s + b).relu()
        )
        y = shift(h + 3 * layer.local(h + heard)) + shift(h + 3 * torch.full_like(h, 0.5))
        torch.testing.assert_close(layer(h, bonds, batch), shift(y + 3 * layer.mlp(y)), rtol=0, atol=1e-5)


@pytest.mark.parametrize("name", ["graphgps", "weave", "dag"])
def test_graphs_with_edges_one_way_are_refused(name: str) -> None:
    """Walks, pairs and the graphs of dag stand on edges that go both ways."""
    paths = [Graph(n, np.stack([np.arange(n - 1), np.arange(1, n)], axis=1)) for n in range(3, 9)]
    table = classes_table(paths, np.arange(6) % 2, Target("y", "multiclass", classes=("0", "1")))
    with pytest.raises(UnsupportedError, match=rf"{name} .*bond\.reverse"):
        GraphMethod(name, epochs=1).fit(table)
