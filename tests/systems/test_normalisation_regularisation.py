"""Norms against torch's and PyG's layers, and what a batch does to a molecule."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch_geometric.nn import LayerNorm

from molgraph.base.registry import get
from molgraph.data.batch import collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.data.featurize import featurize
from molgraph.nn.graph_norms import GroupGraph
from molgraph.nn.norms import Group, NoNorm
from tests.nn.test_norms import GRAPH_OF, MEMBERS, rows, with_weights
from tests.systems.effect import Effect
from tests.tiny import series


@pytest.mark.parametrize("n_groups", [1, 2, 4])
@pytest.mark.system("groupnorm", rung="exact")
def test_group_is_torchs(n_groups: int, off: str) -> None:
    own, peer = with_weights(Group(8, n_groups)), torch.nn.GroupNorm(n_groups, 8).double()
    peer.weight.data, peer.bias.data = (each.data for each in own.parameters())
    torch.testing.assert_close((NoNorm(8) if off else own)(rows(8), MEMBERS), peer(rows(8)))


@pytest.mark.parametrize("n_groups", [1, 2, 8])
@pytest.mark.system("groupnorm", rung="exact")
def test_group_over_a_graph_is_torchs_over_each_graph(n_groups: int, off: str) -> None:
    own, peer = with_weights(GroupGraph(8, n_groups)), torch.nn.GroupNorm(n_groups, 8).double()
    peer.weight.data, peer.bias.data = (each.data for each in own.parameters())
    found = (NoNorm(8) if off else own)(rows(8), MEMBERS)
    for graph in (0, 2):  # torch refuses one position a channel
        h = rows(8)[graph == GRAPH_OF]
        torch.testing.assert_close(found[graph == GRAPH_OF], peer(h.T.unsqueeze(0))[0].T)


@pytest.mark.system("groupnorm", rung="exact")
def test_one_group_over_a_graph_is_pygs_layer_norm_of_graphs(off: str) -> None:
    own, peer = with_weights(GroupGraph(8, 1)), LayerNorm(8, mode="graph").double()
    peer.weight.data, peer.bias.data = (each.data for each in own.parameters())
    torch.testing.assert_close((NoNorm(8) if off else own)(rows(8), MEMBERS), peer(rows(8), GRAPH_OF, 4))


@pytest.mark.parametrize("name", ["group", "group_graph"])
@pytest.mark.system("groupnorm", rung="works", twins=("batch",))
def test_a_molecule_has_one_vector_alone_and_among_others(name: str, off: str, effect: Effect) -> None:
    """While it trains, so that no statistics of the batch are in it: Wu and He 2018."""
    smiles = [str(text) for text in series(32).smiles]
    graphs, gaps = featurize(smiles), {}
    for norm in (name, "batch"):
        torch.manual_seed(0)
        encoder = copy.deepcopy(get("encoder", "gin")(MOLECULE_SPEC, d_hidden=8, norm=norm)).train()
        alone, among = (encoder(collate(graphs, np.arange(n))).graphs[:2].detach() for n in (2, 32))
        gaps[norm] = float((alone - among).abs().max() / among.abs().max())
    effect(
        "largest change of a vector / largest value",
        [gaps[off or name]],
        at_most=1e-5,
        beside={"batch": [gaps["batch"]]},
    )
