"""The study of optimisers: rows on which Adagrad answers 1 always, and trainings by hand at each best rate."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import molgraph
from molgraph.auxiliary.study.optimisers import OptimisersStudy, adagrad, construction
from molgraph.base.errors import BadValueError
from molgraph.base.seeds import derive
from molgraph.study.grid_fits import fitted_with, random_parts
from molgraph.study.study import Subject
from tests.systems.effect import Effect
from tests.tiny import series

GIN = "gin(depth=2, d_hidden=8, head_width=8)"


@pytest.mark.system("adaptive-method-generalisation-gap", rung="exact")
def test_adaptive_steps_go_along_the_signs_and_gradient_descent_to_the_smallest_norm(off: str) -> None:
    """X sign(X'y) = 4 y, Adagrad's cosine with sign(X'y) above 0.99; off: gradient descent in its place."""
    x, y, x_test, y_test = construction(np.random.default_rng(1), 200, 1000)
    signs = np.sign(x.T @ y)
    np.testing.assert_allclose(x @ signs, 4 * y)
    smallest = x.T @ np.linalg.solve(x @ x.T, y)
    w = smallest if off else adagrad(x, y)
    assert w @ signs / np.linalg.norm(w) / np.linalg.norm(signs) > 0.99
    assert np.mean(np.sign(x_test @ smallest) != y_test) == 0
    np.testing.assert_allclose(np.mean(np.sign(x_test @ signs) != y_test), np.mean(y_test < 0))
    a, b = torch.from_numpy(x), torch.from_numpy(y)
    v = torch.zeros(x.shape[1], dtype=torch.float64)
    for _ in range(3000):
        v -= 1e-3 * a.T @ (a @ v - b)
    np.testing.assert_allclose(v.numpy(), smallest, atol=1e-3)


@pytest.mark.system("adaptive-method-generalisation-gap", rung="exact")
def test_each_optimiser_is_compared_at_its_own_best_rate(off: str) -> None:
    """Of trainings by hand, chosen by validation error; off: one rate."""
    study = OptimisersStudy(optimizers="adam+sgd", rates=1 if off else 2, repeats=2, epochs=2, rows=80)
    subject = Subject(series(100), GIN)
    found = study.run(subject, seed=6)
    assert found.sound and b"<svg" in found.draw("svg"), repr(found)
    parts = random_parts(subject, 80, 40, 6)
    for row, middle in zip(found.frame.itertuples(), (2e-3, 2e-2), strict=True):
        errors = []
        for rate in (middle / 2, middle * 2):
            fits = [
                fitted_with(subject, parts, derive(6, "fit", k), optimizer=row.optimizer, learning_rate=rate, epochs=2)
                for k in (0, 1)
            ]
            own = [[parts.error(fit, table) for table in (parts.valid, parts.test)] for fit in fits]
            errors.append((*np.mean(own, axis=0), rate))
        np.testing.assert_allclose((row.valid_error, row.test_error, row.best_rate), min(errors), rtol=1e-9)


@pytest.mark.system("adaptive-method-generalisation-gap", rung="works")
def test_adagrad_answers_worse_than_gradient_descent_on_rows_of_the_construction(off: str, effect: Effect) -> None:
    """Test errors; off: gradient descent twice."""
    gaps, beside = [], {"adagrad": [], "smallest norm": []}
    for seed in range(5):
        x, y, x_test, y_test = construction(np.random.default_rng(seed), 200, 1000)
        smallest = x.T @ np.linalg.solve(x @ x.T, y)
        both = [float(np.mean(np.sign(x_test @ w) != y_test)) for w in (smallest if off else adagrad(x, y), smallest)]
        beside["adagrad"].append(both[0]), beside["smallest norm"].append(both[1])
        gaps.append(both[0] - both[1])
    effect("test error of Adagrad less that of gradient descent", gaps, at_least=0.3, beside=beside)


def test_one_optimiser_is_refused() -> None:
    with pytest.raises(BadValueError, match="one optimiser"):
        molgraph.study("optimisers(optimizers=adam)", series(60), model=GIN)
