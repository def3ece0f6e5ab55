"""REINVENT and policies near their prior: the distributions they end at, replay, and molecules without sulphur."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
import torch

from molgraph.generate.policy import Policy
from molgraph.generate.searches.search import make_search
from tests.systems.effect import Effect
from tests.systems.small_language import drawn, model, run, values
from tests.systems.toy_language import SCORES, probabilities, tilted, total_variation, toy_model, trained


@pytest.mark.system("reinvent", rung="exact")
def test_the_agent_ends_at_the_prior_times_the_exponential_of_the_score(off: str) -> None:
    """All 64 strings: total variation from ``p exp(sigma S) / Z`` below 0.03 (Olivecrona et al. 2017)."""
    prior = probabilities(Policy(toy_model()))
    name = f"reinvent(sigma={0 if off else 2}, replay=0, learning_rate=0.01)"
    found = probabilities(trained(make_search(name), 500, n=512).agent)
    assert total_variation(prior, tilted(prior, 2 * SCORES)) > 0.15
    assert total_variation(found, tilted(prior, 2 * SCORES)) < 0.03


@pytest.mark.system("reinvent", rung="exact")
def test_without_sigma_the_loss_is_nothing_at_the_start(off: str) -> None:
    search: Any = make_search(f"reinvent(sigma={500 if off else 0})")
    search.begin(toy_model())
    codes = [row for row in search.agent.encode(["wxy", "zzz", "xyw"]) if row is not None]
    told = [search_text(row, 0.7) for row in codes]
    assert float(search.loss(search.episodes(told)).detach()) == 0


def search_text(codes: list[int], reward: float) -> Any:
    """A text that was scored."""
    from molgraph.generate.searches.written import Written

    return Written(codes, reward, np.zeros(0))


@pytest.mark.system("way-off-policy-batch-rl", rung="exact")
def test_the_distance_from_the_prior_in_the_reward_gives_the_soft_optimum(off: str) -> None:
    """All 64 strings: total variation from ``p exp(R / c) / Z`` below 0.02 (Jaques et al. 2019, equation 5)."""
    prior = probabilities(Policy(toy_model()))
    name = f"policy(kl={0.0 if off else 0.5}, learning_rate=0.01)"
    found = probabilities(trained(make_search(name), 300, n=512).agent)
    assert total_variation(prior, tilted(prior, SCORES / 0.5)) > 0.15
    assert total_variation(found, tilted(prior, SCORES / 0.5)) < 0.02


@pytest.mark.system("replay-as-a-non-parametric-model", rung="exact")
def test_without_replay_it_is_the_policy_of_the_same_loss(off: str) -> None:
    """Weights after five batches are equal bit for bit."""
    pair = [
        trained(make_search(name), 5, n=16).agent.network.state_dict().values()
        for name in (f"reinvent(sigma=20, replay={24 if off else 0})", "policy(estimator='augmented(sigma=20)')")
    ]
    assert all(map(torch.equal, *pair))


def sulphur_free(texts: list[str]) -> np.ndarray:
    """1 of a molecule without sulphur, 0 of others; NaN of what is none."""
    mw = values(texts, "mw")
    return np.where(np.isfinite(mw), [float("S" not in text and "s" not in text) for text in texts], np.nan)


@pytest.mark.system("reinvent", rung="works", twins=("off", "shuffled"))
def test_sulphur_is_avoided_and_molecules_stay_as_heavy(off: str, effect: Effect) -> None:
    """Of valid draws after 150 batches of 64; beside the prior's share, validity and molecular weight; off: no score in
    the loss; shuffled: the scores of a batch in another order."""
    search: Any = make_search(f"reinvent(sigma={0 if off == 'off' else 20}, learning_rate=1e-3)")
    rng = np.random.default_rng(0)
    run(search, 150, lambda texts: rng.permutation(sulphur_free(texts)) if off == "shuffled" else sulphur_free(texts))
    before, after = model().sample(500, 99), drawn(search)
    free, mw, old = sulphur_free(after), values(after, "mw"), values(before, "mw")
    change = float(np.nanmean(mw) / np.nanmean(old) - 1)
    beside = {"the prior's": [float(np.nanmean(sulphur_free(before)))], "change of weight": [change],
              "valid": [float(np.isfinite(mw).mean())],
              "valid of the prior": [float(np.isfinite(old).mean())]}  # fmt: skip
    assert np.isfinite(mw).mean() > np.isfinite(old).mean() - 0.05 and abs(change) < 0.15
    effect("share of valid draws without sulphur", [float(np.nanmean(free))], at_least=0.95, beside=beside)


@functools.cache
def top_ten(replay: int, seed: int) -> float:
    """Mean over 500 calls of the mean of the ten best QED so far, each distinct molecule a call."""
    search: Any = make_search(f"reinvent(sigma=100, replay={replay}, learning_rate=1e-3)")
    search.begin(model(), seed=seed)
    calls, curve = dict[str, float](), list[float]()
    for step in range(60):
        texts = search.ask(32, step).smiles
        qed = values(texts)
        for text, value in zip(texts, qed.tolist(), strict=True):
            if np.isfinite(value) and text not in calls:
                calls[text] = value
                curve.append(float(np.mean(sorted(calls.values())[-10:])))
        search.tell(texts, qed)
        if len(calls) >= 500:
            break
    return float(np.mean((curve + curve[-1:] * 500)[:500]))


@pytest.mark.system(
    "replay-as-a-non-parametric-model",
    rung="works",
    null="the ten best gain .005 [-.001, .011] on one processor, .003 [-.001, .007] on another: within the seeds",
)
def test_replay_finds_good_molecules_in_fewer_calls(off: str, effect: Effect) -> None:
    """Mean over 500 calls of the ten best, less that without replay, by seed.

    Counted by seeds it gained in 4 of 5 and in 3 of 5: a bound on that count passed by the processor.
    """
    gains = [top_ten(0 if off else 24, seed) - top_ten(0, seed) for seed in range(5)]
    beside = {"without": [top_ten(0, seed) for seed in range(5)], **surrogate()}
    effect("gain in the ten best by replay", gains, at_least=0.02, beside=beside)


def surrogate() -> dict[str, list[float]]:
    """Of a random forest on 300 molecules: its error on held-out ones, and on the 20 that it takes for the best."""
    from sklearn.ensemble import RandomForestRegressor

    from molgraph.chem.fingerprints import morgan

    texts = [*dict.fromkeys(model().sample(2500, 11))]
    qed = values(texts)
    texts, qed = [text for text, ok in zip(texts, np.isfinite(qed), strict=True) if ok], qed[np.isfinite(qed)]
    x = morgan(texts).x
    forest = RandomForestRegressor(50, random_state=0, n_jobs=1).fit(x[:300], qed[:300])
    over = forest.predict(x[300:]) - qed[300:]
    best = np.argsort(-forest.predict(x[300:]))[:20]
    return {"a forest's excess, held out": [float(over.mean())], "of its 20 best": [float(over[best].mean())]}
