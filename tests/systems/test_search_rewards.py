"""Reward terms of searches: a memory of what is new, and bonuses for what a predictor does not know yet."""

from __future__ import annotations

import numpy as np
import pytest
from rdkit import Chem
from rdkit.Chem import rdFingerprintGenerator
from rdkit.SimDivFilters.rdSimDivPickers import LeaderPicker
from sklearn.metrics import roc_auc_score

from molgraph.chem.fingerprints import morgan
from molgraph.data.read import read_table
from molgraph.generate.rewards.comparator import Comparator, pairs_of, random_walks
from molgraph.generate.rewards.novelty import Novelty, Tanimoto
from molgraph.generate.rewards.reward import make_rewards
from molgraph.generate.rewards.rnd import RandomDistillation
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


@pytest.mark.system("curiosity", rung="exact")
def test_the_bonus_is_the_error_about_features_that_never_change(off: str) -> None:
    """Burda et al. 2019, equation of section 2.2; the twin predicts features that are trained too."""
    smiles, score = [*builtin_molecules()[:40]], np.linspace(0, 1, 40)
    reward = RandomDistillation(0.3, width=16)
    reward.begin(None, scale=0.5)
    x = reward.describe(smiles)
    if off:
        reward.networks.phi.requires_grad_(requires_grad=True)
        reward.networks.optimizer.add_param_group({"params": [*reward.networks.phi.parameters()]})
    before, error = (
        reward.networks.phi(x),
        (reward.networks.g(x) - reward.networks.phi(x)).square().sum(dim=1).detach().double().numpy(),
    )
    np.testing.assert_allclose(reward.adjust(smiles, score), score + 0.15 * error / error.std(), rtol=1e-9)
    for _ in range(5):
        reward.adjust(smiles, score)
    assert reward.networks.phi(x).equal(before), "bit for bit"
    plain = RandomDistillation(0.0, width=16)
    plain.begin(None)
    assert plain.adjust(smiles, score).tobytes() == score.tobytes()


@pytest.mark.system("curiosity", rung="works")
def test_the_bonus_tells_seen_molecules_from_others_and_falls_once_they_are_seen(off: str, effect: Effect) -> None:
    """900 of ESOL seen four times, against BACE; of fingerprints of one length, so that size alone says little."""
    esol, bace = ([str(text) for text in read_table(f"dataset:{name}").smiles] for name in ("esol", "bace"))
    areas, held, falls, untrained = [], [], [], []
    for seed in range(2):
        reward, order = RandomDistillation(steps=0 if off else 8), np.random.default_rng(seed).permutation(len(esol))
        seen, unseen = ([esol[i] for i in rows] for rows in (order[:900], order[900:]))
        reward.begin(None, seed=seed)

        def bonus(smiles: list[str], reward: RandomDistillation = reward) -> np.ndarray:
            return reward.networks(reward.describe(smiles)).detach().numpy()

        def area(smiles: list[str], value: np.ndarray, bonus=bonus) -> float:
            return float(roc_auc_score(np.repeat([0, 1], [len(smiles), len(bace)]), [*bonus(smiles), *value]))

        untrained.append(area(seen, bonus(bace)))
        for _ in range(4):
            for i in range(0, 900, 64):
                reward.adjust(seen[i : i + 64], np.zeros(len(seen[i : i + 64])))
        value = bonus(bace)
        areas.append(area(seen, value))
        held.append(area(unseen, value))
        for i in range(0, len(bace), 64):
            reward.adjust(bace[i : i + 64], np.zeros(len(bace[i : i + 64])))
        falls.append(float(value.mean() / bonus(bace).mean()))
    assert np.mean(falls) >= 2
    beside = {"untrained": untrained, "unseen ESOL against BACE": held, "fall by an epoch on BACE": falls}
    effect("AUROC of the bonus, ESOL seen against BACE", areas, at_least=0.9, beside=beside)
