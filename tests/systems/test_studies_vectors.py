"""Studies of vectors: canonical correlations by an eigenproblem, Mantel's test under its null, senses of similarity."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.linalg import eigh
from scipy.stats import kstest, ortho_group, spearmanr

import molgraph
from molgraph.auxiliary.study.layers import LayersStudy, states
from molgraph.auxiliary.study.neighbourhood import NeighbourhoodStudy
from molgraph.auxiliary.study.similarity import SimilarityStudy, references
from molgraph.chem.fingerprints import morgan
from molgraph.data.sources import builtin
from molgraph.embed.encoder import MoleculeEncoder
from molgraph.study.graph_subject import graph_subject
from molgraph.study.representations import cka, distances, mantel, pwcca
from molgraph.study.study import Subject
from tests.systems.effect import Effect
from tests.tiny import series

GIN = "gin(depth=2, d_hidden=16, head_width=16, epochs=5)"


@pytest.mark.system("pwcca", rung="exact")
def test_correlations_and_weights_are_those_of_the_generalised_eigenproblem(off: str) -> None:
    """Sxy Syy^-1 Syx w = rho^2 Sxx w, and weights by two loops; off: the plain mean."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 6)) * [5, 3, 1, 1, 0.5, 0.2]
    y = x[:, :4] @ rng.normal(size=(4, 4)) + 2 * rng.normal(size=(300, 4))
    a, b = x - x.mean(axis=0), y - y.mean(axis=0)
    squares, w = eigh(a.T @ b @ np.linalg.solve(b.T @ b, b.T @ a), a.T @ a)
    rho, h = np.sqrt(squares[-4:]), a @ w[:, -4:]
    alpha = [sum(abs(float(h[:, i] @ a[:, j])) for j in range(6)) for i in range(4)]
    np.testing.assert_allclose(pwcca(x, y, weighted=not off), np.average(rho, weights=alpha), atol=1e-9)
    assert abs(pwcca(x, x @ rng.normal(size=(6, 6)) + 3, weighted=not off) - 1) < 1e-4
    assert pwcca(*rng.normal(size=(2, 5000, 20)), weighted=not off) < 0.15


@pytest.mark.system("pwcca", rung="exact")
def test_the_study_compares_the_layers_that_it_names(off: str) -> None:
    """The table's figures are those of both networks' states; off: by the plain mean."""
    table, study = series(150), LayersStudy(other="gin(depth=2, d_hidden=8, epochs=2)", by="cca" if off else "pwcca")
    found = study.run(Subject(table, GIN), seed=4)
    assert found.sound, repr(found)
    how = {"what": "layers", "most": 1000, "least": 40, "seed": 4}
    one, two = (graph_subject(Subject(table, name), **how) for name in (GIN, study.other))
    a, b = (states(each.method, one.table, 4) for each in (one, two))
    wanted = [pwcca(x, y) for x in a.values() for y in b.values()]
    np.testing.assert_allclose(found.frame["similarity"], wanted, atol=1e-6)
    np.testing.assert_allclose(found.frame["cka"], [cka(x, y) for x in a.values() for y in b.values()], atol=1e-9)


