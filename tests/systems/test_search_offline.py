"""Searches that learn from the best of what they wrote, or from known scores alone: hill climbing and CRR."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import binom

from molgraph.generate.language import samples_of
from molgraph.generate.next_token import NextToken
from molgraph.generate.policy import Policy
from molgraph.generate.searches.crr import CRR
from molgraph.generate.searches.hillclimb import HillClimb
from molgraph.generate.searches.written import Written
from molgraph.train.objective import StepState
from tests.systems.effect import Effect
from tests.systems.small_language import LIBRARY, drawn, model, run, values
from tests.systems.toy_language import SCORES, STRINGS, probabilities, toy_model


def told(codes: list[list[int]], rewards: np.ndarray) -> list[Written]:
    """Texts with their rewards."""
    return [Written(row, float(r), np.zeros(0), float(r)) for row, r in zip(codes, rewards, strict=True)]


@pytest.mark.system("sampled-best-response-brpi", rung="exact")
def test_the_chosen_share_has_the_mean_of_its_order_statistics(off: str) -> None:
    """The best 8 of 32 draws, over 400 batches, beside the exact mean for the toy's distribution."""
    policy, k, n = Policy(toy_model()), 8, 32
    p, codes = probabilities(policy), [row for row in policy.encode(STRINGS) if row is not None]
    order = np.argsort(-SCORES)
    upper = np.cumsum(p[order])  # chance of a draw at least as good
    # at least j of n draws as good: the j-th best is; its mean is that of the scores at the steps of this distribution
    reach = np.stack([binom.sf(j - 1, n, np.minimum(upper, 1)) for j in range(1, k + 1)])
    exact = float((np.diff(reach, axis=1, prepend=0) * SCORES[order]).sum() / reach[:, -1].sum())
    rng, search, means = np.random.default_rng(0), HillClimb(best=1.0 if off else k / n, scorers="last"), []
    for _ in range(400):
        rows = rng.choice(len(p), n, p=p / p.sum())
        chosen = search.chosen(told([codes[row] for row in rows], SCORES[rows]))
        value = {tuple(code): s for code, s in zip(codes, SCORES, strict=True)}
        means.append(np.mean([value[tuple(each)] for each in chosen]))
    assert abs(np.mean(means) - exact) < 3 * np.std(means) / np.sqrt(len(means))


@pytest.mark.system("sampled-best-response-brpi", rung="exact")
def test_learning_all_of_a_batch_changes_nothing_on_average(off: str) -> None:
    """The gradient of the likelihood over the toy's own distribution is 0; over its best share it is not."""
    policy = Policy(toy_model())
    p, codes = probabilities(policy), [row for row in policy.encode(STRINGS) if row is not None]
    batch = told(codes, SCORES)
    kept = {tuple(each) for each in HillClimb(best=0.25 if off else 1.0, scorers="last").chosen(batch)}
    weight = torch.from_numpy(p * [tuple(each) in kept for each in codes]).float()
    (-(weight / weight.sum() * policy.tokens(codes).total).sum()).backward()
    slopes = [each.grad for each in policy.network.parameters() if each.grad is not None]
    assert max(float(each.abs().max()) for each in slopes) < 1e-5


@pytest.mark.system("sampled-best-response-brpi", rung="exact")
def test_past_scorers_rank_by_the_mean_of_all_scores(off: str) -> None:
    """A text that a scorer once took for the best, and later ones do not, is no longer among the best."""
    search = HillClimb(best=0.5, scorers="last" if off else "past")
    search.scores = {}
    search.chosen(told([[1], [2]], np.array([1.0, 0.6])))
    assert search.chosen(told([[1], [3]], np.array([0.1, 0.0]))) == [[2]]


def rise(best: float, seed: int, *, shuffled: bool = False) -> float:
    """Mean QED of 500 draws after one batch of 256, less that of the prior."""
    rng, search = np.random.default_rng(seed), HillClimb(best=best, passes=8)

    def score(texts: list[str]) -> np.ndarray:
        found = values(texts)
        return rng.permutation(found) if shuffled else found

    run(search, 1, score, n=256, seed=seed)
    search.ask(1, 1)
    return float(np.nanmean(values(drawn(search))) - np.nanmean(values(model().sample(1000, 7))))


