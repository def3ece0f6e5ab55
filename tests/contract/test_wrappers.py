"""Trials of every wrapper: it is a method over any method, keeps rows in order, and is stored with all parts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from molgraph.base.registry import get, names
from molgraph.data.table import make_table
from molgraph.train.make_method import make_method
from tests.tiny import series


def small(name: str, method: str) -> Any:
    """The wrapper at its trial's settings around another method."""
    settings = {**get("wrapper", name).small, "method": method, "params": {}}
    return get("wrapper", name)(**settings)


@pytest.mark.parametrize("name", names("wrapper"))
class TestEveryWrapper:
    @pytest.mark.parametrize("method", ["linear", "random_forest(n_estimators=3, n_bits=64)"])
    def test_wraps_any_method_and_is_stored_with_it(self, name: str, method: str) -> None:
        made = small(name, method).fit(series(60))
        rows = make_table(["CCO", "not a molecule", "c1ccccc1O"])
        found = made.predict(rows)
        assert found.status.tolist() == ["ok", "unreadable", "ok"] and np.isfinite(found.value[[0, 2]]).all()
        again = type(made).from_state(made.state()).predict(rows)
        for one, two in ((found.value, again.value), (found.spread, again.spread), (found.interval, again.interval)):
            assert (one is None) == (two is None)
            np.testing.assert_array_equal(np.asarray(one, dtype=float), np.asarray(two, dtype=float))

    def test_the_same_seed_gives_the_same_predictions(self, name: str) -> None:
        rows = series(10, 100)
        one, two = (small(name, "random_forest(n_estimators=3, n_bits=64)").fit(series(60)).predict(rows) for _ in "ab")
        np.testing.assert_array_equal(one.value, two.value)

    def test_a_wrapper_in_a_wrapper(self, name: str) -> None:
        made = make_method("ensemble", method=f"{name}(linear)", n=2).fit(series(80))
        assert made.title.endswith("linear") and len(made.predict(series(5, 100))) == 5
        assert name in names("method"), "a wrapper is a method: the model of `molgraph train -m`"
