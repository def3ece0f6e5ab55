"""Ensembles: the members' mean and spread, seeds of their own, and a resume member by member."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from molgraph.auxiliary.random_forest import RandomForest
from molgraph.base.contracts import State
from molgraph.base.errors import BadValueError, DamagedModelError
from molgraph.train.method import GraphMethod
from molgraph.trust.ensemble import Ensemble
from tests.tiny import same_bits, series, weights_of

PARAMS = {"d_hidden": 8, "head_width": 8, "epochs": 2, "batch_size": 16}


@pytest.fixture(scope="module")
def ensemble() -> Ensemble:
    return Ensemble("dmpnn", n=3, params=PARAMS).fit(series(48))


def test_mean_and_spread_are_the_members(ensemble):
    table = series(20, 100)
    found = ensemble.predict(table)
    alone = np.stack([member.predict(table).value for member in ensemble.members])
    np.testing.assert_array_equal(found.value, alone.mean(axis=0))
    np.testing.assert_array_equal(found.spread, alone.std(axis=0))
    assert (found.spread > 0).all()


def test_members_differ_and_do_not_depend_on_their_number(ensemble):
    a, b, c = (weights_of(m) for m in ensemble.members)
    assert not same_bits(a, b) and not same_bits(b, c)
    fewer = Ensemble("dmpnn", n=2, params=PARAMS).fit(series(48))
    assert same_bits(weights_of(fewer.members[1]), b)


def test_learning_curves_are_the_members(ensemble):
    curves = ensemble.curves
    for i, member in enumerate(ensemble.fitted):
        own = curves[curves["member"] == i].drop(columns="member").reset_index(drop=True)
        pd.testing.assert_frame_equal(own, member.curves)
    assert len(curves) == sum(len(member.curves) for member in ensemble.fitted)


def test_a_row_without_value_has_no_spread_either(ensemble):
    from molgraph.data.table import make_table

    found = ensemble.predict(make_table(["CCO", "oops"]))
    assert np.isnan(found.spread[1]).all() and np.isfinite(found.spread[0]).all()


def test_members_that_are_done_are_not_fitted_again(tmp_path, monkeypatch):
    whole = Ensemble("dmpnn", n=3, params=PARAMS).fit(series(48))
    real, calls = GraphMethod.fit, []

    def stop_at_the_third(self, *args, **kwargs):
        calls.append(self.seed)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return real(self, *args, **kwargs)

    monkeypatch.setattr(GraphMethod, "fit", stop_at_the_third)
    with pytest.raises(KeyboardInterrupt):
        Ensemble("dmpnn", n=3, params=PARAMS).fit(series(48), workdir=tmp_path)
    monkeypatch.setattr(GraphMethod, "fit", real)
    stamps = {p: p.stat().st_mtime_ns for p in tmp_path.glob("*/training.ckpt")}
    assert len(stamps) == 2
    again = Ensemble("dmpnn", n=3, params=PARAMS).fit(series(48), workdir=tmp_path)
    assert {p: p.stat().st_mtime_ns for p in stamps} == stamps, "finished checkpoints are read, not written"
    for a, b in zip(whole.members, again.members, strict=True):
        assert same_bits(weights_of(a), weights_of(b))


def test_forests_too():
    forests = Ensemble("random_forest", n=2, params={"n_estimators": 5, "n_bits": 128}).fit(series(40))
    assert all(isinstance(m, RandomForest) for m in forests.members)
    again = Ensemble.from_state(forests.state())
    table = series(10, 60)
    assert again.predict(table).value.tobytes() == forests.predict(table).value.tobytes()


def test_members_run_with_the_threads_and_the_store_that_it_was_given(tmp_path):
    store = str(tmp_path / "kept")
    asked = {"n": 2, "threads": 1, "store": store}
    given = Ensemble("random_forest", params={"n_estimators": 2, "n_bits": 128}, **asked).fit(series(24))
    assert [(m.threads, m.store) for m in given.members] == [(1, store)] * 2 and list((tmp_path / "kept").iterdir())
    own = Ensemble("random_forest", params={"threads": 2}, **asked)
    assert [(m.threads, m.store) for m in own.members] == [(2, store)] * 2
    assert store not in repr(given.state().meta["params"]), "no path of this machine in a model file"


@pytest.mark.parametrize("n", [0, -1, 1.5, 10_000])
def test_absurd_sizes(n):
    with pytest.raises(BadValueError, match=f"n is {n}"):
        Ensemble("dmpnn", n=n).fit(series(8))


def test_hostile_states(ensemble):
    state = ensemble.state()
    for change in (
        {"members": []},
        {"members": [1]},
        {"members": list(state.meta["members"]) * 400},
        {"member": "ensemble"},
        {"member": "os"},
    ):
        with pytest.raises(DamagedModelError):
            Ensemble.from_state(State(state.arrays, dict(state.meta) | change))
