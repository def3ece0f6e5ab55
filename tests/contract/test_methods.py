"""What every registered method must do, whoever wrote it; trials of shared code have the members of ``members.py``."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import molgraph
import molgraph.auxiliary
import molgraph.models
import molgraph.trust
from molgraph.base import errors, registry
from molgraph.base.contracts import Method, State, Target
from molgraph.base.optional import EXTRAS
from molgraph.data.labels import check_targets
from molgraph.data.read import read_table
from molgraph.data.table import Table, make_table
from molgraph.train.inputs import example_table, trial_inputs
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.modelwriter import plain
from tests.contract.members import standing, two_of
from tests.tiny import mixed, series

# All encoders are trained by one method: two stand for it here, the others have one trial below and test_encoders.py.
HOLD_BACK = {name for name in registry.names("wrapper") if name not in two_of("Wrapper")}  # more rows than here
NAMES = sorted({*registry.names("method"), *two_of("GraphMethod")} - {"graph"} - HOLD_BACK)
SHARED = sorted({*standing("method"), *two_of("GraphMethod")} - {"graph"})
KINDS = {
    "regression": Target("y"),
    "binary": Target("y", "binary"),
    "multiclass": Target("y", "multiclass", classes=("a", "b", "c")),
}


def quick(name: str) -> Method:
    """A method that fits in a blink."""
    return make_method(name, **small(name))


def small(name: str) -> dict[str, Any]:
    """The hyper-parameters that its class names for trials; an encoder's beside those of its training."""
    if name in registry.names("method"):
        return dict(registry.get("method", name).small)
    return {**registry.get("method", "graph").small, **registry.get("encoder", name).small}


def labelled(kind: str, n: int = 32) -> Table:
    """Rows of the built-in series with labels of a kind."""
    table = series(n)
    y = table.y if kind == "regression" else np.arange(n)[:, None] % (2 if kind == "binary" else 3)
    return make_table(list(table.smiles), targets=(KINDS[kind],), y=y)


def readable(table: Table, name: str) -> Table:
    """The table, or one of as many examples of what an encoder reads instead of molecules."""
    encoder = registry.get("encoder", name) if name in registry.names("encoder") else None
    if encoder is None or "molecule" in encoder.reads:
        return table
    return replace(table, entities=example_table(trial_inputs(name), (), len(table)).entities)