@pytest.mark.system("sampled-best-response-brpi", rung="works")
def test_one_round_raises_the_mean_score(off: str, effect: Effect) -> None:
    """QED of 500 draws after one batch of 256; with scores that are shuffled in their batch nothing is gained."""
    gains, mixed = ([rise(1.0 if off else 0.1, seed, shuffled=way) for seed in range(3)] for way in (False, True))
    effect("rise of the mean QED", gains, at_least=0.02, beside={"shuffled scores": mixed})
    assert np.mean(mixed) < 0.02


@pytest.mark.system("crr", rung="exact")
def test_a_weight_of_one_is_the_likelihood(off: str) -> None:
    """f = 1: the loss and its gradient are those of a language model's training."""
    made, search = model(), CRR(f="binary" if off else "one", steps=1)
    texts = LIBRARY[:40:5]
    search.begin(made, known=(texts, values(texts)))
    search.agent = Policy(made)
    codes = [row for row in search.agent.encode(texts) if row is not None]
    loss, _ = search.losses(codes, torch.linspace(-1, 1, len(codes)))
    vocabulary = made.ready().vocabulary
    split = [[vocabulary[code - 1] for code in row] for row in codes]
    batch = samples_of(split, vocabulary).sample(np.arange(len(split)))
    plain = NextToken()(search.agent.network, batch, StepState(0, 1, 0))
    torch.testing.assert_close(loss, plain.total / plain.count, rtol=1e-6, atol=1e-6)


@pytest.mark.system("crr", rung="exact")
def test_the_critic_learns_the_value_of_each_token(off: str) -> None:
    """On all strings of the toy with a model that stays: Q of the first token is the mean score of what follows."""
    made = toy_model()
    search = CRR(steps=1, learning_rate=0.01)
    search.begin(made, known=(STRINGS, SCORES))
    search.agent = Policy(made)  # it stays: its own optimiser moves another copy
    codes = [row for row in search.agent.encode(STRINGS) if row is not None]
    p, scores = probabilities(search.agent), (SCORES - SCORES.mean()) / SCORES.std()
    aims = np.random.default_rng(0).permutation(scores) if off else scores
    rng = np.random.default_rng(1)
    for step in range(500):
        rows = rng.choice(64, 64, p=p / p.sum())
        search.descend([codes[row] for row in rows], aims[rows], step)
        search.agent = Policy(made)
    with torch.no_grad():
        q = search.critic(torch.zeros(1, 1, dtype=torch.int64))[0][0, 0, 1:].numpy()
    exact = [(p * scores)[16 * a : 16 * a + 16].sum() / p[16 * a : 16 * a + 16].sum() for a in range(4)]
    assert np.abs(q - exact).max() < 0.25 and np.corrcoef(q, exact)[0, 1] > 0.9


@functools.cache
def logged() -> tuple[list[str], np.ndarray]:
    """1,000 molecules that the model wrote, and their QED."""
    texts = model().sample(1700, 5)
    qed = values(texts)
    rows = np.flatnonzero(np.isfinite(qed))[:1000]
    return [texts[row] for row in rows], qed[rows]


@functools.cache
def offline(f: str, shuffled: bool = False, seed: int = 1) -> np.ndarray:
    """QED of 500 draws, NaN of what is no molecule."""
    texts, qed = logged()
    qed = np.random.default_rng(0).permutation(qed) if shuffled else qed
    search: Any = CRR(f=f, steps=200)  # type: ignore[arg-type]
    search.begin(model(), known=(texts, qed), seed=seed)
    return values(drawn(search))


@pytest.mark.system("crr", rung="works")
def test_learning_from_a_log_writes_better_molecules_than_cloning(off: str, effect: Effect) -> None:
    """Beside cloning of the same log: the mean QED of valid draws, and their share."""
    clone, made, mixed = offline("one"), offline("one" if off else "exp"), offline("exp", shuffled=True)
    gain, spread = np.nanmean(made) - np.nanmean(clone), 0.0
    for each in (made, clone):
        spread += np.nanvar(each) / np.isfinite(each).sum()
    beside = {"cloning": [float(np.nanmean(clone))], "shuffled scores": [float(np.nanmean(mixed))],
              "valid": [float(np.isfinite(made).mean())], "valid of cloning": [float(np.isfinite(clone).mean())],
              "distinct of 500": [float(len(np.unique(made)))]}  # fmt: skip
    assert np.isfinite(made).mean() >= np.isfinite(clone).mean() - 0.05
    assert np.nanmean(mixed) < np.nanmean(clone) + 1.96 * np.sqrt(spread)
    effect("lower end of the 95% interval of the gain in QED", [float(gain - 1.96 * np.sqrt(spread))], at_least=0.0,
           beside=beside)  # fmt: skip
