"""Masked fragments: InfoNCE against cross-entropy, what is hidden and cut, and retrieval among new molecules."""

from __future__ import annotations

from math import log

import numpy as np
import pytest
import torch
from torch.nn import functional as F

from molgraph.data.sources import builtin
from molgraph.data.subgraph import subgraphs
from molgraph.data.views.mask import hidden
from molgraph.nn.contrastive import info_nce
from molgraph.train.objective import StepState
from molgraph.train.objectives.masked_atoms import whole
from molgraph.train.objectives.masked_fragments import KEY
from tests.systems.by_hand import Pretraining, pretraining
from tests.systems.effect import Effect
from tests.tiny import series

STATE = StepState(0, 1, 0)


def made(smiles: list[str] | None = None) -> Pretraining:
    run = pretraining(smiles or list(series(12).smiles), "masked-fragments", d_hidden=8, depth=2, norm="none")
    run.network.eval()
    return run


@pytest.mark.system("infoword", rung="exact")
def test_with_all_candidates_the_bound_is_the_cross_entropy_less_the_log_of_their_number(off: str) -> None:
    """And it is at most that log, whatever the scores."""
    torch.manual_seed(0)
    scores = 5 * torch.randn(38, 38, dtype=torch.float64)
    every = torch.arange(38)
    found, expected = info_nce(scores, every), F.cross_entropy(scores.T if off else scores, every)
    torch.testing.assert_close(found.bound - log(38), -expected, rtol=0, atol=1e-6)
    torch.testing.assert_close(found.loss, expected, rtol=0, atol=1e-6)
    assert info_nce(1e3 * torch.eye(38), every).bound <= log(38) + 1e-6


@pytest.mark.system("infoword", rung="exact")
def test_the_same_molecule_twice_changes_neither_loss_nor_bound(off: str) -> None:
    torch.manual_seed(0)
    a, b = torch.randn(6, 4), torch.randn(6, 4)
    again = torch.tensor([0, 1, 2, 3, 4, 5, 2, 2, 5])
    same = again[:, None] == again
    known = info_nce(a @ b.T, torch.arange(6))
    found = info_nce(a[again] @ b[again].T, torch.arange(9), same, repeats=None if off else same.sum(dim=1))
    torch.testing.assert_close(tuple(found), (known.losses[again], *known[1:]))


@pytest.mark.system("infoword", rung="exact")
def test_nothing_of_the_fragment_reaches_the_rest_and_nothing_of_the_rest_the_fragment(off: str) -> None:
    """The middle atom differs, or the ends do. Off: nothing is hidden."""
    run = made(["CCOCC", "CCSCC", "FCOCF"])
    middle = torch.tensor([False, False, True, False, False]).repeat(3)
    plain = run.samples.sample(np.arange(3)).parts[0].batch
    masked = plain if off else hidden(plain, "atom", middle.nonzero()[:, 0])
    rests = run.network.encoder(masked).graphs
    alone = run.network.encoder(subgraphs(plain, middle)).graphs
    torch.testing.assert_close(rests[0], rests[1])
    torch.testing.assert_close(alone[0], alone[2])
    assert not torch.allclose(alone[0], alone[1]) and not torch.allclose(rests[0], rests[2])


@pytest.mark.system("infoword", rung="exact")
def test_a_fragment_is_an_atom_with_its_neighbours_and_its_own_bonds(off: str) -> None:
    """Molecule by molecule; the rest has no feature of those atoms, nor of a bond that touches them."""
    run = made()
    graphs = run.batch(range(12), seed=3).parts[0].batch
    plain, keys = whole(graphs), graphs["atom"].arrays[KEY]
    neighbours = [set(graphs.source[graphs.target == i].tolist()) | {i} for i in range(graphs.n_atoms)]
    bonds = 0
    for i, (first, last) in enumerate(zip(graphs["atom"].offsets, graphs["atom"].offsets[1:], strict=False)):
        chosen = {int(j) for j in range(first, last) if keys[j] >= 0}
        centres = [j for j in chosen if (neighbours[j] if not off else {j}) == chosen]
        assert centres, f"molecule {i}: {chosen}"
        bonds += sum(len(neighbours[j] & chosen) - 1 for j in chosen)
    cut = subgraphs(plain, keys >= 0)
    assert cut.n_bonds == bonds and cut.n_atoms == int((keys >= 0).sum())
    assert torch.equal(cut.source[cut.reverse], cut.target)
    assert (graphs.features("atom")[keys >= 0] == 0).all()
    touched = (keys[graphs.source] >= 0) | (keys[graphs.target] >= 0)
    assert torch.equal((graphs.features("bond") == 0).all(1), touched)


