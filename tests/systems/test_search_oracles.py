"""Oracles of searches: predictions that are lowered where a model is in doubt."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from molgraph.base.contracts import Target
from molgraph.chem.quality import measure
from molgraph.data.table import make_table
from molgraph.generate.oracles.combined import read_oracle
from molgraph.generate.oracles.doubt import doubt_of, thinned
from molgraph.generate.oracles.journal import OracleCalls
from molgraph.generate.oracles.model import ModelOracle
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
    plain, low = ([searched(seed, way) for seed in range(3)] for way in (False, not off))
    gain = [a - b for a, b in zip(low, plain, strict=True)]
    beside = {"plain gap": plain, "pessimistic gap": low}
    effect("gap of predicted and true logP of the top 100, less the plain one's", gain, at_most=-0.1, beside=beside)
