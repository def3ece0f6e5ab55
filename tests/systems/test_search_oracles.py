"""Oracles of searches: predictions that are lowered where a model is in doubt."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.doubt import doubt_of, thinned
from molgraph.generate.oracles.model import ModelOracle
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.generate.oracles.risk_averse import RiskAverse, posterior_of
from molgraph.generate.run_search import run_search
from molgraph.generate.searches.search import builtin_molecules, make_search
from molgraph.train.model import Model
from molgraph.trust.ensemble import Ensemble
from tests.systems.effect import Effect
from tests.tiny import series, small


def modest(model: Model, off: str, **how: float) -> ModelOracle:
    return ModelOracle(model) if off else ModelOracle(model, pessimistic=True, **how)


@functools.cache
def dropped() -> Model:
    """A small network with dropout."""
    table = series(48)
    return Model(small(head_dropout=0.3, epochs=5).fit(table), targets=table.targets)


@pytest.mark.system("way-off-policy-batch-rl", rung="exact")
def test_a_doubtful_prediction_is_the_mean_less_the_deviation_of_thinned_networks(off: str) -> None:
    model, smiles = dropped(), [*map(str, series(20, 40).smiles)]
    plain = model.predict(smiles).value[:, 0]
    passes = []
    for k in range(4):
        with thinned(model.method, k):  # type: ignore[arg-type]
            passes.append(model.predict(smiles).value[:, 0])
    low = modest(model, off, deviations=2.0, passes=4).score(smiles).value
    assert np.allclose(low, plain - 2 * np.std(passes, axis=0), atol=1e-9) and np.std(passes, axis=0).min() > 0
    high = ModelOracle(model, pessimistic=not off, deviations=2.0, passes=4, lower=True).score(smiles).value
    assert np.allclose(high - plain, plain - low) and (low < plain).all()
    worst = ModelOracle(model, pessimistic=False if off else "min", passes=4).score(smiles).value
    assert np.allclose(worst, np.minimum(plain, np.min(passes, axis=0)))
    assert np.allclose(low[3:5], modest(model, off, deviations=2.0, passes=4).score(smiles[3:5]).value, atol=1e-6)


@pytest.mark.system("way-off-policy-batch-rl", rung="exact")
def test_the_worst_of_an_ensemble_is_its_lowest_member(off: str) -> None:
    table, smiles = series(32), [*map(str, series(20, 40).smiles)]
    method = Ensemble("dmpnn", n=3, params={"epochs": 2, "head_width": 8, "batch_size": 16, "d_hidden": 8}).fit(table)
    model = Model(method, targets=table.targets)
    members = doubt_of(model, smiles, 2).members
    assert members.shape == (3, 20, 1) and np.allclose(members.mean(axis=0), model.predict(smiles).value, atol=1e-6)
    worst = ModelOracle(model, pessimistic=False if off else "min").score(smiles).value
    assert np.allclose(worst, members.min(axis=0)[:, 0])


@functools.cache
def searched(seed: int, pessimistic: bool) -> float:
    """Predicted - true logP of the 100 best of 1,000 molecules, by an ensemble that learned from noisy labels."""
    rng, every = np.random.default_rng(seed), builtin_molecules()
    chosen = [every[i] for i in rng.permutation(len(every))[:200]]
    logp = measure("logp", chosen).value
    y = logp + logp.std() * rng.normal(size=len(logp))  # an assay whose error is one deviation of its values
    table = make_table(chosen, targets=(Target("logp"),), y=y)
    tree = {"n_estimators": 1, "features": "morgan", "n_bits": 512, "threads": 1}
    model = Model(Ensemble("random_forest", n=10, seed=seed, params=tree, threads=1).fit(table), targets=table.targets)
    calls = OracleCalls(read_oracle(ModelOracle(model, pessimistic=pessimistic)), 1000)
    run_search(None, calls, make_search("sampling"), batch=100, seed=seed, diversity=0.0)
    smiles = [one.smiles for one in sorted(calls.scored.values(), key=lambda one: -one.guide)[:100]]
    return float((model.predict(smiles).value[:, 0] - measure("logp", smiles).value).mean())


@pytest.mark.system("way-off-policy-batch-rl", rung="works")
def test_a_pessimistic_oracle_is_exploited_less(off: str, effect: Effect) -> None:
    plain, low = ([searched(seed, way) for seed in range(5)] for way in (False, not off))
    gain = [a - b for a, b in zip(low, plain, strict=True)]
    beside = {"plain gap": plain, "pessimistic gap": low}
    effect("gap of predicted and true logP of the top 100, less the plain one's", gain, at_most=-0.1, beside=beside)


@pytest.mark.system("ird", rung="exact")
def test_what_was_never_varied_stays_as_uncertain_as_before(off: str) -> None:
    for seed in range(3):
        rng = np.random.default_rng(seed)
        phi = rng.normal(size=(200, 3))
        phi[:, 2] = 4.0
        prior = rng.standard_normal((20_000, 3))
        chance = posterior_of(np.array([1.0, 0.8, 0.5]), phi, 5.0, prior, observe=not off)
        mean = chance @ prior
        ratio = chance @ (prior - mean) ** 2 / prior.var(axis=0)
        assert 0.95 < ratio[2] < 1.05 and (ratio[:2] < 0.7).all() and abs(mean[2]) < 0.1 and (mean[:2] > 0.5).all()
        moved = prior + np.array([0.0, 0.0, 7.0])
        assert np.allclose(posterior_of(np.array([1.0, 0.8, 0.5]), phi, 5.0, moved, observe=not off), chance)


@pytest.mark.system("ird", rung="works")
def test_a_molecule_that_wins_by_what_never_varied_is_not_chosen(off: str, effect: Effect) -> None:
    """Iodine was in no molecule by which the weights were set; a twin trusts all weights on average."""
    gains, beside = [], {"proxy": [], "known parts, top ten - pool": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        every = [builtin_molecules()[i] for i in rng.permutation(len(builtin_molecules()))[:800]]
        plain = [text for text in every if "I" not in text]
        lava = [f"Ic1cc({text})c(I)c(I)c1I" for text in ("C", "CC", "CO", "N", "F", "Cl", "CN", "C=O", "C#N", "O")]
        oracle = RiskAverse("qed,logp=window(1,3):0.2,smarts([I]):0.3", make_table(plain[:300]))
        pool = plain[300:600] + lava
        total = oracle.parts.score_parts(pool).total
        score = total if off else oracle.score(pool).value
        top = [np.argsort(-each)[:10] for each in (score, total)]
        gains.append(float(np.mean(top[0] >= 300)))
        beside["proxy"].append(float(np.mean(top[1] >= 300)))
        known = read_oracle("qed,logp=window(1,3):0.2").score_parts(pool).total
        beside["known parts, top ten - pool"].append(float(known[top[0]].mean() - known[:300].mean()))
        assert known[top[0]].mean() - known[:300].mean() > 0.1 or off
    effect("share of molecules with iodine among the ten best", gains, at_most=0.1, beside=beside)
