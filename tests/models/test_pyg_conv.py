"""PyG's convolutions as encoders: each of the tested names, PyG's own sums, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.data.pyg import to_pyg
from molgraph.models.pyg_conv import PyGConv
from molgraph.nn.pyg_layers import TESTED
from molgraph.train.make_method import make_method
from tests.contract.test_encoders import SMILES, graphs, renumbered
from tests.tiny import series

STORE = featurize(SMILES)


def batch() -> GraphBatch:
    return collate(STORE, np.arange(len(SMILES)))


def build(**params) -> PyGConv:
    torch.manual_seed(0)
    return PyGConv(MOLECULE_SPEC, **{"d_hidden": 16, **params})


@pytest.mark.slow
@pytest.mark.parametrize("conv", TESTED)
def test_each_convolution_sees_graphs_and_nothing_else(conv: str) -> None:
    encoder, whole = build(conv=conv), batch()
    together = graphs(encoder, whole)
    assert together.isfinite().all() and (together.std(0) > 0).all()
    torch.testing.assert_close(graphs(encoder, renumbered(whole, 1)[0]), together, rtol=0, atol=1e-5)
    alone = torch.cat([graphs(encoder, collate(STORE, np.array([i]))) for i in range(len(SMILES))])
    torch.testing.assert_close(alone, together, rtol=0, atol=1e-5)
    encoder.train()(batch()).graphs.sin().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in encoder.parameters())


@pytest.mark.parametrize("conv", [name for name in TESTED if build(conv=name).edge])
def test_bonds_matter_where_the_convolution_takes_them(conv: str) -> None:
    encoder, whole = build(conv=conv), batch()
    changed = whole.with_level("bond", table=whole["bond"].table.flip(0))
    assert (graphs(encoder, changed) - graphs(encoder, whole)).abs().max() > 1e-4


def test_the_edge_convolutions_are_these() -> None:
    with_bonds = {name for name in TESTED if build(conv=name).edge}
    assert with_bonds >= {"GINEConv", "GATv2Conv", "TransformerConv", "CGConv", "NNConv", "PDNConv", "GENConv"}
    assert not with_bonds & {"GCNConv", "GINConv", "SAGEConv", "GraphConv"}


@pytest.mark.parametrize("name", ["GCNConv", "GINEConv"])
def test_the_sums_are_pygs(name: str) -> None:
    from torch_geometric import nn as pyg

    encoder, whole = build(conv=name, depth=2), batch()
    data = to_pyg(whole)
    h = encoder.embed(data.x)
    for i, conv in enumerate(encoder.convs):
        assert isinstance(conv, getattr(pyg, name))
        said = conv(h, data.edge_index, data.edge_attr) if name == "GINEConv" else conv(h, data.edge_index)
        h = h + (said.relu() if i == 0 else said)
    torch.testing.assert_close(graphs(encoder, whole), pyg.global_mean_pool(h, data.batch), rtol=0, atol=1e-5)


@pytest.mark.parametrize("conv", TESTED)
def test_the_smallest_batches_train(conv: str) -> None:
    store, made = featurize(["C", "CCO"]), build(conv=conv).train()
    for which in ([0], []):
        assert made(collate(store, np.array(which, dtype=np.int64))).graphs.isfinite().all()


def test_no_convolution_is_a_bag_of_atoms() -> None:
    from torch_geometric.nn import global_mean_pool

    encoder, whole = build(depth=0), batch()
    data = to_pyg(whole)
    torch.testing.assert_close(graphs(encoder, whole), global_mean_pool(encoder.embed(data.x), data.batch))


def test_what_cannot_be_is_refused_with_a_hint() -> None:
    with pytest.raises(UnknownNameError, match="'GCNConv'"):
        build(conv="GCNCon")
    with pytest.raises(UnknownNameError, match="'Linear'"):
        build(conv="Linear")
    odd: dict[str, dict[str, Any]] = {
        "ChebConv": {}, "PointNetConv": {}, "MixHopConv": {}, "HypergraphConv": {}, "DNAConv": {}, "SplineConv": {},
        "DenseGCNConv": {}, "MeshCNNConv": {}, "GATConv": {"out_channels": 7}, "GCNConv": {"in_channels": 3},
        "GINConv": {"nn": 5}, "PANConv": {"filter_size": 2},
        "GravNetConv": {"space_dimensions": 2, "propagate_dimensions": 2, "k": 2},
    }  # fmt: skip
    for name, options in odd.items():
        with pytest.raises(UnsupportedError, match=name):
            build(conv=name, options=options)
    with pytest.raises(UnsupportedError, match="cached"):
        build(conv="GCNConv", options={"cached": True})
    assert build(conv="GATConv", options={"heads": 2})(batch()).graphs.isfinite().all()
    degrees = {"aggregators": ["mean", "max"], "scalers": ["identity", "attenuation"], "deg": [0, 4, 3, 2, 1]}
    assert build(conv="PNAConv", options=degrees)(batch()).graphs.isfinite().all()
    for unread in ({"conv": "Nope"}, {"options": {"bogus": 1}}, {"heads": 2}):
        with pytest.raises(ValueError, match="depth=0"):
            build(depth=0, **unread)
    with pytest.raises(ValueError, match="heads must divide"):
        build(conv="GATConv", heads=3)
    with pytest.raises(ValueError, match="heads 8"):
        build(conv="GCNConv", heads=8)
    assert build(conv="GCNConv", d_hidden=30).d_out == 30, "no heads to divide it"
    assert build(conv="ChebConv", options={"K": 2})(batch()).graphs.isfinite().all()


def test_it_trains_by_name_and_goes_through_a_file(tmp_path) -> None:
    from molgraph.train.model import Model
    from molgraph.train.modelfile import load_model

    table = series(24)
    method = make_method("pyg_conv", conv="TransformerConv", d_hidden=8, epochs=2, head_width=8).fit(table)
    path = Model(method, targets=table.targets).save(tmp_path / "model.mgm")
    again = load_model(path).predict_table(table).value
    assert again.tobytes() == method.predict(table).value.tobytes() and np.isfinite(again).all()
