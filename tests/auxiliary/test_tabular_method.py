"""A tabular method needs its parameters, its features and the fit of one target; the rest is inherited."""

from __future__ import annotations

import pickle
from dataclasses import dataclass
from typing import Self

import numpy as np
import pytest

from molgraph.auxiliary.tabular import StoredTarget, TabularMethod, TargetData, TargetModel, TargetPrediction
from molgraph.auxiliary.tabular.features import Features
from molgraph.base.contracts import State, Target
from molgraph.base.errors import BadValueError, DamagedModelError, NotFittedError
from molgraph.data.table import make_table
from tests.tiny import mixed, series


@dataclass(frozen=True)
class Mean(TargetModel):
    """The mean of each column of a target, for every molecule."""

    level: np.ndarray

    def predict(self, x: np.ndarray) -> TargetPrediction:
        return TargetPrediction(np.tile(self.level, (len(x), 1)))

    @classmethod
    def load(cls, stored: StoredTarget) -> Self:
        return cls(stored.array("level", len(stored.target.columns)))


class Shrunk(TabularMethod):
    """The mean, shrunk towards 0."""

    name = "shrunk"
    target_model = Mean

    def __init__(self, shrink: float = 1.0, n_bits: int = 64) -> None:
        self.shrink, self.n_bits = shrink, n_bits

    def check_params(self) -> None:
        if not self.shrink >= 0:
            raise BadValueError("shrink is negative")

    def feature_choice(self) -> Features:
        return Features("morgan", 2, self.n_bits)

    def fit_target(self, data: TargetData) -> Mean:
        y = (data.y[:, None] == np.arange(data.n_classes))[:, -len(data.target.columns) :] if data.n_classes else data.y
        return Mean(np.atleast_1d(y.mean(axis=0) * self.shrink))


def test_a_method_of_a_few_lines_fits_predicts_and_is_stored() -> None:
    table = mixed(60)
    method = Shrunk(shrink=1.0).fit(table)
    found = method.predict(table)
    assert found.columns == ("a", "b", "c:x", "c:y", "c:z") and not found.ok[3] and found.reason[3]
    np.testing.assert_allclose(found.value[0, 2:].sum(), 1)
    state = method.state()
    again = Shrunk.from_state(State(dict(state.arrays), state.meta))
    assert again.predict(table).value.tobytes() == found.value.tobytes() and again.get_params() == method.get_params()
    with pytest.raises(DamagedModelError, match="level"):
        Shrunk.from_state(State({k: v for k, v in state.arrays.items() if "level" not in k}, state.meta))
    with pytest.raises(BadValueError, match="shrink"):
        Shrunk(shrink=-1.0).fit(table)


def test_fit_changes_the_method_alone_and_a_fitted_one_can_be_pickled() -> None:
    table, method = series(24), Shrunk()
    with pytest.raises(NotFittedError):
        _ = method.fitted
    data = TargetData(Target("y"), np.zeros((2, 4)), np.array([1.0, 3.0]), None, np.arange(2))
    assert method.fit_target(data).level.tolist() == [2.0]
    with pytest.raises(NotFittedError):  # fitting a target leaves the method as it was
        _ = method.fitted
    method.fit(table)
    again = pickle.loads(pickle.dumps(method))
    assert again.predict(make_table(["CCO"])).value.tolist() == method.predict(make_table(["CCO"])).value.tolist()
