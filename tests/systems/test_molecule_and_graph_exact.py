"""Networks of molecules: MPNN, neural fingerprints and Weave against PyG, DeepChem, RDKit and loops by hand."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import Tensor, nn
from torch_geometric.nn import NNConv
from torch_geometric.nn import Set2Set as PygSet2Set
from torch_geometric.nn.models import NeuralFingerprint as Reference

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.models.mpnn import MPNN
from molgraph.models.neural_fingerprint import NeuralFingerprint
from molgraph.nn import relations
from molgraph.nn.by_degree import LinearByDegree
from molgraph.nn.histogram_readouts import GaussianHistogram, memberships
from molgraph.nn.pairs import pair_features, pairs
from tests.models import test_enn_s2s as geometry
from tests.models import test_mpnn as mpnn
from tests.models import test_weave as weave
from tests.models.shift import Shift, shift, shifted

SMILES = ["CCO", "c1ccccc1O", "[Na+].[Cl-]", "CC(C)(C)Cl", "F[P-](F)(F)(F)(F)F", "C"]


def silence(part: nn.Module) -> None:
    """Take a part out: what it gives is 0 from here on."""
    for weight in part.parameters():
        nn.init.zeros_(weight)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.system("mpnn", rung="exact")
def test_mpnn_is_the_papers_equations_in_pygs_layers(distinct: bool, off: str) -> None:
    own, batch = mpnn.encoder(distinct=distinct, rounds=4), mpnn.double_batch()
    first, last = own.message.network.layers
    network = torch.nn.Sequential(first, torch.nn.ReLU(), last)
    layer = NNConv(8, 8, network, aggr="add", root_weight=False, bias=False)
    readout = PygSet2Set(8, processing_steps=own.readout.steps).double()
    readout.lstm.load_state_dict({f"{name}_l0": w for name, w in own.readout.lstm.state_dict().items()})
    edges = torch.stack([batch.source, batch.target])
    h = own.embed(batch.features("atom"))
    for _ in range(4):
        h = own.update.cell(layer(h, edges, batch.features("bond")), h).detach()
    known = readout(h, batch.graph_of("atom"))
    if off:
        silence(first)  # the network of the edges reads no bond
    encoded = own(batch, rows=True)
    torch.testing.assert_close(encoded.rows[0].h, h, rtol=0, atol=1e-9)
    torch.testing.assert_close(encoded.graphs, known, rtol=0, atol=1e-9)


def by_hand(own: MPNN, batch: GraphBatch, message: Callable[[Tensor, Tensor, Tensor], Tensor]) -> Tensor:
    """The atoms' states, edge by edge, with the master node where there is one."""
    bonds, graph_of = batch.features("bond"), batch.graph_of("atom")
    h = own.embed(batch.features("atom"))
    g = torch.zeros(batch.n_graphs, own.master.d_master if own.master else 0).double()
    for _ in range(own.n_rounds):
        m = torch.zeros_like(h)
        for source, target, e in zip(batch.source.tolist(), batch.target.tolist(), bonds, strict=True):
            m[target] = m[target] + message(h[target], h[source], e)
        if own.master:
            m = m + g[graph_of] @ own.master.to_rows.weight.T
            heard = [(h[graph_of == i] @ own.master.from_rows.weight.T).sum(0) for i in range(batch.n_graphs)]
            g = own.master.update.cell(torch.stack(heard), g)
        h = shift(own.update.cell(m, h))
    return h.detach()


@pytest.mark.parametrize("d_master", [0, 5])
@pytest.mark.parametrize("name", ["edge_network", "matrix", "pair"])
@pytest.mark.system("mpnn", rung="exact")
def test_messages_and_the_master_node_are_the_papers(name: str, d_master: int, off: str) -> None:
    own, batch = shifted(mpnn.encoder(message=name, d_master=d_master)), mpnn.double_batch()
    message = {
        "edge_network": lambda to, of, e: of @ own.message.network(e[None]).view(8, 8),
        "matrix": lambda to, of, e: sum(weight * (of @ own.message.weight[k]) for k, weight in enumerate(e)),
        "pair": lambda to, of, e: own.message.last(own.message.first(torch.cat([of, to, e])).relu()),
    }[name]
    known = by_hand(own, batch, message)
    if off:
        silence(own.master.to_rows if own.master else own.message)
    torch.testing.assert_close(own(batch, rows=True).rows[0].h, known, rtol=0, atol=1e-9)


