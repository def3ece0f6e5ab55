"""MAX: the disagreement of members in closed form, and a plate of molecules that teaches more than a random one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.stats import norm, ttest_rel

import molgraph
from molgraph.base.contracts import Prediction, Target
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes
from molgraph.trust.disagreement import disagreement
from molgraph.trust.ensemble import Ensemble
from tests.systems.effect import Effect

SEEDS, FIRST, BATCH, ROUNDS, TEST = 10, 60, 40, 4, 250


def members(target: Target, values: np.ndarray, spreads: np.ndarray | None = None) -> list[Prediction]:
    """Predictions of one target; values and spreads [members, n, columns]."""
    texts, status = np.full(values.shape[1], ""), np.full(values.shape[1], "ok")
    return [
        Prediction(texts, (target,), value, status, texts, spread=None if spreads is None else spreads[i])
        for i, value in enumerate(values)
    ]


@pytest.mark.system("max", rung="exact")
def test_divergence_of_classes_is_the_mean_divergence_from_the_mean(off: str) -> None:
    """Shyam et al. 2019, against the mean of KL(p_i || mean); 0 of equal members, at most log M."""
    rng, target = np.random.default_rng(0), Target("y", "multiclass", classes=("a", "b", "c"))
    p = rng.dirichlet(np.full(3, 0.5), (5, 200))
    p[:, 0] = p[0, 0]  # members that are equally unsure
    p[:, 1] = np.eye(3)[[0, 1, 2, 0, 1]]
    score = disagreement(members(target, p), target, "variance" if off else "jsd")
    mean = p.mean(axis=0)
    expected = np.where(p > 0, p * np.log(np.where(p > 0, p, 1) / np.where(mean > 0, mean, 1)), 0.0).sum(-1).mean(0)
    np.testing.assert_allclose(score, expected, rtol=0, atol=1e-8)
    assert abs(score[0]) < 1e-12 and (score <= np.log(5) + 1e-12).all()


@pytest.mark.system("max", rung="exact")
def test_divergence_of_numbers_is_that_of_draws(off: str) -> None:
    """Jensen-Renyi of order 2 in closed form, against -log E[p(x)] by 400,000 draws, within 1%."""
    rng, target = np.random.default_rng(1), Target("y")
    mean, spread = rng.normal(0, 3, (4, 6, 1)), np.full((4, 6, 1), 1.0)
    spread[:, 3:] = rng.uniform(0.5, 1.5, (4, 3, 1))
    mean[:, 0] = 0.7  # members that say the same
    score = disagreement(members(target, mean, spread), target, "variance" if off else "jrd")
    assert abs(score[0]) < 1e-12

    def entropy(m: np.ndarray, s: np.ndarray) -> float:
        drawn = rng.integers(len(m), size=400_000)
        x = rng.normal(m[drawn], s[drawn])
        return -float(np.log(norm.pdf(x[:, None], m, s).mean()))

    for row in range(1, 6):
        m, s = mean[:, row, 0], spread[:, row, 0]
        drawn = entropy(m, s) - np.mean([entropy(m[i : i + 1], s[i : i + 1]) for i in range(4)])
        assert score[row] == pytest.approx(drawn, rel=0.01)


@pytest.mark.data
@pytest.mark.system("max", rung="works", null="forests learn no more of ESOL from such plates than from random ones")
def test_a_chosen_plate_teaches_more_than_a_random_one(off: str, effect: Effect, tmp_path: Path) -> None:
    """ESOL: the mean RMSE over four plates of 40, of five forests that each learn from all plates so far, paired."""
    table = standardise(read_table("dataset:esol"), "standard")
    table = table.take(np.flatnonzero(table.ok))

    def curve(score: str, seed: int) -> float:
        order, errors = np.random.default_rng(seed).permutation(len(table)), list[float]()
        test, known, pool = order[:TEST], order[TEST : TEST + FIRST], order[TEST + FIRST :]
        for step in range(ROUNDS + 1):
            forests = Ensemble(
                "random_forest", n=5, seed=seed, threads=1, store=str(tmp_path), params={"n_estimators": 8}
            ).fit(table.take(known))
            value = forests.predict(table.take(test)).value
            errors.append(float(np.sqrt(np.mean((value - table.y[test]) ** 2))))  # type: ignore[index]
            if step == ROUNDS:
                return float(np.mean(errors[1:]))
            model = Model(forests, targets=table.targets, trained_on=distinct(molecule_hashes(table.take(known))))
            plate = molgraph.select(model, table.take(pool), batch=BATCH, score=score, seed=seed * ROUNDS + step)
            chosen = np.isin(table.ids[pool], plate["id"])
            known, pool = np.concatenate([known, pool[chosen]]), pool[~chosen]
        raise AssertionError

    plain = [curve("random", seed) for seed in range(SEEDS)]
    own = plain if off else [curve("jrd", seed) for seed in range(SEEDS)]
    ratios = [a / b for a, b in zip(own, plain, strict=True)]
    p = 1.0 if off else float(ttest_rel(own, plain, alternative="less").pvalue)
    beside = {"chosen, RMSE": own, "random, RMSE": plain, "p of the paired test": [p]}
    effect("RMSE over four plates / over random plates", ratios, at_most=0.99, beside=beside)
    assert p < 0.05
