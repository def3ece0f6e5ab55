"""H-divergence: its closed form for means, ridge by a library, the level of its test, and which shifts it sees."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from molgraph.evaluate.h_divergence import h_divergence, least_loss
from tests.systems.effect import Effect

Rows = tuple[np.ndarray, np.ndarray]


@pytest.mark.system("h-divergence", rung="exact")
def test_for_means_it_is_a_quarter_of_their_squared_distance(off: str) -> None:
    """Sets of 40 and 90 rows with three labels and other variances; off: the losses of both sets without a mixture."""
    rng = np.random.default_rng(5)
    one, other = rng.normal(1, 2, (40, 3)), rng.normal(-1, 1, (90, 3))
    found = h_divergence((one[:, :0], one), (other[:, :0], other), permutations=0)
    wanted = 0.25 * float(((one.mean(axis=0) - other.mean(axis=0)) ** 2).sum())
    assert abs((found.first - found.second if off else found.value) - wanted) < 1e-10
    most = h_divergence((one[:, :0], one), (other[:, :0], other), permutations=0, kind="min").value
    assert most == pytest.approx(found.mixture - min(found.first, found.second)) and most > found.value


@pytest.mark.system("h-divergence", rung="exact")
def test_the_least_loss_is_that_of_ridge_regression(off: str) -> None:
    """Of scikit-learn, whose penalty is that of the summed loss; off: x is not read."""
    rng = np.random.default_rng(6)
    x, penalty = rng.normal(2, 1, (50, 4)), 0.3
    y = x @ rng.normal(size=(4, 2)) + rng.normal(size=(50, 2)) + 3.0
    model = Ridge(alpha=len(x) * penalty).fit(x, y)
    wanted = ((y - model.predict(x)) ** 2).sum() / len(x) + penalty * (model.coef_**2).sum()
    z = np.column_stack([np.ones(len(x)), x[:, : 0 if off else 4], y])
    assert abs(least_loss(z.T @ z / len(x), 2, penalty) - wanted) < 1e-10


def pair(seed: int, *, molecules: float = 0.0, rule: float = 0.0) -> tuple[Rows, Rows]:
    """Two sets of 60 rows of six columns; the second has its molecules moved, or its rule partly turned round."""
    rng = np.random.default_rng(10_000 + seed)
    x, w = rng.normal(size=(120, 6)), 0.3 * np.arange(6)[:, None]
    x[60:, 0] += molecules
    y = x @ w + rng.normal(size=(120, 1))
    y[60:] -= rule * x[60:] @ w
    return (x[:60], y[:60]), (x[60:], y[60:])


def share(make: Callable[[int], tuple[Rows, Rows]], runs: int) -> float:
    """Of runs that the test rejects at 5%."""
    return float(np.mean([h_divergence(*make(s), permutations=99, seed=s).p <= 0.05 for s in range(runs)]))


@pytest.mark.system("h-divergence", rung="works")
def test_two_sets_of_one_distribution_are_rejected_at_the_level(off: str, effect: Effect) -> None:
    """500 pairs; off: without permutations, any divergence counts."""
    runs = 500
    any_ = [h_divergence(*pair(s), permutations=0).value > 0 for s in range(runs if off else 50)]
    found = float(np.mean(any_)) if off else share(pair, runs)
    effect("share of equal pairs that are rejected", [found], at_least=0.03, at_most=0.07)


@pytest.mark.system("h-divergence", rung="works")
def test_a_rule_that_changes_is_seen_and_molecules_that_move_are_not(off: str, effect: Effect) -> None:
    """Where molecules move, the rule holds; off: the means of the molecules are compared."""

    def means(make: Callable[[int], tuple[Rows, Rows]]) -> Callable[[int], tuple[Rows, Rows]]:
        def blind(seed: int) -> tuple[Rows, Rows]:
            (a, _), (b, _) = make(seed)
            return (a[:, :0], a), (b[:, :0], b)

        return blind

    def moved(seed: int) -> tuple[Rows, Rows]:
        return pair(1000 + seed, molecules=1.0)

    def turned(seed: int) -> tuple[Rows, Rows]:
        return pair(2000 + seed, rule=0.7)

    plain = [share(means(each), 100) for each in (turned, moved)]
    seen, false = plain if off else (share(turned, 100), share(moved, 100))
    beside = {"rule seen": [seen], "moved molecules flagged": [false], "rule by means": plain[:1], "moved": plain[1:]}
    effect("share of changed rules seen less that of moved molecules flagged", [seen - false], at_least=0.8,
           beside=beside)  # fmt: skip
