"""MnasNet's reward: half the speed costs 5%, the answer is never dominated, and fast configurations are found."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

import numpy as np
import pytest

from molgraph.base.search_space import Categorical, Int, Space
from molgraph.evaluate.latency import Latency, undominated
from molgraph.evaluate.trials import Trial, best_trial, run_trials
from tests.systems.effect import Effect

TARGET, TRIALS = 5000.0, 40
WIDTHS = (32, 64, 128, 256, 512)
KINDS = {"a": (0.03, 0.3), "b": (0.0, 1.5), "c": (0.02, 0.8), "d": (0.06, 0.1)}  # lost score, cost
READOUTS = {"sum": (0.0, 1.0), "mean": (0.02, 1.05)}
SPACE: Space = {
    "depth": Int(1, 5),
    "width": Categorical(WIDTHS),
    "kind": Categorical(tuple(KINDS)),
    "readout": Categorical(tuple(READOUTS)),
}
Table = dict[tuple[Any, ...], tuple[float, float]]


def configurations(seed: int, digits: int = 9) -> Table:
    """AUC and molecules/s of 200 configurations: deeper and wider ones are better and slower, with noise."""
    rng, table = np.random.default_rng(seed), Table()
    for depth, width, kind, readout in product(range(1, 6), WIDTHS, KINDS, READOUTS):
        (loss, cost), (less, times) = KINDS[kind], READOUTS[readout]
        auc = 0.9 - 0.1 * np.exp(-depth / 2) - 0.15 * (width / 32) ** -0.5 - loss - less + 0.005 * rng.normal()
        table[depth, width, kind, readout] = (
            round(float(auc), digits),
            1 / (2e-5 + depth * cost * times * width**1.5 * 1e-8),
        )
    return table


def search(table: Table, latency: Latency, seed: int, trials: int = TRIALS) -> list[Trial]:
    last: list[tuple[float, float]] = []

    def measure(params: Mapping[str, Any]) -> list[float]:
        last[:] = [table[tuple(params[name] for name in SPACE)]]
        return [-last[0][0]]

    rate: Callable[[], float] = lambda: last[0][1]  # noqa: E731
    return run_trials(SPACE, measure, trials=trials, seed=seed, latency=latency, rate=rate)


def volume(points: np.ndarray, worst: float) -> float:
    """The area of score and log molecules/s that the points dominate, above the worst score and the target speed."""
    area, low = 0.0, np.log(TARGET)
    for score, rate in sorted(points[undominated(-points[:, 0], points[:, 1])].tolist(), reverse=True):
        high = max(np.log(rate), low)
        area, low = area + (score - worst) * (high - low), high
    return area


@pytest.mark.system("mnasnet", rung="exact")
def test_half_the_speed_costs_five_percent_of_a_score_and_of_an_error(off: str) -> None:
    """At the target the reward is the score; off: a weight of 0."""
    latency = Latency.read("5000/s", 0.0 if off else -0.07)
    assert latency.reward(0.83, TARGET) == 0.83 and latency.of_loss(-0.83, TARGET) == 0.83
    for rate in (100.0, 4e4):
        assert abs(latency.reward(0.83, rate / 2) / latency.reward(0.83, rate) - 0.9526) < 1e-4
        assert abs(latency.of_loss(0.6, rate / 2) / latency.of_loss(0.6, rate) - 2**-0.07) < 1e-12


@pytest.mark.system("mnasnet", rung="exact")
def test_no_trial_is_better_than_the_answer_in_score_and_speed(off: str) -> None:
    """Twenty tables with scores of two digits, in which many are equal; off: a weight of 0."""
    for seed in range(20):
        table = configurations(seed, digits=2)
        found = search(table, Latency(TARGET, 0.0 if off else -0.07), seed)
        best = best_trial(found)
        assert best is not None and best.reward == max(t.reward or 0.0 for t in found)
        assert all((t.value, -(t.rate or 0.0)) == table_row(table, t) for t in found)
        front = undominated(np.array([t.value for t in found]), np.array([t.rate for t in found], float))
        assert front[found.index(best)], f"table {seed}: the answer is dominated"


def table_row(table: Table, trial: Trial) -> tuple[float, float]:
    score, rate = table[tuple(trial.params[name] for name in SPACE)]
    return -score, -rate


@pytest.mark.system("mnasnet", rung="works")
def test_its_trials_cover_more_of_the_fast_front_than_random_ones(off: str, effect: Effect) -> None:
    """Hypervolume above the target speed, of 40 trials over 40 random configurations; off: a weight of 0."""
    ratios, shares, rewards = list[float](), list[float](), list[float]()
    for seed in range(100, 120):
        table = configurations(seed)
        every = np.array(list(table.values()))
        worst, latency = float(every[:, 0].min()), Latency(TARGET, 0.0 if off else -0.07)
        found = search(table, latency, seed)
        own = np.array([(-(t.value or 0.0), t.rate) for t in found], dtype=float)
        random = every[np.random.default_rng(seed).choice(len(every), TRIALS, replace=False)]
        ratios.append(volume(own, worst) / volume(random, worst))
        shares.append(volume(own, worst) / volume(every, worst))
        best = max(latency.reward(*row) for row in every.tolist())
        rewards.append(max(t.reward or 0.0 for t in found) / best)
    beside = {"of the whole table's": shares, "best reward, of the table's best": rewards}
    effect("hypervolume above the target speed, over that of random trials", ratios, at_least=1.0, beside=beside)