@pytest.mark.parametrize("distinct", [True, False])
@pytest.mark.system("mpnn", rung="exact")
def test_the_gate_reads_the_first_states_too(distinct: bool, off: str) -> None:
    """Gilmer et al. 2017, equation 4."""
    own, batch = mpnn.encoder(readout="gated", distinct=distinct), mpnn.double_batch()
    h, graph_of = own(batch, rows=True).rows[0].h, batch.graph_of("atom")
    gate = own.readout.gate(torch.cat([h, own.embed(batch.features("atom"))], dim=1)).sigmoid()
    known = torch.zeros(batch.n_graphs, 8).double().index_add(0, graph_of, gate * own.readout.value(h)).detach()
    if off:
        own.readout.gate.weight.data[:, 8:] = 0
    torch.testing.assert_close(own(batch).graphs, known, rtol=0, atol=1e-9)


@pytest.mark.system("mpnn", rung="exact")
def test_messages_of_enn_s2s_are_those_of_nnconv_over_all_pairs(off: str) -> None:
    own, batch = geometry.encoder(), collate(geometry.STORE, np.arange(3))
    batch = batch.with_level("atom", table=batch["atom"].table.double())
    x, graph_of = batch["atom"].arrays["position"].double(), batch.graph_of("atom")
    source, target = ((graph_of[:, None] == graph_of) & ~torch.eye(len(x), dtype=torch.bool)).nonzero().T
    network = own.message.network
    theirs = NNConv(8, 8, torch.nn.Sequential(network.layers[0], torch.nn.ReLU(), network.layers[1]), root_weight=False)
    theirs = theirs.double()
    theirs.bias.data.zero_()
    distance = (x[source] - x[target]).norm(dim=1, keepdim=True)
    h = own.embed(batch.features("atom").double())
    for _ in range(3):
        h = own.update(h, theirs(h, torch.stack([source, target]), distance)).detach()
    if off:
        silence(network.layers[0])  # blind to distances
    torch.testing.assert_close(own(batch, rows=True).rows[0].h, h, rtol=0, atol=1e-10)


def fingerprints(smiles: list[str], depth: int = 4) -> tuple[GraphBatch, NeuralFingerprint]:
    """Molecules, and a small network of theirs."""
    store = featurize(smiles)
    torch.manual_seed(0)
    network = NeuralFingerprint(store.spec, d_hidden=12, length=20, depth=depth, norm="none")
    return collate(store, np.arange(len(smiles))), network


@pytest.mark.system("neural-graph-fingerprints", rung="exact")
def test_without_bonds_a_neural_fingerprint_is_pygs(off: str) -> None:
    batch, made = fingerprints(SMILES)
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
            if off:  # the same weights whatever the number of neighbours
                hash_.weight.copy_(hash_.weight[1].expand_as(hash_.weight).clone())
        edges = torch.stack([batch.source, batch.target])
        known = theirs(atom, edges, batch.graph_of("atom"), len(SMILES))
        torch.testing.assert_close(made(batch).graphs, known, rtol=0, atol=1e-6)


@pytest.mark.system("neural-graph-fingerprints", rung="exact")
def test_a_fingerprint_sums_to_atoms_times_layers_and_bonds_count(off: str) -> None:
    batch, made = fingerprints(SMILES, 3 if off else 4)  # a layer left out
    out = made(batch, rows=True)
    atoms = batch["atom"].offsets.diff().float()
    torch.testing.assert_close(out.graphs.sum(1), 4 * atoms, rtol=0, atol=1e-5)
    torch.testing.assert_close(out.rows[0].h.sum(1), torch.full((batch.n_atoms,), 4.0), rtol=0, atol=1e-6)
    single, double = (fingerprints([text])[0] for text in ("CC", "C=C"))
    assert not torch.allclose(made(single).graphs, made(double).graphs)


