"""Checks of CCU: what becomes of probabilities far away, and the bound over whole balls."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import multivariate_normal
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score

from molgraph.data.read import read_table
from molgraph.trust.ccu import CCU, Mixture, described
from tests.systems.effect import Effect


@pytest.mark.system("ccu", rung="exact")
def test_no_molecule_in_a_certified_ball_is_more_certain_than_its_bound(off: str) -> None:
    """Meinke and Hein 2020, theorem 3.2, by random search; the twin's bound is that of the ball's centre alone."""
    rng = np.random.default_rng(0)
    inner = Mixture(np.array([0.3, 0.7]), rng.normal(size=(2, 3)), np.array([0.5, 0.8]))
    points = rng.normal(size=(5, 3))
    by_hand = [
        np.log(sum(s * multivariate_normal(c, w**2).pdf(z) for s, c, w in zip(*inner, strict=True))) for z in points
    ]
    np.testing.assert_allclose(inner.log_density(points), by_hand, rtol=1e-10)
    made = CCU("linear", width=3)
    outer = Mixture(np.array([0.5, 0.5]), rng.normal(size=(2, 3)), np.array([1.5, 2.0]))
    for side, mixture in (("in", inner), ("out", outer)):
        made.learned |= {f"{side}_{name}": value for name, value in mixture._asdict().items()}
    worst = 0.0
    for centre in 3 * rng.normal(size=(100, 3)):
        radius = rng.uniform(0.2, 2)
        steps = rng.normal(size=(200, 3))
        ball = centre + radius * rng.random((200, 1)) ** (1 / 3) * steps / np.linalg.norm(steps, axis=1, keepdims=True)
        share = expit(made.log_ratio(ball))
        bound = made.certify(centre[None], 0.0 if off else radius)[0]
        worst = max(worst, float((share + (1 - share) / 2 - bound).max()))
    assert worst <= 0


@pytest.mark.system("ccu", rung="works")
def test_far_from_all_molecules_each_class_is_as_likely(off: str, effect: Effect) -> None:
    """BBBP: descriptors times 1,000; the twin is the classifier alone. The classes of usual molecules stay."""
    table, far, plain, lost = read_table("dataset:bbbp", targets=["p_np"]), [], [], []
    assert table.y is not None
    for seed in range(2):
        order = np.random.default_rng(seed).permutation(len(table))
        train, test = table.take(order[:1200]), table.take(order[1200:])
        made = CCU("linear", seed=seed).fit(train)
        x, rows = described(test)
        known, learned = described(train)
        z = made.whitened(x)
        network = LogisticRegression(max_iter=2000).fit(made.whitened(known), train.y[learned, 0])
        distant = network.predict_proba(1000 * z).max(axis=1)
        far.append(float(distant.max() if off else made.certify(1000 * z, 0.0).max()) - 0.5)
        plain.append(float(distant.mean()))
        one, two = (each.predict(test).value[rows, 0] > 0.5 for each in (made, made.members[0]))
        truth = test.y[rows, 0]
        lost.append(float(accuracy_score(truth, two) - accuracy_score(truth, one)))
    assert max(lost) <= 0.005
    beside = {"probability without": plain, "accuracy lost": lost}
    effect("most that a class is above 1/2 at 1,000 times the descriptors", far, at_most=1e-3, beside=beside)
