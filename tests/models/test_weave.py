"""Weave against DeepChem's layers with the same weights, and against its equations pair by pair."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from rdkit import Chem

from molgraph.base.errors import UsageError
from molgraph.base.parameters import check_params
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.featurize_rings import MoleculesWithRings
from molgraph.models.weave import Weave
from molgraph.nn import relations
from molgraph.nn.histogram_readouts import GaussianHistogram, memberships
from molgraph.nn.pairs import pair_features, pairs
from tests.contract.test_encoders import renumbered
from tests.models.shift import shift, shifted
from tests.nn.largest import Largest

SMILES = ["c1ccc2ccccc2c1O", "C", "[Na+].[Cl-]", "C12C3C4C1C5C2C3C45", "CC(=O)NC1CC1", "C1CC2CC1C2"]
STORE = MoleculesWithRings().featurise(SMILES)


def a_batch() -> GraphBatch:
    return collate(STORE, np.arange(len(SMILES)))


def encoder(**params: object) -> Weave:
    torch.manual_seed(0)
    return Weave(STORE.spec, d_hidden=8, d_dense=6, **params)


def directed(batch: GraphBatch, n: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Both directions of every pair: atoms int64 [2 p, 2] sorted by the first, and the pair of each."""
    ends = pairs(batch, n).ends
    both, each = torch.cat([ends, ends.flip(1)]), torch.arange(len(ends)).repeat(2)
    order = both[:, 0].argsort(stable=True)
    return both[order], each[order]


@pytest.mark.parametrize("n", [1, 2, 4])
def test_pairs_are_rdkits(n: int) -> None:
    batch, first = a_batch(), 0
    found, features = pairs(batch, n), pair_features(batch, n)
    of_pair = {tuple(ends): k for k, ends in enumerate(found.ends.tolist())}
    for text in SMILES:
        mol = Chem.MolFromSmiles(text)
        far, rings = Chem.GetDistanceMatrix(mol), mol.GetRingInfo()
        for a in range(mol.GetNumAtoms()):
            for b in range(a):
                k = of_pair.pop((first + a, first + b), None)
                assert (k is not None) == (far[a, b] <= n)
                if k is None:
                    continue
                assert found.distance[k] == far[a, b] and found.same_ring[k] == rings.AreAtomsInSameRing(a, b)
                bonds = (batch.source == first + a) & (batch.target == first + b)
                assert features[k, :14].equal(batch.features("bond")[bonds].sum(0))
                assert features[k, 14:].tolist() == [*(far[a, b] == d + 1 for d in range(n)), found.same_ring[k]]
        first += mol.GetNumAtoms()
    assert not of_pair


def test_modules_are_deepchems() -> None:
    layers = pytest.importorskip("deepchem.models.torch_models.layers")
    own, batch = encoder(norm="none", depth=3), a_batch()
    keep = (batch["atom"].offsets.diff() > 1).index_select(0, batch.graph_of("atom"))
    keep &= relations.hops(batch, 2).offsets.diff() > 0  # an atom without pairs has no row in DeepChem's sum
    ends, pair = directed(batch, 2)
    number = keep.cumsum(0) - 1
    a, p = batch.features("atom"), pair_features(batch, 2)
    known_a, known_p = a[keep], p[pair]
    for module in own.weaves:
        copy = layers.WeaveLayer(
            known_a.shape[1], known_p.shape[1], 8, 8, *[8] * 4, update_pair=module.update_pairs, batch_normalize=False
        )
        places = {"AA": "atom_to_atom", "PA": "pair_to_atom", "A": "atom"}
        places |= {"AP": "atoms_to_pair", "PP": "pair_to_pair", "P": "pair"} if module.update_pairs else {}
        for theirs, ours in places.items():
            linear = getattr(module, ours).linear
            setattr(copy, f"W_{theirs}", linear.weight.T)
            setattr(copy, f"b_{theirs}", linear.bias)
        known_a, known_p = copy([known_a, known_p, number[ends[:, 0]].numpy(), number[ends].numpy()])
        a, p = module(a, p, pairs(batch, 2), relations.members(batch))
        torch.testing.assert_close(a[keep], known_a, rtol=0, atol=1e-5)
        if module.update_pairs:
            torch.testing.assert_close(p[pair], known_p, rtol=0, atol=1e-5)
            there = {tuple(e): row for e, row in zip(ends.tolist(), known_p, strict=True)}
            for (one, other), row in there.items():  # P_ab == P_ba
                torch.testing.assert_close(row, there[other, one], rtol=0, atol=1e-6)


