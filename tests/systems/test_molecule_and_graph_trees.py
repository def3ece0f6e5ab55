"""JT-VAE: messages, likelihoods and reassembly against recursions and walks over each tree by itself."""

from __future__ import annotations

import copy
import functools
from typing import Any

import numpy as np
import pytest
import torch
from rdkit import Chem
from torch import nn
from torch.nn import functional as F

from molgraph.chem.fragments.assembly import Assembly, assemble
from molgraph.chem.fragments.junction_tree import JunctionTree
from molgraph.models.jtvae.corpus import CANDIDATE, CLUSTER
from molgraph.models.jtvae.tree_relations import tree_messages
from tests.chem.test_fragments import constitution, molecules, tree_of
from tests.models.test_jtvae import D_LATENT, TEXTS, D, Made


@functools.cache
def corpus() -> Made:
    """A small network and trees."""
    return Made()


def silenced(network: Any, part: nn.Module) -> Any:
    """A copy in which a part gives 0."""
    name = next(name for name, module in network.named_modules() if module is part)
    used = copy.deepcopy(network)
    for weight in used.get_submodule(name).parameters():
        nn.init.zeros_(weight)
    return used


def message(network: Any, gru: Any, x: torch.Tensor, heard: list[torch.Tensor]) -> torch.Tensor:
    """Equations 2 to 6, one message."""
    d = gru.d
    w_z, w_r, w = gru.w.weight.split(d)
    b_z, b_r, b = gru.w.bias.split(d)
    s = sum(heard, torch.zeros(d))
    z = torch.sigmoid(w_z @ x + b_z + gru.u_z.weight @ s)
    gated = sum((torch.sigmoid(w_r @ x + b_r + gru.u_r.weight @ h) * h for h in heard), torch.zeros(d))
    return (1 - z) * s + z * torch.tanh(w @ x + b + gru.u.weight @ gated)


@pytest.mark.system("jt-vae", rung="exact")
def test_messages_of_the_encoder_are_those_of_a_recursion(off: str) -> None:
    made = corpus()
    network, trees = made.network, tree_messages(made.batch)
    code = made.batch[CLUSTER].arrays["code"]
    used = silenced(network, network.tree_encoder.u_r) if off else network  # no gate of its own a message
    found = used.tree_messages(code, trees)
    assert len(found) < 2 * sum(len(tree) - 1 for tree in made.trees), "messages that look alike are computed once"
    first = made.batch[CLUSTER].offsets.tolist()
    for t, tree in enumerate(made.trees[:12]):
        x = network.embedding(torch.tensor([made.vocabulary.code[label] for label in tree.labels]))
        near = {
            k: {j for j in range(len(tree)) if k == tree.parent[j] or j == tree.parent[k]} for k in range(len(tree))
        }

        def sent(i: int, j: int, x: torch.Tensor = x, near: dict[int, set[int]] = near) -> torch.Tensor:
            return message(network, network.tree_encoder, x[i], [sent(k, i) for k in sorted(near[i] - {j})])

        for k in range(1, len(tree)):
            up, down = (found[way[first[t] + k]] for way in (trees.up, trees.down))
            torch.testing.assert_close(up, sent(k, tree.parent[k]), atol=1e-4, rtol=1e-4)
            torch.testing.assert_close(down, sent(tree.parent[k], k), atol=1e-4, rtol=1e-4)