@pytest.mark.system("infoword", rung="exact")
def test_the_loss_is_infonce_of_different_fragments_and_the_elements_cross_entropy(off: str) -> None:
    """Written out by loops; a molecule of one atom, of which nothing is left, does not count."""
    run = made(["CCCCO", "CCCCO", "c1ccccc1N", "CC(=O)Nc1ccc(O)cc1", "C"])
    batch = run.batch(range(5), seed=1)
    loss, graphs = run.objective(run.network, batch, STATE), batch.parts[0].batch
    keys, of = graphs["atom"].arrays[KEY], graphs.graph_of("atom")
    encoded = run.network.encoder(graphs, rows=True)
    alone = run.network.encoder(subgraphs(whole(graphs), keys >= 0)).graphs
    a, b = run.objective.rest(encoded.graphs), run.objective.part(alone)
    key = [int(keys[of == i].max()) for i in range(5)]
    distinct = {k: key.index(k) for k in key[:4]}
    of_fragment: dict[int, list[torch.Tensor]] = {k: [] for k in distinct}
    for i in range(4):
        own = torch.cosine_similarity(a[i], b[i], dim=0) / 0.1
        others = [j for k, j in distinct.items() if k != key[i] or off]
        scores = torch.stack([own, *(torch.cosine_similarity(a[i], b[j], dim=0) / 0.1 for j in others)])
        of_fragment[key[i]].append(scores.logsumexp(0) - own)
    expected = torch.stack([torch.stack(each).mean() for each in of_fragment.values()]).mean()
    torch.testing.assert_close(loss.parts["contrast"] / loss.count, expected)
    guessed = F.cross_entropy(run.objective.head(encoded.rows[0].h[keys >= 0]), batch.y)
    torch.testing.assert_close(loss.total / loss.count, expected + guessed)


@pytest.mark.system("infoword", rung="works")
def test_the_hidden_fragment_of_a_new_molecule_is_found_among_128(off: str, effect: Effect) -> None:
    """Share of first places among 128 different fragments; chance is 1 in 128. Off: the contrast has no weight.

    Without batch norm, whose means of fragments and of molecules differ: with it, and 120 steps, it was 0.016.
    """
    smiles = [str(text) for text in builtin.nci().smiles]
    ours, untrained = [], []
    for seed in range(2):
        weight = "weight=0" if off else "weight=1"
        run = pretraining(smiles, f"masked-fragments(hops=2, {weight})", seed=seed, d_hidden=32, depth=3, norm="none")
        for values, n_steps in ((untrained, 0), (ours, 600)):
            run.learn(np.arange(4000), n_steps, seed=seed)
            graphs = run.batch(np.arange(4000, 4500), seed=9).parts[0].batch
            keys, of = graphs["atom"].arrays[KEY], graphs.graph_of("atom")
            key = keys.new_full((500,), -1).scatter_reduce(0, of, keys, "amax")
            left = torch.bincount(of[keys < 0], minlength=500) > 0
            first = [i for i in range(500) if left[i] and key[i] not in key[:i]][:128]
            with torch.no_grad():
                rest = run.network.encoder(graphs).graphs
                alone = run.network.encoder(subgraphs(whole(graphs), keys >= 0)).graphs
            scores = run.objective.scores(rest[first], alone[first])
            values.append(float((scores.argmax(1) == torch.arange(128)).float().mean()))
    effect("share of fragments that come first among 128", ours, at_least=10 / 128,
           beside={"without training": untrained, "chance": [1 / 128]})  # fmt: skip
