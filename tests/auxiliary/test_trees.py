"""Flat trees against scikit-learn, and against arrays that a stranger might send."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.ensemble import RandomForestClassifier, RandomForestRegressor

from molgraph.auxiliary.random_forest import nodes_of_sklearn
from molgraph.auxiliary.tabular import StoredTarget
from molgraph.auxiliary.tabular import trees as trees_module
from molgraph.auxiliary.tabular.trees import MeanOfTrees
from molgraph.base.contracts import Target
from molgraph.base.errors import DamagedModelError, ModelFileError
from molgraph.train.archive import refused


def _flat(forest: RandomForestRegressor | RandomForestClassifier, columns: Sequence[int] = (0,)) -> MeanOfTrees:
    """The trees of a fitted forest; ``columns`` of its classes."""
    nodes = [nodes_of_sklearn(each.tree_, columns, max(columns) + 1) for each in forest.estimators_]
    return MeanOfTrees.from_nodes(Target("y"), nodes, forest.n_features_in_)


def _load(arrays: Mapping[str, np.ndarray], width: int) -> MeanOfTrees:
    with refused("the forest is not whole"):
        return MeanOfTrees.load(StoredTarget(Target("y"), arrays, width))


def _data(seed: int, n: int = 150, graded: int = 4, bits: int = 20) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    x = np.concatenate([rng.random((n, bits)) < 0.3, rng.normal(size=(n, graded)).round(2)], axis=1).astype(np.float32)
    return x, x[:, 0] * 2 + x[:, -1] + rng.normal(size=n) * 0.1


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), n=st.integers(1, 80), leaf=st.integers(1, 5))
def test_regression_is_scikit_learns(seed: int, n: int, leaf: int) -> None:
    x, y = _data(seed, n)
    forest = RandomForestRegressor(8, min_samples_leaf=leaf, random_state=seed).fit(x, y)
    own = _flat(forest)
    fresh, _ = _data(seed + 1, 60)
    for rows in (x, fresh):  # the training rows stand next to the thresholds
        np.testing.assert_allclose(own.mean(rows)[:, 0], forest.predict(rows), rtol=1e-12, atol=1e-12)


def test_values_on_a_threshold_go_where_scikit_learn_sends_them() -> None:
    x, y = _data(0)
    forest = RandomForestRegressor(20, random_state=0).fit(x, y)
    own = _flat(forest)
    rows = np.repeat(x[:1], len(own.left), axis=0)
    rows[np.arange(len(rows)), own.feature] = own.threshold.astype(np.float32)  # rounded to above, at or below
    np.testing.assert_allclose(own.mean(rows)[:, 0], forest.predict(rows), rtol=1e-12)


def test_classes_are_scikit_learns_and_absent_ones_have_no_share() -> None:
    x, y = _data(1)
    labels = np.digitize(y, [0.5, 1.5]) * 2  # classes 0, 2, 4 of 5
    forest = RandomForestClassifier(15, random_state=0).fit(x, labels)
    own = _flat(forest, [*forest.classes_])
    found = own.mean(x)
    np.testing.assert_allclose(found[:, [0, 2, 4]], forest.predict_proba(x), rtol=1e-12, atol=1e-15)
    assert not found[:, [1, 3]].any()


def test_a_rows_prediction_does_not_depend_on_its_company(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = _data(2)
    own = _flat(RandomForestRegressor(60, random_state=0).fit(x, y))
    whole = own.mean(x)
    for pairs in (1, 60 * 7, 60 * 64):
        monkeypatch.setattr(trees_module, "PAIRS", pairs)
        np.testing.assert_array_equal(own.mean(x), whole)
    np.testing.assert_array_equal(np.concatenate([own.mean(x[i : i + 1]) for i in range(len(x))]), whole)


def test_arrays_round_trip_to_the_bit_and_no_rows_are_no_rows() -> None:
    x, y = _data(3)
    own = _flat(RandomForestRegressor(5, random_state=0).fit(x, y))
    again = _load(own.arrays(), x.shape[1])
    np.testing.assert_array_equal(again.mean(x), own.mean(x))
    assert own.mean(x[:0]).shape == (0, 1)


def _stump() -> dict[str, np.ndarray]:
    return {
        "offsets": np.array([0, 3, 4]),
        "left": np.array([1, 0, 0, 0], np.int32),
        "feature": np.array([1, 0, 0, 0], np.int32),
        "threshold": np.array([0.5, 0.0, 0.0, 0.0]),
        "value": np.array([[0.0], [1.0], [2.0], [10.0]]),
    }


def test_a_hand_made_forest_is_walked_as_it_reads() -> None:
    own = _load(_stump(), 2)
    assert own.mean(np.array([[9, 0.5], [9, 0.6]], np.float32)).ravel().tolist() == [5.5, 6.0]


def _set(name: str, at: int, value: float) -> Callable[[dict[str, np.ndarray]], None]:
    def change(arrays: dict[str, np.ndarray]) -> None:
        arrays[name].flat[at] = value

    return change


BREAKS: dict[str, Callable[[dict[str, np.ndarray]], object]] = {
    "a child beyond its tree": _set("left", 0, 2),
    "a child beyond every tree": _set("left", 0, 2**31 - 1),
    "a negative child": _set("left", 0, -1),
    "a child in the next tree": _set("left", 1, 2),
    "a column beyond the width": _set("feature", 0, 2),
    "a negative column": _set("feature", 0, -1),
    "a threshold that is NaN": _set("threshold", 0, np.nan),
    "an infinite leaf": _set("value", 2, np.inf),
    "offsets that start late": _set("offsets", 0, 1),
    "offsets that end early": _set("offsets", 2, 3),
    "an empty tree": _set("offsets", 1, 4),
    "an array that is missing": lambda a: a.pop("left"),
    "arrays of other lengths": lambda a: a.update(feature=a["feature"][:-1]),
    "text for numbers": lambda a: a.update(left=np.array(["a"] * 4)),
    "floats for children": lambda a: a.update(left=a["left"].astype(float)),
    "no tree": lambda a: a.update(offsets=np.array([0])),
    "no column of values": lambda a: a.update(value=np.zeros((4, 0))),
    "values in one dimension": lambda a: a.update(value=np.zeros(4)),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_broken_forest_is_refused(name: str) -> None:
    arrays = _stump()
    BREAKS[name](arrays)
    with pytest.raises(DamagedModelError):
        _load(arrays, 2)


def test_a_tree_that_points_back_is_refused() -> None:
    arrays = _stump()
    arrays["offsets"] = np.array([0, 4])
    arrays["left"] = np.array([1, 0, 1, 0], np.int32)  # node 2 back to node 1
    with pytest.raises(DamagedModelError, match="outside itself"):
        _load(arrays, 2)


@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_whatever_arrays_are_accepted_can_be_walked(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 12))
    small = st.lists(st.integers(-1, n), min_size=n, max_size=n)
    arrays = {
        "offsets": np.array([0, *sorted(data.draw(st.lists(st.integers(1, n), max_size=2))), n]),
        "left": np.array(data.draw(small), np.int32),
        "feature": np.array(data.draw(small), np.int32),
        "threshold": np.zeros(n),
        "value": np.ones((n, 1)),
    }
    try:
        own = _load(arrays, 3)
    except ModelFileError:
        return
    leaves = own.mean(np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32))
    np.testing.assert_array_equal(leaves, np.ones((5, 1)))
