"""Neural fingerprints against PyG's, the sum of their softmaxes, and ECFP where weights are large."""

from __future__ import annotations

import numpy as np
import torch
from scipy.stats import pearsonr
from torch_geometric.nn.models import NeuralFingerprint as Reference

from molgraph.chem.fingerprints import morgan
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.sources import builtin
from molgraph.models.neural_fingerprint import NeuralFingerprint
from molgraph.nn.by_degree import LinearByDegree
from tests.models.shift import Shift, shift

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "F[P-](F)(F)(F)(F)F", "C"]


def batch_of(smiles: list[str]) -> tuple[GraphBatch, NeuralFingerprint]:
    store = featurize(smiles)
    torch.manual_seed(0)
    return collate(store, np.arange(len(smiles))), NeuralFingerprint(store.spec, d_hidden=12, length=20, norm="none")


def test_without_bonds_it_is_pygs() -> None:
    batch, made = batch_of(SMILES)
    made.norms = torch.nn.ModuleList(Shift(0) for _ in made.norms)  # of what PyG's layer gives its activation
    made.activation = torch.nn.Sigmoid()
    atom = batch.features("atom")
    theirs = Reference(atom.shape[1], 12, 20, 4)
    with torch.no_grad():
        for hash_, index, conv, lin in zip(made.hash, made.index, theirs.convs, theirs.lins, strict=True):
            d = conv.in_channels
            hash_.weight[:, :, d:] = 0  # of the bonds
            for k, (around, own) in enumerate(zip(conv.lins_l, conv.lins_r, strict=True)):
                around.weight.copy_(1.5 * hash_.weight[k, :, :d])
                around.bias.copy_(shift(hash_.bias[k]))
                own.weight.copy_(1.5 * hash_.weight[k, :, :d])
            lin.weight.copy_(index.weight)
        edges = torch.stack([batch.source, batch.target])
        known = theirs(atom, edges, batch.graph_of("atom"), len(SMILES))
        torch.testing.assert_close(made(batch).graphs, known, rtol=0, atol=1e-6)


def test_a_fingerprint_sums_to_atoms_times_layers_and_bonds_count() -> None:
    batch, made = batch_of(SMILES)
    out = made(batch, rows=True)
    atoms = batch["atom"].offsets.diff().float()
    torch.testing.assert_close(out.graphs.sum(1), 4 * atoms, rtol=0, atol=1e-5)
    torch.testing.assert_close(out.rows[0].h.sum(1), torch.full((batch.n_atoms,), 4.0), rtol=0, atol=1e-6)
    single, double = (batch_of([text])[0] for text in ("CC", "C=C"))
    assert not torch.allclose(made(single).graphs, made(double).graphs)


def test_large_random_weights_make_it_a_circular_fingerprint() -> None:
    smiles = builtin.chembl2321810().smiles.tolist()[:300]
    store = featurize(smiles)
    batch = collate(store, np.arange(len(smiles)))
    torch.manual_seed(0)
    made = NeuralFingerprint(store.spec, d_hidden=64, length=2048, depth=2, activation="tanh", norm="none")
    with torch.no_grad():
        for name, weight in made.named_parameters():
            weight.normal_(0, 0 if name.endswith("bias") else 100)
        found = made(batch).graphs.double()
    ecfp = torch.from_numpy(morgan(smiles, counts=True).x.astype(np.float64))
    rows = torch.triu_indices(len(smiles), len(smiles), 1)
    distances = []
    for prints in (found, ecfp):
        least = torch.stack([torch.minimum(row, prints).sum(1) for row in prints])
        most = torch.stack([torch.maximum(row, prints).sum(1) for row in prints])
        distances.append((1 - least / most)[rows[0], rows[1]].numpy())
    assert pearsonr(*distances).statistic > 0.8  # 0.91; the paper: 0.823


def test_each_number_of_neighbours_has_its_own_weights() -> None:
    layer = LinearByDegree(3, 2, max_degree=2)
    x, degree = torch.randn(5, 3), torch.tensor([2, 0, 9, 1, 0])
    for row, each, out in zip(x, degree.clamp(max=2), layer(x, degree), strict=True):
        torch.testing.assert_close(out, layer.weight[each] @ row + layer.bias[each])
    assert layer(x[:0], degree[:0]).shape == (0, 2)
