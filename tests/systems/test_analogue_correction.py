"""Analogues: the error of a corrected prediction in closed form, and series of which some members are measured."""

from __future__ import annotations

import numpy as np
import pytest

from molgraph.auxiliary.random_forest import RandomForest
from molgraph.chem.scaffold import scaffolds
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.train.analogues import shared_effect
from molgraph.train.model import Model
from molgraph.train.parents import with_parents
from tests.systems.effect import Effect

T2, S2 = 1.0, 0.25


@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.system("cf-gps-cf-pe", rung="exact")
def test_mean_and_variance_are_those_of_conditioning_a_normal_distribution(n: int, off: str) -> None:
    """The values of n analogues and of a new one are jointly normal: covariance t2, and t2 + s2 on the diagonal."""
    r = np.random.default_rng(n).normal(0, 1, (50, n))
    joint = T2 * np.ones((n + 1, n + 1)) + S2 * np.eye(n + 1)
    weights = np.linalg.solve(joint[:n, :n], joint[:n, n])
    shift, variance = shared_effect(r.mean(axis=1), np.full(50, n), 0.0 if off else T2, T2 + S2 if off else S2)
    np.testing.assert_allclose(shift, r @ weights, rtol=0, atol=1e-12)
    np.testing.assert_allclose(variance, joint[n, n] - weights @ joint[:n, n], rtol=0, atol=1e-12)


@pytest.mark.system("cf-gps-cf-pe", rung="exact")
def test_squared_error_in_simulation_is_the_variance_and_below_both_ways_without_a_weight(off: str) -> None:
    """s2 + t2 s2 / (t2 + s2) = 0.45, where the model alone has 1.25 and the difference to the analogue 0.50."""
    rng, n = np.random.default_rng(0), 200_000
    u, parent, child = rng.normal(0, T2**0.5, n), rng.normal(0, S2**0.5, n), rng.normal(0, S2**0.5, n)
    shift, variance = shared_effect(u + parent, np.ones(n), 0.0 if off else T2, T2 + S2 if off else S2)
    squares = (u + child - shift) ** 2
    error = 4 * squares.std() / n**0.5
    assert abs(squares.mean() - (S2 + T2 * S2 / (T2 + S2))) < error
    assert abs(squares.mean() - variance.mean()) < error
    assert squares.mean() < np.mean((child - parent) ** 2) - error < np.mean((u + child) ** 2)
    plain, _ = shared_effect(u + parent, np.ones(n), 0.0, S2)
    assert not plain.any(), "t2 = 0 is the plain prediction"


@pytest.mark.data
@pytest.mark.system("cf-gps-cf-pe", rung="works")
def test_new_members_of_series_are_predicted_better_once_some_are_measured(off: str, effect: Effect) -> None:
    """Lipophilicity: of scaffolds that a forest did not see half of each series are measured, the others predicted."""
    table = standardise(read_table("dataset:lipo"), "standard")
    table = table.take(np.flatnonzero(table.ok))
    names = scaffolds(table.smiles).values
    table, names = table.take(np.flatnonzero(names != "")), names[names != ""]
    errors: dict[str, list[float]] = {"corrected": [], "plain": [], "difference": []}
    for seed in range(3):
        rng = np.random.default_rng(seed)
        kinds = np.unique(names.astype(str))
        held = np.isin(names, rng.choice(kinds, len(kinds) * 3 // 10, replace=False))
        order = rng.permutation(np.flatnonzero(held))
        place = np.array([int((names[order[:i]] == names[row]).sum()) for i, row in enumerate(order)])
        series = np.array([int((names[order] == names[row]).sum()) for row in order])
        measured, new = order[(series > 1) & (place % 2 == 0)], order[(series > 1) & (place % 2 == 1)]
        forest = RandomForest(n_estimators=40, features="morgan", n_bits=1024, threads=1, seed=seed)
        model = Model(forest.fit(table.take(np.flatnonzero(~held))), targets=table.targets)
        truth = table.y[new, 0]  # type: ignore[index]
        for name, share in (("corrected", 0.0 if off else None), ("plain", 0.0), ("difference", 1.0)):
            value = with_parents(model, table.take(measured), share).predict_table(table.take(new)).value[:, 0]
            errors[name].append(float(np.sqrt(np.mean((value - truth) ** 2))))
    ratios = [a / b for a, b in zip(errors["corrected"], errors["plain"], strict=True)]
    beside = {f"{name}, RMSE": each for name, each in errors.items()}
    effect("RMSE of new members / the model's alone", ratios, at_most=0.98, beside=beside)
