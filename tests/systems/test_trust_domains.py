"""Checks of domain scores: what they learn, and whether they tell molecules of other data from held-out ones."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from sklearn.metrics import roc_auc_score

from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from molgraph.data.splits import split_table
from molgraph.nn.random_distillation import of_one_length
from molgraph.trust.domains.deep_sad import NEAR, DeepSAD, semi_supervised
from molgraph.trust.domains.nearest import NearestDistance
from molgraph.trust.domains.rnd import RandomDistillationDomain
from tests.systems.effect import Effect


def prints_of(name: str) -> np.ndarray:
    table = read_table(f"dataset:{name}")
    made = morgan([str(text) for text in table.smiles[table.ok]])
    return made.x[made.ok]


@pytest.mark.system("rnd", rung="exact")
def test_the_score_is_the_error_about_random_features_that_do_not_change(off: str) -> None:
    """Burda et al. 2019, section 2.2; a molecule that is there more often scores lower; the twin learns nothing."""
    x = prints_of("esol")
    rest, odd = x[:400], prints_of("bace")[:6]
    copies = (0, 1, 2, 5, 10, 50)
    made = RandomDistillationDomain(steps=0 if off else 500, learning_rate=2e-3)
    made.seed = 3
    fresh = RandomDistillationDomain(steps=0)
    fresh.seed = 3
    made.fit(np.vstack([rest, *(np.repeat(one[None], n, axis=0) for one, n in zip(odd, copies, strict=True))]))
    fresh.fit(rest)
    assert all((made.state()[name] == fresh.state()[name]).all() for name in made.learns if name.startswith("phi"))
    row = of_one_length(odd)
    own = (made.networks.g(row) - made.networks.phi(row)).square().sum(dim=1).detach().double().numpy()
    np.testing.assert_array_equal(made.score(odd), own)
    before = fresh.score(odd)  # an error of its own for each molecule, before anything is learned
    assert spearmanr(copies, made.score(odd) / before).statistic <= -0.9


@pytest.mark.system("rnd", rung="works")
def test_it_tells_molecules_of_another_table(off: str, effect: Effect) -> None:
    """Lipophilicity: four fifths learned, the others against FreeSolv, and against held-out scaffolds beside."""
    table, other = read_table("dataset:lipo"), prints_of("freesolv")
    apart = split_table(table, "scaffold/balanced", fractions=(0.8, 0.0, 0.2), seed=5, quiet=True)
    every = morgan([str(text) for text in table.smiles]).x
    areas, scaffolds, known, size = [], [], [], []
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(apart.train)
        cut = round(0.8 * len(order))
        learned, held, new = every[order[:cut]], every[order[cut:]], every[apart.test]
        made = RandomDistillationDomain(steps=0 if off else 500)
        made.seed = seed
        made.fit(learned)
        nearest = NearestDistance().fit(learned)
        truth = np.repeat([0, 1], [len(held), len(other)])
        areas.append(float(roc_auc_score(truth, made.score(np.vstack([held, other])))))
        known.append(float(roc_auc_score(truth, nearest.score(np.vstack([held, other])))))
        bits = np.vstack([held, other]).sum(axis=1)
        size.append(float(roc_auc_score(truth, bits)))
        truth = np.repeat([0, 1], [len(held), len(new)])
        scaffolds.append(float(roc_auc_score(truth, made.score(np.vstack([held, new])))))
    gap = [a - b for a, b in zip(areas, known, strict=True)]
    assert np.mean(gap) >= -0.05
    beside = {"Tanimoto distance": known, "number of bits": size, "held-out scaffolds": scaffolds}
    effect("AUC of molecules of another table against held-out ones", areas, at_least=0.7, beside=beside)


@pytest.mark.system("deep-sad", rung="exact")
def test_the_loss_is_that_of_the_paper_and_without_oddities_deep_svdds(off: str) -> None:
    """Ruff et al. 2020, equation 7, term by term; the twin counts oddities as molecules without a label."""
    rng = np.random.default_rng(4)
    rest, odd = rng.random(7), rng.random(3)
    by_hand = (sum(rest) + 2.0 * sum((each + NEAR) ** -1.0 for each in odd)) / (len(rest) + len(odd))
    found = semi_supervised(torch.tensor(rest), torch.tensor(odd), 2.0, 0.0 if off else 0.3)
    np.testing.assert_allclose(float(found), by_hand, rtol=1e-7)
    plain = semi_supervised(torch.tensor(rest), torch.tensor(odd[:0]), 2.0, 0.0)
    np.testing.assert_allclose(float(plain), rest.mean(), rtol=1e-7)


@pytest.mark.system("deep-sad", rung="works")
def test_one_percent_of_oddities_moves_the_others_away(off: str, effect: Effect) -> None:
    """ESOL against BACE, one labelled for a hundred; the twin's labels are of the training molecules themselves."""
    normal, strange = prints_of("esol"), prints_of("bace")
    gains, plain, nearest, variance = [], [], [], []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        a, b = normal[rng.permutation(len(normal))], strange[rng.permutation(len(strange))]
        learned, held, odd, new = a[:900], a[900:], b[:9], b[9:600]
        truth, rows = np.repeat([0, 1], [len(held), len(new)]), np.vstack([held, new])
        areas = []
        for some in (odd[:0], learned[:9] if off else odd):
            made = DeepSAD()
            made.seed = seed
            areas.append(float(roc_auc_score(truth, made.learn(learned, some).score(rows))))
        gains.append(areas[1] - areas[0])
        plain.append(areas[0])
        nearest.append(float(roc_auc_score(truth, NearestDistance().fit(learned).score(rows))))
        variance.append(float(made.network(of_one_length(learned)).detach().var(dim=0).mean()))
    assert min(variance) > 1e-4, "no collapse"
    beside = {"AUC without oddities": plain, "of the Tanimoto distance": nearest, "variance of embeddings": variance}
    effect("gain in AUC by one percent of oddities", gains, at_least=0.03, beside=beside)