def test_the_histogram_is_deepchems_and_its_memberships_sum_to_one() -> None:
    layers = pytest.importorskip("deepchem.models.torch_models.layers")
    h, batch = torch.randn(a_batch().n_atoms, 6), a_batch()
    gather = layers.WeaveGather(batch.n_graphs, n_input=6)
    known = gather([h, batch.graph_of("atom")])
    out, penalties = GaussianHistogram(6)(h, relations.members(batch))
    assert not penalties
    torch.testing.assert_close(out, known, rtol=0, atol=1e-5)
    far = memberships(torch.tensor([[-1e4, -9.0, 0.1, 40.0]]))
    torch.testing.assert_close(far.sum(1), torch.ones(1, 4))
    assert far.argmax(1).tolist() == [[0, 0, 5, 10]]


def test_bonded_pairs_alone_are_a_network_that_updates_edges() -> None:
    own, batch = shifted(encoder(max_distance=1)), a_batch()
    assert len(pairs(batch, 1).ends) * 2 == batch.n_bonds
    source, target, one = batch.source, batch.target, torch.ones(batch.n_bonds, 1)
    ring = batch.features("bond")[:, 6:7]  # a bond in a ring has both atoms in it
    a, e = batch.features("atom"), torch.cat([batch.features("bond"), one, ring], dim=1)
    for module in own.weaves:
        sums = torch.zeros(batch.n_atoms, 8).index_add_(0, target, shift(module.pair_to_atom.linear(e)).relu())
        own_part = shift(module.atom_to_atom.linear(a)).relu()
        after = shift(module.atom.linear(torch.cat([own_part, sums], 1))).relu()
        if module.update_pairs:
            f = module.atoms_to_pair.linear
            one_way, other = torch.cat([a[source], a[target]], 1), torch.cat([a[target], a[source]], 1)
            both = shift(f(one_way)).relu() + shift(f(other)).relu()
            e = shift(module.pair.linear(torch.cat([both, shift(module.pair_to_pair.linear(e)).relu()], 1))).relu()
        a = after
    torch.testing.assert_close(own(batch, rows=True).rows[0].h, shift(own.dense(a).tanh()), rtol=0, atol=1e-5)


def test_no_tensor_is_as_large_as_all_pairs_of_the_largest_graph_for_each_graph() -> None:
    smiles = [*SMILES * 10, "C" * 90]
    store = MoleculesWithRings().featurise(smiles)
    batch, own = collate(store, np.arange(len(smiles))), encoder()
    with Largest() as seen:
        own(batch).graphs.sum().backward()
    pairs_near = len(pairs(batch, 2).ends)
    width = 2 * max(8, store.spec.width("bond") + 3)
    assert seen.most <= 2 * pairs_near * width < len(smiles) * 90**2 / 5, "it was 8 values for each of these pairs"


def test_batch_norm_does_not_depend_on_which_end_of_a_pair_comes_first() -> None:
    own, batch = encoder().train(), a_batch()
    plain = own(batch).graphs
    for seed in range(2):
        torch.testing.assert_close(own(renumbered(batch, seed)[0]).graphs, plain, rtol=0, atol=1e-4)


def test_graphs_without_rings_told_are_read_and_wrong_parameters_answered() -> None:
    store = featurize(SMILES)
    torch.manual_seed(0)
    assert Weave(store.spec)(collate(store, np.arange(3))).graphs.isfinite().all()
    with pytest.raises(UsageError, match="weave: depth is 0, expected a whole number from 1"):
        check_params(Weave, {"depth": 0}, owner="weave")
