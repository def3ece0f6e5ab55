"""Linear functions whose slope is a power: columns enter one after the other, so that few are in."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LassoCV

from molgraph.auxiliary.depth_factorised import Problem, _descend, fit_deep
from molgraph.auxiliary.linear import Linear
from molgraph.base.contracts import Target
from molgraph.data.table import make_table
from tests.systems.effect import Effect
from tests.tiny import series

SYSTEM = "incremental-learning-depth-n-reparameter"


def sparse(seed: int, n: int = 80, p: int = 200) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Columns, labels with noise, the true slope, and which of its values are not 0."""
    rng = np.random.default_rng(seed)
    x, slope, true = rng.normal(size=(n, p)), np.zeros(p), np.sort(rng.choice(p, 5, replace=False))
    slope[true] = rng.choice([-1, 1], 5) * rng.uniform(1, 3, 5)
    return x, x @ slope + 0.5 * rng.normal(size=n), slope, true


def problem(x: np.ndarray, y: np.ndarray) -> Problem:
    return Problem(x, ((y - y.mean()) / y.std())[:, None], np.full(len(x), 1 / len(x)), "identity")


@pytest.mark.system(SYSTEM, rung="exact", twins=("depth 3",))
def test_a_depth_of_one_is_least_squares_of_the_smallest_norm(off: str) -> None:
    x, y, _, _ = sparse(1, n=30, p=60)
    x = x - x.mean(0)
    slope, height, _, _ = _descend(problem(x, y), 3 if off else 1, 20_000)
    expected = np.linalg.lstsq(x, (y - y.mean()) / y.std(), rcond=None)[0]
    np.testing.assert_allclose(slope[:, 0], expected, atol=1e-5)
    assert abs(height[0]) < 1e-6


@pytest.mark.system(SYSTEM, rung="exact", twins=("depth 1",))
def test_columns_enter_in_phases(off: str) -> None:
    """``d slope / dt ~ slope^(2 - 2/N) (target - slope)``: the largest is in before the next one begins."""
    x = np.linalg.qr(np.random.default_rng(0).normal(size=(60, 4)))[0] * 60**0.5
    y = x @ np.array([1.0, -0.5, 0.25, 0.0])
    order = []
    for steps in range(0, 3000, 5):
        slope = np.abs(_descend(Problem(x, y[:, None], np.full(60, 1 / 60), "identity"), 1 if off else 3, steps)[0])
        before = len(order)
        order += [j for j in range(4) if slope[j, 0] > 0.5 * abs((1.0, -0.5, 0.25, 9)[j]) and j not in order]
        assert len(order) <= before + 1, "one at a time"
        if order == [0]:
            assert slope[2, 0] < 0.05, "the third has not begun"
        if len(order) == 3:
            break
    assert order == [0, 1, 2]


@pytest.mark.system(SYSTEM, rung="works", twins=("depth 1",))
def test_few_columns_of_many_are_found_from_few_rows(off: str, effect: Effect) -> None:
    """Gissin et al. 2020, section 5: depth 3 beside the least squares of the smallest norm, and lasso."""
    own, lasso = [], []
    for seed in (4, 5, 6):
        x, y, slope, true = sparse(seed)
        one = np.linalg.lstsq(x, y - y.mean(), rcond=None)[0]
        fit = fit_deep(problem(x, y), 3)
        found = one if off else fit.slope[:, 0] * y.std()
        assert off or [*np.sort(fit.order[:5])] == [*true], "the true columns enter first"
        best = LassoCV(cv=5).fit(x, y).coef_
        errors = [float(np.square(each - slope).sum()) for each in (found, one, best)]  # of standard normal columns
        own.append(errors[0] / errors[1])
        lasso.append(errors[2] / errors[1])
        assert off or errors[0] < 2 * errors[2], "within twice the lasso's"
    effect("error / that of depth 1", own, at_most=0.2, beside={"lasso": lasso})


def test_linear_names_the_columns_in_order_and_learns_classes() -> None:
    rng = np.random.default_rng(0)
    features = rng.normal(size=(60, 8))
    size = 3 * features[:, 2] - features[:, 5] + 0.1 * rng.normal(size=60)
    y = np.column_stack([size, features[:, 1] > 0, np.digitize(features[:, 7], [-0.5, 0.5])]).astype(float)
    targets = (Target("a"), Target("b", "binary"), Target("c", "multiclass", classes=("x", "y", "z")))
    names = tuple(f"f{j}" for j in range(8))
    table = make_table(list(series(60).smiles), targets=targets, y=y, features=features, feature_names=names)
    model = Linear(depth=3, features="vectors").fit(table)
    assert [note.split("entry ")[1].split(",")[0] for note in model.notes] == ["f2", "f1", "f7"]
    found = model.predict(table).value
    assert np.corrcoef(found[:, 0], size)[0, 1] > 0.99
    assert ((found[:, 1] > 0.5) == y[:, 1]).mean() > 0.9 and (found[:, 2:].argmax(1) == y[:, 2]).mean() > 0.7
