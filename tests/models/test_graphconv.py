"""GraphConv against its equations, atom by atom."""

from __future__ import annotations

import numpy as np
import torch

from molgraph.data.batch import collate
from molgraph.data.featurize import featurize
from molgraph.models.graphconv import GraphConv
from tests.models.shift import shift, shifted

SMILES = ["CCO", "[Na+].[Cl-]", "CC(C)(C)Cl", "F[P-](F)(F)(F)(F)F", "C", "c1ccccc1O"]


def test_layers_pool_and_gather_by_hand() -> None:
    store = featurize(SMILES)
    torch.manual_seed(0)
    made, batch = shifted(GraphConv(store.spec, d_hidden=8, d_dense=6)), collate(store, np.arange(len(SMILES)))
    near = [[] for _ in range(batch.n_atoms)]
    for source, target in zip(batch.source.tolist(), batch.target.tolist(), strict=True):
        near[target].append(source)
    h = [*batch.features("atom")]
    for layer in made.layers:
        sums = [sum((h[u] for u in own), torch.zeros_like(h[0])) for own in near]
        pairs = [torch.cat([h[v], sums[v]]) for v in range(len(h))]
        h = [shift((layer.weight[len(own)] @ pairs[v] + layer.bias[len(own)]).relu()) for v, own in enumerate(near)]
        h = [torch.stack([h[v], *(h[u] for u in own)]).amax(0) for v, own in enumerate(near)]
    dense = torch.stack([shift(made.dense(row).relu()) for row in h])
    graph_of = batch.graph_of("atom")
    known = [torch.cat([dense[graph_of == g].sum(0), dense[graph_of == g].amax(0)]) for g in range(len(SMILES))]
    torch.testing.assert_close(made(batch).graphs, torch.stack(known).tanh(), rtol=0, atol=1e-5)


def test_a_norm_over_each_graph_keeps_to_its_graph_in_every_layer() -> None:
    store = featurize(SMILES)
    torch.manual_seed(0)
    made = GraphConv(store.spec, d_hidden=8, d_dense=6, norm="graph", depth=3).double()

    def encoded(rows: np.ndarray) -> torch.Tensor:
        batch = collate(store, rows)
        return made(batch.with_level("atom", table=batch["atom"].table.double())).graphs

    together = encoded(np.arange(len(SMILES)))
    alone = [encoded(np.array([i])) for i in range(len(SMILES))]
    torch.testing.assert_close(torch.cat(alone), together, rtol=0, atol=1e-9)