@pytest.fixture(scope="module")
def nasty(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """Every nasty molecule."""
    lines = (Path(__file__).parent.parent / "nasty.tsv").read_text(encoding="utf-8").splitlines()[1:]
    return make_table([line.split("\t")[0] for line in lines])


@pytest.fixture(scope="module", params=NAMES)
def fitted(request: pytest.FixtureRequest) -> Method:
    """Each method, fitted once."""
    return quick(request.param).fit(labelled("regression"))


def test_one_row_out_for_each_row_in(fitted, nasty):
    found = fitted.predict(nasty)
    assert list(found.ids) == list(nasty.ids) and found.value.shape == (len(nasty), 1)
    assert np.isfinite(found.value[found.ok]).all(), "a readable molecule has a value"
    assert np.isnan(found.value[~found.ok]).all(), "an unreadable one has none"
    assert all(found.reason[~found.ok]) and not any(found.reason[found.ok])
    assert found.ok.any() and not found.ok.all()
    assert not any("\n" in reason for reason in found.reason)
    everything_bad = fitted.predict(make_table(["oops", None]))
    assert np.isnan(everything_bad.value).all() and list(everything_bad.status) == ["unreadable", "missing"]
    assert len(fitted.predict(make_table([]))) == 0


@pytest.mark.slow
def test_state_and_back_gives_the_same_answers(fitted, nasty):
    state = fitted.state()
    meta = json.loads(json.dumps(plain(state.meta), allow_nan=False))
    assert all(isinstance(a, np.ndarray) and a.dtype != object for a in state.arrays.values())
    again = type(fitted).from_state(State(dict(state.arrays), meta))
    a, b = fitted.predict(nasty), again.predict(nasty)
    assert a.value.tobytes() == b.value.tobytes() and list(a.reason) == list(b.reason)
    assert (a.spread is None) == (b.spread is None)


@pytest.mark.slow
def test_model_file_and_back(fitted, nasty, tmp_path):
    model = Model(fitted, targets=(Target("y"),))
    path = model.save(tmp_path / "model.mgm")
    assert verify(path).largest_gap == 0
    again = load_model(path)
    assert again.predict_table(nasty).value.tobytes() == model.predict_table(nasty).value.tobytes()
    assert again.save(tmp_path / "again.mgm").read_bytes() == path.read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_what_a_method_needs_it_says(name, monkeypatch):
    method, table = quick(name), labelled("regression")
    for library in {*EXTRAS, "deepchem"}:
        monkeypatch.setitem(sys.modules, library, None)  # as where it is not installed
    if not method.needs:
        method.fit(table)
    for library in method.needs:
        with pytest.raises(errors.NotInstalledError, match=f"{library}.*\n.*pip install"):
            method.fit(table)


@pytest.mark.parametrize("threads", [0, -1, 1.5, "two", True])
@pytest.mark.parametrize("name", SHARED)
def test_threads_that_cannot_be_are_refused(name, threads):
    method = quick(name)
    inner = getattr(method, "params", None)
    if "threads" in method.param_names():
        method.set_params(threads=threads)
    elif inner is not None:
        method.set_params(params={**inner, "threads": threads})
    else:
        pytest.skip(f"{name} uses one thread")
    with pytest.raises(errors.BadValueError, match="threads is"):
        method.fit(labelled("regression"))


def test_state_with_a_part_missing_or_odd_is_refused(fitted):
    state = fitted.state()
    for name in (each for each in state.arrays if not each.endswith("measured")):  # which older files lack
        fewer = {k: v for k, v in state.arrays.items() if k != name}
        with pytest.raises(errors.DamagedModelError):
            type(fitted).from_state(State(fewer, state.meta))
    for key in ("targets", "params"):
        if state.meta.get(key):
            with pytest.raises(errors.DamagedModelError):
                type(fitted).from_state(State(state.arrays, {k: v for k, v in state.meta.items() if k != key}))
    with pytest.raises(errors.DamagedModelError):
        type(fitted).from_state(State({}, {}))


def test_numbers_that_are_not_finite_are_never_a_value(fitted):
    state = fitted.state()
    floats = [name for name, array in state.arrays.items() if array.dtype.kind == "f" and array.size]
    for name in floats[:: max(len(floats) // 6, 1)]:
        for wrong in (np.nan, np.inf):
            with pytest.raises(errors.MolgraphError, match="not finite"):
                State({**state.arrays, name: np.full_like(state.arrays[name], wrong)}, state.meta)
        huge = state.arrays[name] * np.array(np.finfo(state.arrays[name].dtype).max * 1e-8, state.arrays[name].dtype)
        try:
            method = type(fitted).from_state(State({**state.arrays, name: huge}, state.meta))
        except errors.MolgraphError:
            continue
        with np.errstate(all="ignore"):
            found = method.predict(series(8))
        assert (np.abs(found.value[found.ok]) <= np.finfo(np.float32).max).all()
        assert not np.isfinite(found.value[~found.ok]).any() and all(found.reason[~found.ok])


def test_order_and_company_do_not_matter(fitted):
    table = series(20, 300)
    found = fitted.predict(table).value
    order = np.random.default_rng(0).permutation(20)
    np.testing.assert_allclose(fitted.predict(table.take(order)).value, found[order], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(fitted.predict(table.take(np.arange(1))).value, found[:1], rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", ["binary", "multiclass"])
def test_classes_have_probabilities(name, kind):
    table = labelled(kind)
    found = quick(name).fit(table).predict(table)
    assert found.columns == KINDS[kind].columns
    assert ((found.value >= 0) & (found.value <= 1)).all()
    if kind == "multiclass":
        np.testing.assert_allclose(found.value.sum(axis=1), 1, atol=1e-6)


@pytest.mark.parametrize("name", sorted({*registry.names("encoder")} - {*NAMES}))
def test_an_encoder_is_trained_kept_and_read_back(name, tmp_path):
    """What the other trials ask of two encoders, for each of the others in one fit."""
    table = readable(mixed(24), name)
    method, again = (quick(name).fit(table) for _ in range(2))
    found = method.predict(table)
    assert np.isfinite(found.value[found.ok]).all() and np.isnan(found.value[~found.ok]).all() and found.ok.sum() >= 20
    assert found.value.tobytes() == again.predict(table).value.tobytes(), "the same seed gives the same answers"
    assert found.columns == ("a", "b", "c:x", "c:y", "c:z") and all(found.reason[~found.ok])
    path = Model(method, targets=table.row_targets, feature_names=table.feature_names).save(tmp_path / "model.mgm")
    assert verify(path).largest_gap == 0
    assert load_model(path).method.predict(table).value.tobytes() == found.value.tobytes()


@pytest.mark.parametrize("name", NAMES)
def test_same_seed_same_answers(name):
    table = labelled("regression")
    a, b = (quick(name).fit(table).predict(table).value for _ in range(2))
    assert a.tobytes() == b.tobytes()


@pytest.mark.slow
@pytest.mark.parametrize("name", SHARED)
def test_several_targets_missing_labels_weights_features_and_bad_rows(name):
    table = mixed()
    found = quick(name).fit(table, mixed(seed=1)).predict(table)
    assert found.columns == ("a", "b", "c:x", "c:y", "c:z")
    assert (found.status == "ok").tolist() == [i not in (3, 5, 7) for i in range(len(table))]
    assert found.reason[5] == "no finite value in the descriptor column 'f'"
    assert np.isfinite(found.value[found.ok]).all() and np.isnan(found.value[~found.ok]).all()


UNLEARNABLE = {
    "all NaN": ("regression", [np.nan] * 8),
    "infinite": ("regression", [1, np.inf, 2, -np.inf, 3, 1, 2, 3]),
    "constant": ("regression", [2.5] * 8),
    "one value": ("regression", [2.5] + [np.nan] * 7),
    "labels 0/1/2 as binary": ("binary", [0, 1, 2, 0] * 2),
    "one class alone": ("binary", [1] * 8),
    "one class of three": ("multiclass", [1] * 8),
    "a class code too high": ("multiclass", [0, 1, 2, 3] * 2),
}


@pytest.mark.parametrize("fault", UNLEARNABLE)
@pytest.mark.parametrize("name", [*SHARED, None])
def test_targets_that_cannot_be_learned_are_refused_in_the_same_words(name, fault):
    kind, y = UNLEARNABLE[fault]
    table = make_table(list(series(8).smiles), targets=(KINDS[kind],), y=y)
    with pytest.raises(errors.DataError) as expected:
        check_targets(table)
    with pytest.raises(type(expected.value)) as found:
        molgraph.train(table, split="random", epochs=1) if name is None else quick(name).fit(table)
    assert str(found.value) == str(expected.value)


@pytest.mark.parametrize("name", SHARED)
def test_nothing_to_learn_from_is_refused_in_the_same_words(name):
    bad = make_table(["oops", "", None], targets=(Target("y"),), y=[1, 2, 3])
    with pytest.raises(errors.EmptyError, match="3 rows") as found:
        quick(name).fit(bad)
    with pytest.raises(errors.EmptyError) as expected:
        quick("mean").fit(bad)
    assert str(found.value) == str(expected.value)
    with pytest.raises(errors.LabelError, match="no target"):
        quick(name).fit(series(8).with_targets([]))
    with pytest.raises(errors.NotFittedError):
        quick(name).predict(series(3))


@pytest.mark.parametrize("name", SHARED)
def test_infinite_labels_of_rows_that_cannot_be_read_do_not_matter(name):
    y = [1, np.inf, 2, 3]
    table = make_table(["CCO", "oops", "CCN", "CCC"], targets=(Target("y"),), y=y)
    assert np.isfinite(quick(name).fit(table).predict(table).value[[0, 2, 3]]).all()


@pytest.mark.parametrize("name", NAMES)
def test_two_rows_give_a_result(name):
    table = make_table(["CCO", "CCCl"], targets=(Target("y"),), y=[2, 3])
    found = quick(name).fit(table).predict(table).value
    assert ((found > 1) & (found < 4)).all()


@pytest.mark.parametrize("name", NAMES)
def test_parameters_by_name(name):
    method = quick(name)
    copy = clone(method)
    assert copy.get_params() == method.get_params() and copy is not method
    with pytest.raises(errors.UnknownNameError, match="no_such_parameter"):
        make_method(name, no_such_parameter=1)
    with pytest.raises(errors.UnknownNameError, match="no_such_parameter"):
        method.set_params(no_such_parameter=1)


@pytest.mark.parametrize("name", SHARED)
def test_the_reader_feeds_every_method(name, tmp_path):
    (tmp_path / "a.csv").write_text("smiles,y\nCCO,1\nCCN,2\noops,3\nCCC,\n")
    table = read_table(tmp_path / "a.csv", targets=["y"])
    assert len(quick(name).fit(table).predict(table)) == 4
