"""MPNN against PyG's layers put together as the paper says, and its distinct rows against all rows."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.nn import NNConv
from torch_geometric.nn import Set2Set as PygSet2Set

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.models.mpnn import MPNN

SMILES = ["CC(=O)Oc1ccccc1C(=O)O", "C", "C[C@H](N)C(=O)O", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CCCCCCCCO"]


def double_batch() -> GraphBatch:
    batch = collate(featurize(SMILES), np.arange(len(SMILES)))
    batch = batch.with_level("atom", table=batch["atom"].table.double())
    return batch.with_level("bond", table=batch["bond"].table.double())


def encoder(**params: object) -> MPNN:
    torch.manual_seed(0)
    return MPNN(MOLECULE_SPEC, d_hidden=8, **params).double()


@pytest.mark.parametrize("distinct", [True, False])
def test_is_the_papers_equations_in_pygs_layers(distinct: bool) -> None:
    own, batch = encoder(distinct=distinct, rounds=4), double_batch()
    first, last = own.message.network.layers
    network = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    layer = NNConv(8, 8, network, aggr="add", root_weight=False, bias=False)
    readout = PygSet2Set(8, processing_steps=own.readout.steps).double()
    readout.lstm.load_state_dict({f"{name}_l0": w for name, w in own.readout.lstm.state_dict().items()})
    edges = torch.stack([batch.source, batch.target])
    h = own.embed(batch.features("atom"))
    for _ in range(4):
        h = own.update.cell(layer(h, edges, batch.features("bond")), h)
    encoded = own(batch, rows=True)
    torch.testing.assert_close(encoded.rows[0].h, h, rtol=0, atol=1e-9)
    torch.testing.assert_close(encoded.graphs, readout(h, batch.graph_of("atom")), rtol=0, atol=1e-9)


@pytest.mark.parametrize("rounds", [0, 1, 3])
def test_distinct_rows_give_the_gradients_of_all_rows(rounds: int) -> None:
    own, batch = encoder(rounds=rounds), double_batch()
    results = []
    for distinct in (True, False):
        own.distinct = distinct
        own.zero_grad()
        graphs = own(batch).graphs
        graphs.pow(2).sum().backward()
        results.append([graphs, *(p.grad for p in own.parameters() if p.grad is not None)])
    assert len(results[0]) == len(results[1])
    for one, other in zip(*results, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-9, atol=1e-9)


def test_other_readouts_fit() -> None:
    for name in ("mean", "sum", "norm"):
        own = encoder(readout=name)
        assert own(double_batch()).graphs.shape == (len(SMILES), own.d_out)


def test_wrong_parameters_are_answered() -> None:
    with pytest.raises(ValueError, match="rounds must be 0 or more, got -1"):
        encoder(rounds=-1)
