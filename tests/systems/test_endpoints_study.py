"""Causes from interventions: made graphs and outcomes by hand, an equivariant network, and matched pairs."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch

from molgraph.auxiliary.study.endpoints import correlation_edges, matched
from molgraph.nn.causal_relations import CausalRelations, interventions, random_graphs


@pytest.mark.system("causal-relational-network", rung="exact")
def test_relabelling_the_variables_relabels_the_edges(off: str) -> None:
    """Within 1e-5; off: the variable that is set is not relabelled."""
    torch.manual_seed(0)
    network = CausalRelations(8)
    x, at = interventions(random_graphs(6, 4), 10)
    order = torch.tensor([2, 0, 3, 1])
    logits, relabelled = network(x, at), network(x[..., order], at if off else at[..., order])
    torch.testing.assert_close(relabelled, logits[:, order][:, :, order], rtol=0, atol=1e-5)


@pytest.mark.system("causal-relational-network", rung="exact")
def test_graphs_have_no_cycles_and_a_variable_that_is_set_moves_its_descendants_alone(off: str) -> None:
    """Without noise; off: the graph is turned around."""
    torch.manual_seed(1)
    edges = random_graphs(40, 4)
    x, at = interventions(edges, 30, noise=0.0)
    for graph, rows, marks in zip(edges.numpy(), x.numpy(), at.numpy(), strict=True):
        digraph = nx.from_numpy_array((graph.T if off else graph).astype(int), create_using=nx.DiGraph)
        assert nx.is_directed_acyclic_graph(digraph)
        for row, mark in zip(rows, marks, strict=True):
            place = int(mark.argmax())
            moved = {int(i) for i in np.flatnonzero(np.abs(row) > 1e-9)}
            assert moved <= {place, *nx.descendants(digraph, place)} and place in moved
    changes = np.random.default_rng(0).normal(size=(2, 20, 3))
    np.testing.assert_allclose(correlation_edges(changes)[1], np.abs(np.corrcoef(changes[1].T)), atol=1e-12)


def test_matched_pairs_share_all_but_one_group() -> None:
    texts = ["Cc1ccccc1", "Oc1ccccc1", "CCCCCC", "Fc1ccccc1"]
    assert matched(texts, 10, 0) == [(0, 1), (0, 3), (1, 3)]
