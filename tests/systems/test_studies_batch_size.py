"""The study of batch sizes: steps on a bowl by its recursion, and steps of trainings by hand."""

from __future__ import annotations

import numpy as np
import pytest

import molgraph
from molgraph.auxiliary.study.batch_size import BOWL, RATES, BatchSizeStudy, bowl_steps, steps_to
from molgraph.base.errors import BadValueError
from molgraph.base.seeds import derive
from molgraph.study.grid_fits import fitted_with, random_parts
from molgraph.study.study import Subject
from tests.systems.effect import Effect
from tests.tiny import series

GIN = "gin(depth=2, d_hidden=8, head_width=8)"


@pytest.mark.system("steps-to-result-batch-size-study", rung="exact")
def test_steps_on_the_bowl_are_those_of_the_recursion(off: str) -> None:
    """Step by step at all rates; off: at one rate for all batch sizes."""
    for batch in (1, 4, 64):
        power, steps = np.ones((len(RATES), len(BOWL))), 0
        rates = RATES[60:61, None] if off else RATES[:, None]
        power = power[: len(rates)]
        while (0.5 * (BOWL * power).sum(axis=1)).min() > 1e-2 * 0.5 * BOWL.sum() and steps < 20_000:
            power = (1 - rates * BOWL) ** 2 * power + rates**2 * BOWL / batch
            steps += 1
        assert bowl_steps(batch) == steps
    assert 1.6 <= bowl_steps(1) / bowl_steps(2) <= 2.4 and bowl_steps(2**14) / bowl_steps(2**15) < 1.25


@pytest.mark.system("steps-to-result-batch-size-study", rung="exact")
def test_steps_are_counted_to_one_loss_at_the_best_rate_of_each_batch_size(off: str) -> None:
    """Of trainings by hand; off: one rate."""
    study = BatchSizeStudy(batches="8+32", rates=1 if off else 2, steps=24, repeats=1, rows=90)
    subject = Subject(series(120), GIN)
    found = study.run(subject, seed=3)
    assert found.sound and b"<svg" in found.draw("svg"), repr(found)
    parts, curves = random_parts(subject, 90, 40, 3), {}
    each = {size: -(-len(parts.train) // size) for size in (8, 32)}
    for size, n in each.items():
        for rate in (1e-3, 1e-2):
            how = {"batch_size": size, "learning_rate": rate, "epochs": round(24 / n)}
            curves[size, rate] = fitted_with(subject, parts, derive(3, "fit", 0), **how).curves["valid_loss"]
    goal = 1.02 * max(min(min(curve) for (own, _), curve in curves.items() if own == size) for size in each)
    wanted = [min(steps_to(curve, goal, n) for (own, _), curve in curves.items() if own == size)
              for size, n in each.items()]  # fmt: skip
    assert found.frame["steps"].tolist() == wanted
    assert f"{goal:.3g}" in found.sentence


@pytest.mark.system("steps-to-result-batch-size-study", rung="works")
def test_twice_the_batch_takes_half_the_steps_at_first_and_as_many_later(off: str, effect: Effect) -> None:
    """Stochastic gradient descent on least squares, its rate chosen for each batch; off: one rate for all.

    The first ratio less the second; beside: both.
    """
    gains, beside = [], {"steps at 1 by 2": [], "steps at 256 by 512": []}
    for seed in range(5):
        rng = np.random.default_rng(seed)
        x = rng.normal(size=(2000, 8)) * 0.7 ** np.arange(8)
        y = x @ rng.normal(size=8) + 0.5 * rng.normal(size=2000)
        steps = {size: _steps(x, y, size, seed, one=bool(off)) for size in (1, 2, 256, 512)}
        ratios = steps[1] / steps[2], steps[256] / steps[512]
        beside["steps at 1 by 2"].append(ratios[0]), beside["steps at 256 by 512"].append(ratios[1])
        gains.append(ratios[0] - ratios[1])
    effect("ratio of steps of batches of 1 and 2, less that of 256 and 512", gains, at_least=0.4, beside=beside)


def _steps(x: np.ndarray, y: np.ndarray, size: int, seed: int, *, one: bool) -> float:
    """The fewest steps of sixteen rates until the loss is at 1.1 times the least."""
    best = np.linalg.lstsq(x, y, rcond=None)[0]
    goal, fewest = 1.1 * np.mean((x @ best - y) ** 2), 4000
    rates = [0.02] if one else np.geomspace(2e-3, 1.5, 16)
    for rate in rates:
        rng, w = np.random.default_rng(seed), np.zeros(x.shape[1])
        for step in range(1, fewest + 1):
            rows = rng.integers(0, len(x), size)
            w -= rate * x[rows].T @ (x[rows] @ w - y[rows]) / size
            if not step % 5 and np.mean((x @ w - y) ** 2) <= goal:
                fewest = step
                break
            if not np.isfinite(w).all() or np.abs(w).max() > 1e3:
                break
    return float(fewest)


def test_one_batch_size_is_refused() -> None:
    with pytest.raises(BadValueError, match="batch"):
        molgraph.study("batch-size(batches=8)", series(60), model=GIN)
