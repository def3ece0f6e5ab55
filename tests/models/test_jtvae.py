"""Decoding of the junction-tree VAE keeps its limits and follows its training; equations stand in tests/systems."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem

from molgraph.chem.fragments.junction_tree import JunctionTree
from molgraph.chem.fragments.vocabulary import Vocabulary, read_corpus
from molgraph.chem.smiles import why_unreadable
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.feature_layout import MOLECULE_SPEC
from molgraph.models.jtvae.attachments import AttachmentGraphs
from molgraph.models.jtvae.corpus import CANDIDATE, CLUSTER, SITE, pack_trees
from molgraph.models.jtvae.graph_decoding import GraphDecoder, _batch
from molgraph.models.jtvae.network import JTVAENetwork
from molgraph.models.jtvae.tree_decoding import Limits, TreeDecoder
from molgraph.models.jtvae.tree_relations import traversal
from tests.tiny import series

D, D_LATENT = 12, 6
TEXTS = ["C", "CCO", "CC(C)(C)O", "C[C@H](N)C(=O)O", "F/C=C/c1ccccc1", *series(25).smiles.tolist()]


class Made:
    """A small network with weights that make its choices clear, and the batch of a corpus."""

    def __init__(self, seed: int = 0) -> None:
        found, self.vocabulary = read_corpus(TEXTS)
        self.trees: list[JunctionTree] = [each.tree for each in found if each.tree]
        self.graphs = AttachmentGraphs(self.vocabulary)
        self.batch: GraphBatch = collate(
            pack_trees(TEXTS, self.trees, self.vocabulary, self.graphs), np.arange(len(TEXTS))
        )
        torch.manual_seed(seed)
        self.network = JTVAENetwork(
            len(self.vocabulary), self.graphs, MOLECULE_SPEC, d_hidden=D, d_latent=D_LATENT, depth=2
        ).eval()
        with torch.no_grad():
            for weight in self.network.parameters():
                weight.mul_(3.0)


@pytest.fixture(scope="module")
def made() -> Made:
    return Made()


def test_stereochemistry_reaches_the_latent_vector_and_comes_back(made: Made) -> None:
    texts = ["C[C@H](N)C(=O)O", "C[C@@H](N)C(=O)O", "CC(N)C(=O)O"]
    trees = [each.tree for each in made.vocabulary.trees(texts)]
    batch = collate(pack_trees(texts, trees, made.vocabulary, made.graphs), np.arange(3))
    assert sorted(batch[SITE].arrays["label"].tolist()) == [0, 1, 2]
    with torch.no_grad():
        mean = made.network.encode(batch).posterior.mean
    half = D_LATENT // 2
    assert torch.equal(mean[0, :half], mean[1, :half]), "the tree knows nothing of it"
    assert not torch.allclose(mean[0, half:], mean[1, half:]) and not torch.allclose(mean[0, half:], mean[2, half:])


def decoders(made: Made, **how: Any) -> tuple[TreeDecoder, GraphDecoder]:
    how = {"temperature": 1.0, "check": True, "limits": Limits(), **how}
    return TreeDecoder(made.network, made.vocabulary, **how), GraphDecoder(made.network, made.vocabulary, **how)


def rngs(n: int) -> list[np.random.Generator]:
    return [np.random.default_rng(k) for k in range(n)]


def test_trees_that_are_drawn_follow_the_scores_of_the_same_trees_as_they_are_trained(made: Made) -> None:
    """At no temperature and without the check each choice is the most likely one, by the network of training."""
    network = made.network
    z = 2 * torch.randn(24, D_LATENT // 2, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        trees = decoders(made, temperature=1e-9, check=False, limits=Limits(nodes=15))[0].decode(z, rngs(24))
        batch = _batch(trees, z.device)
        walk, code = traversal(batch), batch[CLUSTER].arrays["code"]
        h = network.tree_decoder(network._inputs(network.tree_decoder, code, walk.messages.leaves), walk.messages)
        arrived = torch.cat([h, torch.zeros(1, D)])[walk.messages.down]
        labels = network.label_scores(arrived, z, batch.graph_of(CLUSTER)).argmax(1)
        from molgraph.nn.propagate import propagate

        tree_of = batch.graph_of(CLUSTER)[walk.node]
        scores = network.expand_scores(network.embedding(code)[walk.node], propagate(h, walk.heard), z, tree_of)
    sizes = np.array([len(tree.codes) for tree in trees])
    assert sizes.max() > 3 and len({*sizes}) > 2, "trees of several sizes"
    assert torch.equal(labels, code)
    full = torch.from_numpy(sizes == 15)[tree_of]  # a full tree stops without being asked
    assert torch.equal((scores > 0)[~full], walk.expand.bool()[~full])
    assert not ((scores <= 0) & walk.expand.bool())[full].any()


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_every_latent_vector_becomes_a_molecule_within_the_limits(made: Made, scale: float) -> None:
    z = scale * torch.randn(150, D_LATENT, generator=torch.Generator().manual_seed(4))
    with torch.no_grad():
        trees, graphs = decoders(made, limits=Limits(nodes=12, atoms=30, attempts=20))
        drawn = trees.decode(z[:, : D_LATENT // 2], rngs(150))
        texts = graphs.decode(drawn, z[:, D_LATENT // 2 :])
    assert all(text and not why_unreadable(text) for text in texts)
    assert max(len(tree.codes) for tree in drawn) <= 12
    assert len({*texts}) > 20


def test_decoding_whose_time_is_over_ends_in_molecules(made: Made) -> None:
    z = torch.randn(60, D_LATENT, generator=torch.Generator().manual_seed(4))
    late = Limits(seconds=0.0)
    with torch.no_grad():
        trees, graphs = decoders(made, limits=late)
        alone = trees.decode(z[:, : D_LATENT // 2], rngs(60))
        whole = decoders(made)[0].decode(z[:, : D_LATENT // 2], rngs(60))
        texts = graphs.decode(whole, z[:, D_LATENT // 2 :])
    assert {len(tree.codes) for tree in alone} == {1} and max(len(tree.codes) for tree in whole) > 5
    bare = [Chem.MolFromSmiles(text) for text in texts]
    assert [mol.GetNumAtoms() for mol in bare] == [len(tree.made.types) for tree in whole]


def test_without_the_check_some_are_no_molecules(made: Made) -> None:
    z = torch.randn(150, D_LATENT, generator=torch.Generator().manual_seed(5))
    with torch.no_grad():
        trees, graphs = decoders(made, check=False, limits=Limits(nodes=10))
        texts = graphs.decode(trees.decode(z[:, : D_LATENT // 2], rngs(150)), z[:, D_LATENT // 2 :])
    valid = sum(bool(text) for text in texts)
    assert 0 < valid < 150


def test_a_tree_whose_first_choices_lead_nowhere_is_put_together_another_way(made: Made) -> None:
    z = torch.randn(100, D_LATENT, generator=torch.Generator().manual_seed(6))
    with torch.no_grad():
        trees, graphs = decoders(made)
        for tree in trees.decode(z[:, : D_LATENT // 2], rngs(100)):
            for attempts in (0, 3, 300):
                object.__setattr__(graphs.limits, "attempts", attempts)
                other = graphs._another_way(tree)
                assert len(other.labels) == len(tree.codes) and other.smiles()
            assert [made.vocabulary.code[label] for label in other.labels] == tree.codes


def test_graphs_of_attachments_that_look_alike_have_one_number(made: Made) -> None:
    vocabulary: Vocabulary = made.vocabulary
    again = AttachmentGraphs(vocabulary)
    store = pack_trees(TEXTS, made.trees, vocabulary, again)
    count = len(again)
    assert 0 < count < len(store.levels[CANDIDATE].arrays["graph"])
    pack_trees(TEXTS, made.trees, vocabulary, again)
    assert len(again) == count
    both = again.collate(np.arange(count))
    with torch.no_grad():
        together = made.network.attachment_encoder(both).graphs
        alone = torch.cat([made.network.attachment_encoder(again.collate(np.array([k]))).graphs for k in range(count)])
    torch.testing.assert_close(together, alone, atol=1e-4, rtol=1e-4)
    assert (both["bond"].arrays["reverse"][both["bond"].arrays["reverse"]] == torch.arange(both.n_bonds)).all()
    assert (both.target.diff() >= 0).all() and torch.equal(both.source[both.reverse], both.target)
