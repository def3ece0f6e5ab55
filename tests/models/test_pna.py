"""PNA's layer against PyG's, with copied weights."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import PNAConv

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.pna import PNA
from tests.models.shift import shift, shifted

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "OC(=O)c1ccncc1"]


def test_a_layer_is_pygs() -> None:
    store = featurize(SMILES)
    batch = collate(store, np.arange(len(SMILES)))
    torch.manual_seed(0)
    made = shifted(PNA(store.spec, d_hidden=12, depth=1, distinct=False))
    layer, degrees = made.layers[0], torch.bincount(torch.bincount(batch.target, minlength=batch.n_atoms))
    theirs = PNAConv(
        12, 12, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"], degrees,
        edge_dim=store.spec.width("bond"), divide_input=False,
    )  # fmt: skip
    made.measure(store)
    torch.testing.assert_close(made.delta, theirs.aggr_module.avg_deg_log[0].float())
    with torch.no_grad():
        pre, post = theirs.pre_nns[0][0], theirs.post_nns[0][0]
        target, source, bond = pre.weight.split(12, dim=1)
        layer.of_target.weight.copy_(target)
        layer.of_target.bias.copy_(pre.bias + bond @ theirs.edge_encoder.bias)
        layer.of_source.weight.copy_(source)
        layer.of_bond.weight.copy_(bond @ theirs.edge_encoder.weight)
        layer.update[0].load_state_dict(post.state_dict())
        layer.update[1].load_state_dict(theirs.lin.state_dict())
        h, edges = made.embed(batch.features("atom")), torch.stack([batch.source, batch.target])
        for tolerance in (4e-3, 1e-5):  # equal neighbours have a spread of sqrt(1e-5) here and of zero there
            known = theirs(h, edges, batch.features("bond"))
            torch.testing.assert_close(
                made(batch, rows=True).rows[0].h, h + shift(known).relu(), rtol=0, atol=tolerance
            )
            for weight in (post.weight, layer.update[0].weight):  # without the spreads they are equal
                weight[:, 12:].view(12, 3, 4, 12)[:, :, 3] = 0


def test_a_delta_that_is_given_stays_and_graphs_without_bonds_leave_it() -> None:
    store, alone = featurize(SMILES), featurize(["C", "[Na+]"])
    given, made = PNA(store.spec, delta=2.0), PNA(store.spec)
    given.measure(store)
    made.measure(alone)
    assert float(given.delta) == 2.0 and float(made.delta) == pytest.approx(1.1)
    made.measure(store)
    assert float(made.delta) != pytest.approx(1.1)
    assert "delta" in made.state_dict()
