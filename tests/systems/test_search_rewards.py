"""Reward terms of searches: a memory of what is new, and bonuses for what a predictor does not know yet."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from rdkit.SimDivFilters.rdSimDivPickers import LeaderPicker
from sklearn.metrics import roc_auc_score

from molgraph.chem.fingerprints import morgan
from molgraph.generate.rewards.comparator import Comparator, pairs_of, random_walks
from molgraph.generate.rewards.novelty import Novelty, Tanimoto
from molgraph.generate.rewards.reward import make_rewards
from molgraph.generate.searches.search import builtin_molecules, make_search
from tests.systems.effect import Effect
from tests.systems.toy_library import drawn, trained


@pytest.mark.system("episodic-curiosity", rung="exact")
def test_the_memory_holds_the_leaders_of_sphere_exclusion(off: str) -> None:
    """Savinov et al. 2019, with the highest Tanimoto similarity: RDKit's leaders on the same order."""
    smiles = [*builtin_molecules()[:400]]
    prints = rdFingerprintGenerator.GetMorganGenerator(radius=2, fpSize=2048)
    bits = [prints.GetFingerprint(Chem.MolFromSmiles(text)) for text in smiles]
    for threshold in (0.4, 0.6, 0.8):
        reward = Novelty(threshold=threshold, percentile=50.0 if off else 100.0, bonus=2.0)
        reward.begin(None, scale=0.5)
        score = np.concatenate([reward.adjust(smiles[i : i + 64], np.ones(64)[: 400 - i]) for i in range(0, 400, 64)])
        leaders = [*LeaderPicker().LazyBitVectorPick(bits, len(bits), threshold)]
        assert reward.remembered == [smiles[i] for i in leaders] and 10 < len(leaders) < 395
        assert (np.flatnonzero(score > 0) == leaders).all() and (np.delete(score, leaders) == 0).all()
        x = morgan([smiles[i] for i in leaders]).x
        far = [1 - Tanimoto().compare(x[i : i + 1], x[:i]).max(initial=0.0) for i in range(len(leaders))]
        np.testing.assert_allclose(score[leaders], 1 + 2.0 * 0.5 * np.array(far), rtol=1e-12)


@pytest.mark.system("episodic-curiosity", rung="works")
def test_a_comparator_knows_how_many_edits_are_between_molecules(off: str, effect: Effect) -> None:
    """Pairs of held-out walks, within 3 edits against more than 6; the twin learns from walks in a random order."""
    order, learned, fixed = np.random.default_rng(0), [], []
    pool = [builtin_molecules()[i] for i in order.permutation(len(builtin_molecules()))[:460]]
    for seed in range(2):
        rng, net = np.random.default_rng(seed), Comparator(3)
        walks = random_walks(pool[230 * seed : 230 * seed + 230], 12, rng)
        train = [[*rng.permutation(walk)] for walk in walks[:160]] if off else walks[:160]
        a, b, near = pairs_of(walks[160:], 3, 6, 12, rng)
        net.fit(train, seed=seed)
        x, y = net.describe(a), net.describe(b)
        scores = np.concatenate([net.compare(x[i : i + 1], y[i : i + 1])[0] for i in range(len(near))])
        learned.append(float(roc_auc_score(near, scores)))
        x, y = morgan(a).x, morgan(b).x
        alike = [Tanimoto().compare(x[i : i + 1], y[i : i + 1])[0, 0] for i in range(len(near))]
        fixed.append(float(roc_auc_score(near, alike)))
    effect("AUC of pairs within 3 edits against more than 6", learned, at_least=0.9, beside={"Tanimoto": fixed})


@pytest.mark.system("episodic-curiosity", rung="works")
def test_a_search_keeps_more_scaffolds_at_the_same_score(off: str, effect: Effect) -> None:
    """1,000 texts of a language model after 160 steps; the mean score stays within 5% of that without the term."""
    ratios, scores, counts = [], [], []
    for seed in range(2):
        plain, novel = (make_search("policy(learning_rate=0.002)") for _ in range(2))
        trained(plain, steps=160, seed=seed)
        term = "novelty(0.01, similarity=scaffold, episode=64)"
        trained(novel, () if off else make_rewards(term), steps=160, seed=seed)
        (mean, n), (least, before) = drawn(novel), drawn(plain)
        ratios.append(n / before)
        scores.append(mean / least)
        counts.append(float(before))
    assert np.mean(scores) >= 0.95
    beside = {"scaffolds without": counts, "mean score / that without": scores}
    effect("distinct scaffolds / those without the term", ratios, at_least=1.5, beside=beside)
