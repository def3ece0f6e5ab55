"""Conformal intervals: the quantile is exact, they cover fresh rows, and follow a spread where there is one."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.base.table import Table
from molgraph.data.table import make_table
from molgraph.train.make_method import make_method
from molgraph.trust.conformal import Conformal
from tests.tiny import series


def predicted(y: np.ndarray, spread: np.ndarray | None = None) -> tuple[Prediction, Table]:
    table = make_table(["C"] * len(y), targets=(Target("y"),), y=y)
    zero = np.zeros((len(y), 1))
    return Prediction(table.ids, table.targets, zero, table.status, table.reason, spread=spread), table


@pytest.mark.parametrize("n", [9, 10, 99, 250])
def test_the_width_is_the_quantile_of_vovk(n: int) -> None:
    """Of n errors the ceil((n + 1) coverage)-th smallest."""
    errors = np.random.default_rng(n).permutation(np.arange(1.0, n + 1))
    method = Conformal("mean", coverage=0.9)
    method.learned = method.learn(*predicted(errors))
    assert method.learned["width"][0] == np.ceil((n + 1) * 0.9)
    low, high = method.adjust(predicted(errors)[0]).interval
    assert (high == -low).all() and np.mean(errors <= high[:, 0]) >= 0.9


def test_coverage_of_fresh_rows_is_what_was_asked_for() -> None:
    """Mean over draws of the held-out rows; without the correction of n + 1 it would be below."""
    rng, covered = np.random.default_rng(0), []
    for _ in range(400):
        method = Conformal("mean", coverage=0.8)
        method.learned = method.learn(*predicted(rng.exponential(size=14)))
        covered.append(1 - np.exp(-method.learned["width"][0]))
    assert abs(np.mean(covered) - 0.8) < 4 * np.std(covered) / 20


def test_intervals_follow_a_spread() -> None:
    rng = np.random.default_rng(1)
    spread = rng.uniform(0.1, 3.0, size=(400, 1))
    y = spread[:, 0] * rng.standard_normal(400)
    method = Conformal("mean")
    method.learned = method.learn(*predicted(y, spread))
    low, high = method.adjust(predicted(y, spread)[0]).interval
    assert np.corrcoef((high - low)[:, 0], spread[:, 0])[0, 1] > 0.999


def test_a_model_in_a_model_trains_and_is_stored(tmp_path) -> None:
    """``conformal(ensemble(linear))``: the rows that are held out teach nobody."""
    table = series(60)
    method = make_method("conformal(ensemble(linear, n=2), coverage=0.8, split=random)").fit(table)
    rest, held = method.hold_out(table)
    assert method.title == "conformal of ensemble of 2 linear" and len(rest) + len(held) == 60
    member = make_method("linear").fit(rest)
    np.testing.assert_array_equal(method.members[0].members[0].predict(table).value, member.predict(table).value)
    again = Conformal.from_state(method.state()).predict(table)
    np.testing.assert_array_equal(again.interval[0], method.predict(table).interval[0])
    assert (again.interval[1] > again.value).all()


def test_training_options_reach_what_is_wrapped(tmp_path) -> None:
    how = {"split": "random", "baseline": False, "epochs": 1, "params": {"share": 0.3}}
    result = molgraph.train(series(120), model="conformal(gin(d_hidden=8))", **how)
    assert result.model.method.members[0].epochs == 1 and result.model.method.members[0].params == {"d_hidden": 8}
    made = molgraph.load(result.model.save(tmp_path / "m.mgm"))
    frame = made.predict(["CCO", "not a molecule"]).to_frame()
    name = made.targets[0].name
    assert frame[f"{name}_low"].isna().tolist() == frame[f"{name}_high"].isna().tolist() == [False, True]
    ensemble = molgraph.train(series(120), model="ensemble(gin(d_hidden=8), n=2)", **how | {"params": {}})
    assert [m.epochs for m in ensemble.model.method.members] == [1, 1]


def test_what_cannot_have_an_interval_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="numbers"):
        Conformal("mean").fit(make_table(["C", "CC"] * 9, targets=(Target("y", "binary"),), y=[0.0, 1.0] * 9))
    with pytest.raises(LabelError, match=r"0\.99"):
        Conformal("linear", coverage=0.99, split="random").fit(series(40))


def test_classes_beside_numbers_have_no_interval() -> None:
    table = make_table([f"{'C' * i}O" for i in range(1, 61)], targets=(Target("y"), Target("c", "binary")))
    y = np.stack([np.arange(60.0), np.arange(60) % 2], axis=1)
    method = Conformal("random_forest", split="random", params={"n_estimators": 3, "n_bits": 64}).fit(
        replace(table, y=y)
    )
    low, high = Conformal.from_state(method.state()).predict(table).interval
    assert (low[:, 0] < high[:, 0]).all() and np.isnan(low[:, 1]).all() and np.isnan(high[:, 1]).all()