def likelihood(made: Made, tree: JunctionTree, z_tree: torch.Tensor) -> tuple[float, float]:
    """Negative log-likelihoods of labels and topology, by a walk in depth."""
    network, gru = made.network, made.network.tree_decoder
    codes = [made.vocabulary.code[label] for label in tree.labels]
    x = network.embedding(torch.tensor(codes))
    zero = torch.zeros(1, dtype=torch.int64)
    label = topology = 0.0

    def named(h: torch.Tensor, code: int) -> float:
        scores = network.label_scores(h[None], z_tree[None], zero)
        return float(F.cross_entropy(scores, torch.tensor([code])))

    def visit(node: int, known: list[torch.Tensor]) -> torch.Tensor:
        nonlocal label, topology
        children = [k for k in range(len(tree)) if tree.parent[k] == node]
        heard = list(known)
        for k in [*children, None]:
            total = sum(heard, torch.zeros(D))
            score = network.expand_scores(x[node][None], total[None], z_tree[None], zero)
            topology += float(F.binary_cross_entropy_with_logits(score, torch.tensor([float(k is not None)])))
            if k is not None:
                down = message(network, gru, x[node], heard)
                label += named(down, codes[k])
                heard.append(visit(k, [down]))
        return message(network, gru, x[node], heard[len(known) :])

    label += named(torch.zeros(D), codes[0])
    visit(0, [])
    return label, topology


@pytest.mark.system("jt-vae", rung="exact")
def test_the_likelihood_of_trees_is_that_of_a_walk_in_depth(off: str) -> None:
    made = corpus()
    used = silenced(made.network, made.network.tree_decoder.u) if off else made.network
    with torch.no_grad():
        encoded = made.network.encode(made.batch)
        z = torch.randn(len(TEXTS), D_LATENT, generator=torch.Generator().manual_seed(1))
        shares = used.decode(z, encoded, made.batch)
        each = [likelihood(made, tree, row[: D_LATENT // 2]) for tree, row in zip(made.trees, z, strict=True)]
    assert float(shares.label) == pytest.approx(sum(label for label, _ in each), rel=1e-4)
    assert float(shares.topology) == pytest.approx(sum(topology for _, topology in each), rel=1e-4)


@pytest.mark.system("jt-vae", rung="exact")
def test_the_likelihood_of_attachments_is_a_softmax_over_each_node_s_candidates(off: str) -> None:
    made = corpus()
    network, level = made.network, made.batch[CANDIDATE]
    used = silenced(network, network.attach_tree) if off else network  # blind to the tree around
    with torch.no_grad():
        encoded = network.encode(made.batch)
        z = torch.randn(len(TEXTS), D_LATENT, generator=torch.Generator().manual_seed(2))
        found = used.decode(z, encoded, made.batch).attachment
        node, graph, true = (level.arrays[name] for name in ("node", "graph", "true"))
        graphs = torch.cat(
            [network.attachment_encoder(made.graphs.collate(np.array([n]))).graphs for n in graph.tolist()]
        )
        context = torch.cat([encoded.messages[way[node]] for way in (encoded.trees.down, encoded.trees.up)], 1)
        own = network.attach_z(z[:, D_LATENT // 2 :])[made.batch.graph_of(CANDIDATE)]
        scores = ((network.attach_graph(graphs) + network.attach_tree(context)).relu() * own).sum(1)
        total = sum(-scores[node == k].log_softmax(0)[true[node == k]].sum() for k in node.unique())
    assert len(node) > 30 and (torch.bincount(node)[node] > 1).all() and int(true.sum()) == len(node.unique())
    torch.testing.assert_close(found, total, rtol=1e-4, atol=1e-4)


@pytest.mark.system("jt-vae", rung="exact")
def test_the_true_overlaps_give_the_molecule_and_are_among_those_listed(off: str) -> None:
    for text in molecules():
        tree = tree_of(text)
        made = Assembly(tree.labels[0])
        for node in range(1, len(tree)):
            parent, label, own = tree.parent[node], tree.labels[node], tree.overlaps[node]
            ways = list(made.overlaps(parent, label, longest=max(2, len(own))))
            results = []
            for way in ways:
                made.attach(parent, label, way)
                results.append(made.smiles())
                made.undo()
            made.attach(parent, label, ways[0] if off and ways else own)  # the first way, or the true one
            assert made.smiles() in results, f"{text}: node {node}"
        assert made.smiles() == constitution(Chem.MolFromSmiles(text)), text
        assert off or assemble(tree).smiles() == made.smiles(), text