@pytest.mark.system("neural-graph-fingerprints", rung="exact")
def test_each_number_of_neighbours_has_its_own_weights(off: str) -> None:
    layer = LinearByDegree(3, 2, max_degree=2)
    x, degree = torch.randn(5, 3), torch.tensor([2, 0, 9, 1, 0])
    for row, each, out in zip(x, degree.clamp(max=2), layer(x, degree * (not off)), strict=True):
        torch.testing.assert_close(out, layer.weight[each] @ row + layer.bias[each])
    assert layer(x[:0], degree[:0]).shape == (0, 2)


@pytest.mark.parametrize("n", [1, 2, 4])
@pytest.mark.system("weave", rung="exact")
def test_pairs_are_rdkits(n: int, off: str) -> None:
    batch, first = weave.a_batch(), 0
    reach = n + bool(off)
    found, features = pairs(batch, reach), pair_features(batch, n)
    of_pair = {tuple(ends): k for k, ends in enumerate(found.ends.tolist())}
    for text in weave.SMILES:
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


def directed(batch: GraphBatch, n: int) -> tuple[Tensor, Tensor]:
    """Both directions of every pair: atoms int64 [2 p, 2] sorted by the first, and the pair of each."""
    ends = pairs(batch, n).ends
    both, each = torch.cat([ends, ends.flip(1)]), torch.arange(len(ends)).repeat(2)
    order = both[:, 0].argsort(stable=True)
    return both[order], each[order]


@pytest.mark.system("weave", rung="exact")
def test_modules_are_deepchems(off: str) -> None:
    layers = pytest.importorskip("deepchem.models.torch_models.layers")
    own, batch = weave.encoder(norm="none", depth=3), weave.a_batch()
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
        known_a, known_p = known_a.detach(), known_p.detach()
        if off:
            silence(module.pair_to_atom)
        a, p = module(a, p, pairs(batch, 2), relations.members(batch))
        torch.testing.assert_close(a[keep], known_a, rtol=0, atol=1e-5)
        if module.update_pairs:
            torch.testing.assert_close(p[pair], known_p, rtol=0, atol=1e-5)
            there = {tuple(e): row for e, row in zip(ends.tolist(), known_p, strict=True)}
            for (one, other), row in there.items():  # P_ab == P_ba
                torch.testing.assert_close(row, there[other, one], rtol=0, atol=1e-6)


@pytest.mark.system("weave", rung="exact")
def test_the_histogram_is_deepchems_and_its_memberships_sum_to_one(off: str) -> None:
    layers = pytest.importorskip("deepchem.models.torch_models.layers")
    batch = weave.a_batch()
    h = torch.randn(batch.n_atoms, 6)
    gather = layers.WeaveGather(batch.n_graphs, n_input=6)
    known = gather([h, batch.graph_of("atom")])
    out, penalties = GaussianHistogram(6)(h.sign() if off else h, relations.members(batch))
    assert not penalties
    torch.testing.assert_close(out, known, rtol=0, atol=1e-5)
    far = memberships(torch.tensor([[-1e4, -9.0, 0.1, 40.0]]))
    torch.testing.assert_close(far.sum(1), torch.ones(1, 4))
    assert far.argmax(1).tolist() == [[0, 0, 5, 10]]


@pytest.mark.system("weave", rung="exact")
def test_bonded_pairs_alone_are_a_network_that_updates_edges(off: str) -> None:
    own, batch = shifted(weave.encoder(max_distance=1)), weave.a_batch()
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
    known = shift(own.dense(a).tanh()).detach()
    if off:
        silence(own.weaves[0].atoms_to_pair)  # pairs do not hear their atoms
    torch.testing.assert_close(own(batch, rows=True).rows[0].h, known, rtol=0, atol=1e-5)