@pytest.mark.system("pwcca", rung="works")
def test_shared_directions_of_large_scale_count_more_than_in_the_plain_mean(off: str, effect: Effect) -> None:
    """5 shared dimensions at three times the scale of 45 of noise, each rotated at random; off: plain mean."""
    gains, weighted, plain = [], [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        shared = 3 * rng.normal(size=(2000, 5))
        x, y = (
            np.hstack([shared, rng.normal(size=(2000, 45))]) @ ortho_group.rvs(50, random_state=rng) for _ in range(2)
        )
        weighted.append(pwcca(x, y, weighted=not off)), plain.append(pwcca(x, y, weighted=False))
        gains.append(weighted[-1] - plain[-1])
    beside = {"weighted": weighted, "plain mean": plain}
    effect("gain of the weighted mean over the plain one", gains, at_least=0.1, beside=beside)


@pytest.mark.system("ease-of-teaching-topographic-similarity", rung="exact")
def test_fingerprints_are_their_own_neighbourhoods_and_rotations_change_nothing(off: str) -> None:
    """1 by Jaccard distance, Spearman's value of all pairs for vectors; off: vectors of other molecules."""
    table = builtin.nci().take(np.arange(200))
    bits, rng = morgan([str(text) for text in table.smiles]).x, np.random.default_rng(1)
    order = rng.permutation(200) if off else np.arange(200)
    structure = distances(bits, "jaccard")
    assert mantel(structure, distances(bits[order], "jaccard"), 200, permutations=19) == (pytest.approx(1), 0.05)
    z = bits @ rng.normal(size=(2048, 12))
    pairs = [(i, j) for i in range(200) for j in range(i + 1, 200)]
    cosine = [1 - z[i] @ z[j] / np.linalg.norm(z[i]) / np.linalg.norm(z[j]) for i, j in pairs]
    tanimoto = [(bits[i] & bits[j]).sum() / (bits[i] | bits[j]).sum() for i, j in pairs]
    turned = z @ ortho_group.rvs(12, random_state=2)
    rho = mantel(structure, distances(turned, "cosine"), 200, permutations=0)[0]
    np.testing.assert_allclose(rho, -spearmanr(tanimoto, cosine)[0], atol=1e-9)


@pytest.mark.system("ease-of-teaching-topographic-similarity", rung="exact")
def test_the_p_of_unrelated_vectors_is_uniform(off: str) -> None:
    """Kolmogorov and Smirnov's p of 150 tests; off: Spearman's own p, which takes pairs as independent."""
    values = []
    for seed in range(150):
        rng = np.random.default_rng(seed)
        a, b = (distances(rng.normal(size=(40, 2)), "euclidean") for _ in range(2))
        plain = spearmanr(a, b, alternative="greater")[1]
        values.append(float(plain) if off else mantel(a, b, 40, permutations=99, seed=seed)[1] - 0.005)
    assert kstest(values, "uniform").pvalue > 0.01


@pytest.mark.system(
    "ease-of-teaching-topographic-similarity",
    rung="works",
    null="0.068 more right picks and not 0.1: vectors in another order are at 0.93 after five epochs already",
)
def test_vectors_of_topographic_similarity_are_taught_faster(off: str, effect: Effect) -> None:
    """A new listener picks one of five molecules by a vector, after 5 epochs; off: the vectors of other molecules.

    The listener is a linear map to fingerprints, learnt by gradient descent. Beside: the same vectors in another order.
    """
    found, beside = [], {"topographic similarity": [], "in another order": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        table = builtin.nci().take(np.sort(rng.permutation(1200)[:300]))
        bits = morgan([str(text) for text in table.smiles], n_bits=256).x.astype(np.float64)
        z = np.tanh(bits @ rng.normal(size=(256, 32)) / 4)
        beside["topographic similarity"].append(
            mantel(distances(bits, "jaccard"), distances(z, "cosine"), 300, permutations=0)[0]
        )
        shuffled = rng.permutation(300)
        right = [_taught(z[order], bits, seed) for order in (shuffled if off else np.arange(300), shuffled)]
        found.append(right[0] - right[1]), beside["in another order"].append(right[1])
    effect("share of right picks above those of vectors in another order", found, at_least=0.1, beside=beside)


def _taught(z: np.ndarray, bits: np.ndarray, seed: int) -> float:
    """The share of right picks of a new listener after five epochs."""
    draws = torch.Generator().manual_seed(seed)
    code, objects = torch.from_numpy(z), torch.from_numpy(bits - bits.mean(axis=0))
    w = torch.zeros(z.shape[1], bits.shape[1], dtype=torch.float64, requires_grad=True)
    steps, right = torch.optim.Adam([w], 3e-3), []
    for epoch in range(6):
        for rows in torch.randperm(len(code), generator=draws).split(32):
            others = torch.randint(len(code), (len(rows), 4), generator=draws)
            candidates = objects[torch.cat([rows[:, None], others], dim=1)]
            scores = torch.einsum("nd,de,nke->nk", code[rows], w, candidates)
            if epoch == 5:
                right.append((scores.argmax(dim=1) == 0).double().mean().item())
                continue
            steps.zero_grad()
            torch.nn.functional.cross_entropy(scores, torch.zeros(len(rows), dtype=torch.long)).backward()
            steps.step()
    return float(np.mean(right))


@pytest.mark.system("ease-of-teaching-topographic-similarity", rung="exact")
def test_the_study_of_neighbourhoods_says_what_its_functions_do(off: str) -> None:
    found = NeighbourhoodStudy(most=150, permutations=99, shuffled=bool(off)).run(Subject(series(150), GIN), seed=2)
    assert found.sound, repr(found)
    subject = graph_subject(Subject(series(150), GIN), what="neighbourhoods", most=150, least=40, seed=2)
    bits = morgan([str(text) for text in subject.table.smiles]).x
    for name, x in states(subject.method, subject.table, 2).items():
        rho = mantel(distances(bits, "jaccard"), distances(x, "cosine"), 150, permutations=0)[0]
        np.testing.assert_allclose(found.frame.set_index("layer")["similarity"][name], rho, atol=1e-6)


@pytest.mark.system("objective-dependent-embedding-comparison", rung="exact")
def test_each_figure_is_spearmans_correlation_over_all_pairs(off: str) -> None:
    """Of a file's vectors and logP, structure and the target; off: vectors of other molecules."""
    model = molgraph.train(series(80), model="gin", params={"d_hidden": 8, "epochs": 2}, baseline=False).model
    found = SimilarityStudy(other=GIN, shuffled=bool(off)).run(Subject(series(150), model), seed=1)
    assert found.sound, repr(found)
    subject = graph_subject(Subject(series(150), model), what="similarity", most=500, least=40, seed=1)
    z = MoleculeEncoder(model).model.predict([str(text) for text in subject.table.smiles]).value
    d = [1 - a @ b / np.linalg.norm(a) / np.linalg.norm(b) for i, a in enumerate(z) for b in z[i + 1 :]]
    for name, other in references(subject).items():
        np.testing.assert_allclose(found.frame[name][0], spearmanr(d, other)[0], atol=1e-3)
