"""Disentanglement of latent dimensions: scores by hand and by scikit-learn, and of factors as they are and turned."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import entropy

from molgraph.auxiliary.study.latents import probe, rotated
from molgraph.embed.disentanglement import dci, disentanglement, information_gap
from tests.systems.effect import Effect


@pytest.mark.system("disentanglement-metrics-vs-downstream-sa", rung="exact")
def test_scores_are_those_of_the_equations(off: str) -> None:
    """DCI with scipy's entropy, MIG of classes by their joint table; off: the importances are transposed."""
    rng = np.random.default_rng(0)
    r = rng.random((7, 4)) ** 3
    weight = r.sum(axis=1) / r.sum()
    by_hand = sum(w * (1 - entropy(row / row.sum(), base=4)) for w, row in zip(weight, r, strict=True))
    score, completeness = dci(r.T if off else r)
    assert score == pytest.approx(by_hand, abs=1e-12)
    np.testing.assert_allclose(completeness, [1 - entropy(c / c.sum(), base=7) for c in r.T])
    v = rng.integers(0, 3, (400, 1))
    z = np.stack([np.where(rng.random(400) < 0.8, v[:, 0], 0), np.where(rng.random(400) < 0.4, v[:, 0], 2)], axis=1)

    def information(code: np.ndarray) -> float:
        joint = np.array([[((code == a) & (v[:, 0] == b)).mean() for b in range(3)] for a in range(3)])
        return float(entropy(joint.sum(0)) + entropy(joint.sum(1)) - entropy(joint.flatten()))

    told = sorted((information(code) for code in z.T), reverse=True)
    wanted = (told[0] - told[1]) / entropy(np.bincount(v[:, 0]))
    assert information_gap(z.astype(float), v.astype(float))[0] == pytest.approx(wanted, abs=1e-12)


@pytest.mark.system("disentanglement-metrics-vs-downstream-sa", rung="exact")
def test_the_order_of_dimensions_does_not_matter_and_their_rotation_does(off: str) -> None:
    """Six independent factors; off: the copy is rotated too."""
    true = np.random.default_rng(1).normal(size=(600, 6))
    copy = rotated(true, 9) if off else true
    order = np.random.default_rng(2).permutation(6)
    a, b, c = (disentanglement(z, true, 0) for z in (copy, copy[:, order], rotated(true, 3)))
    assert a.dci > 0.95 and a.mig.mean() > 0.9
    assert b.dci == pytest.approx(a.dci, abs=1e-3) and np.allclose(b.mig, a.mig)
    assert c.dci < 0.5 and probe(rotated(true, 3), true, 600, 0).min() > 0.999


@pytest.mark.system("disentanglement-metrics-vs-downstream-sa", rung="works")
def test_few_labels_are_enough_for_trees_on_disentangled_codes(off: str, effect: Effect) -> None:
    """A threshold of one of ten factors by trees of 60 labels, as they are against rotated; off: both rotated."""
    from sklearn.ensemble import GradientBoostingClassifier

    gains, many = [], []
    for seed in (0, 1, 2, 3, 4):
        rng = np.random.default_rng(seed)
        z = rng.normal(size=(2600, 10))
        y = (z[:, 0] > 0) ^ (z[:, 1] > 0)
        codes = [rotated(z, seed + 50) if off else z, rotated(z, seed)]
        for n, out in ((60, gains), (2000, many)):
            right = [(GradientBoostingClassifier(random_state=0).fit(x[:n], y[:n]).predict(x[2000:]) == y[2000:]).mean()
                     for x in codes]  # fmt: skip
            out.append(right[0] - right[1])
    effect("accuracy with 60 labels, disentangled less rotated", gains, at_least=0.1, beside={"2,000 labels": many})
