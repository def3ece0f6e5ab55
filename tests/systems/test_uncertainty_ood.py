"""How far probabilities can be trusted: ensembles beside their members, and the error of calibration."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.calibration import calibration_curve

from molgraph.base.contracts import Prediction, Target
from molgraph.evaluate.measures import brier, log_loss
from molgraph.evaluate.screening import calibration_error
from molgraph.trust.ensemble import Ensemble


@pytest.mark.system("uncertainty-under-shift-benchmark", rung="exact")
def test_an_ensemble_errs_less_than_its_members_on_the_mean_in_every_batch(off: str) -> None:
    """Jensen's inequality, of the logarithm and of the square."""
    rng, ids = np.random.default_rng(0), (np.full(32, ""), (Target("y", "binary"),))
    for _ in range(20):
        y, members = np.append(rng.integers(0, 2, 30), [0, 1]).astype(float), rng.uniform(0.02, 0.98, (4, 32, 1))
        made = Ensemble("mean", n=4).combine([Prediction(*ids, each, *ids[:1] * 2) for each in members]).value
        for loss in (log_loss, brier):
            alone = [loss(y, each[:, 0]) for each in members]
            assert (max(alone) if off else loss(y, made[:, 0])) < np.mean(alone)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.system("uncertainty-under-shift-benchmark", rung="exact")
def test_calibration_error_is_the_curves_mean_gap(seed: int, off: str) -> None:
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(300), 2)  # edges of bins occur
    y = (rng.random(300) < p**2).astype(float)
    true, said = calibration_curve(y, p, n_bins=10, strategy="uniform")
    counts = np.histogram(p, bins=np.append(np.nextafter(np.linspace(0, 1, 11)[:-1], 2), 1.1))[0]
    counts[0] += (p == 0).sum()
    found = np.abs(y - p).mean() if off else calibration_error(y, p)
    assert found == pytest.approx(np.average(np.abs(true - said), weights=counts[counts > 0]))
