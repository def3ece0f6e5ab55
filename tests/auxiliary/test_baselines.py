"""The forest and the mean as methods: what they learn, what they refuse, what survives a file."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from molgraph.auxiliary.mean import MeanPredictor
from molgraph.auxiliary.random_forest import RandomForest
from molgraph.auxiliary.tabular.features import Features
from molgraph.base.contracts import Method, State, Target
from molgraph.base.errors import (
    BadValueError,
    DamagedModelError,
    LabelError,
    MissingColumnError,
    ModelFileError,
    NotFittedError,
    UnknownNameError,
)
from molgraph.base.seeds import derive
from molgraph.data.table import Table, make_table

SMILES = ["C" * (i % 9 + 1) + tail for i, tail in enumerate(["", "O", "N", "c1ccccc1", "C(=O)O", "Cl", "F", "Br"] * 6)]
SIZE = np.array([float(len(s)) for s in SMILES])
NAN = float("nan")


def _table(*, kind: str = "regression", smiles: list[str] = SMILES, **columns: object) -> Table:
    y = {"regression": SIZE, "binary": SIZE > 7, "multiclass": np.digitize(SIZE, [5, 9])}[kind].astype(float)
    classes = ("small", "middle", "large") if kind == "multiclass" else ()
    return make_table(smiles, targets=(Target("y", kind, classes=classes),), y=y, **columns)  # type: ignore[arg-type]


def _forest(**params: object) -> RandomForest:
    return RandomForest(**{"n_estimators": 20, "n_bits": 256, "threads": 1, **params})  # type: ignore[arg-type]


def _through_a_file(method: Method) -> Method:
    """A state as a model file keeps it: arrays, and JSON."""
    state = method.state()
    arrays = {name: np.array(value) for name, value in state.arrays.items()}
    return type(method).from_state(State(arrays, json.loads(json.dumps(state.meta))))


@pytest.mark.parametrize("kind", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_a_saved_method_predicts_the_same_bits(make: type[Method], kind: str) -> None:
    table = _table(kind=kind)
    method = make().fit(table)
    before, after = method.predict(table), _through_a_file(method).predict(table)
    np.testing.assert_array_equal(before.value, after.value)
    assert before.columns == after.columns
    if kind == "multiclass":
        np.testing.assert_allclose(before.value.sum(axis=1), 1)
    if kind != "regression":
        assert ((before.value >= 0) & (before.value <= 1)).all()


@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_bad_molecules_are_rows_with_a_reason(make: type[Method]) -> None:
    method = make().fit(_table())
    table = make_table(["CCO", "", "CN(C)(C)C", "[Na+].[Cl-]", None, "C(C"], ids=list("abcdef"))
    table = table.with_status(np.array([3]), "unreadable", np.array(["refused before"]))
    found = method.predict(table)
    assert found.ids.tolist() == list("abcdef")
    assert found.status.tolist() == ["ok", "missing", "unreadable", "unreadable", "missing", "unreadable"]
    assert "valence" in found.reason[2] and found.reason[3] == "refused before" and found.reason[0] == ""
    np.testing.assert_array_equal(np.isfinite(found.value[:, 0]), found.ok)
    assert len(method.predict(table.take(np.array([], int)))) == 0
    assert not method.predict(table.take(np.array([1, 2]))).ok.any()


def test_the_forest_is_scikit_learns_on_the_same_features() -> None:
    table = _table()
    x = Features("morgan+descriptors", 2, 256).fit(table, 1)[1].x
    seed = derive(5, "random_forest", "y") % 2**32
    peer = RandomForestRegressor(60, max_features="sqrt", random_state=seed).fit(x, SIZE)
    own = _forest(n_estimators=60, max_features="sqrt", seed=5).fit(table).predict(table)  # grown in three steps
    np.testing.assert_allclose(own.value[:, 0], peer.predict(x), rtol=1e-12)


def test_a_seed_gives_one_forest_whatever_the_threads() -> None:
    table = _table()
    first, again, other = (
        _forest(seed=s, threads=t).fit(table).predict(table).value for s, t in [(1, 1), (1, 2), (2, 1)]
    )
    np.testing.assert_array_equal(first, again)
    assert (first != other).any()


@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_each_target_learns_from_the_rows_that_have_it(make: type[Method]) -> None:
    y = np.column_stack([SIZE, np.where(np.arange(len(SIZE)) % 2, NAN, -SIZE)])
    targets = (Target("a"), Target("b"))
    both = make().fit(make_table(SMILES, targets=targets, y=y))
    table = make_table(SMILES)
    for j, target in enumerate(targets):
        alone = make().fit(make_table(SMILES, targets=(target,), y=y[:, j]))
        if make is MeanPredictor:
            np.testing.assert_array_equal(both.predict(table).value[:, [j]], alone.predict(table).value)
    assert (both.predict(table).value[:, 0] > 0).all() and (both.predict(table).value[:, 1] < 0).all()


def test_the_mean_is_weighted_and_counts_classes() -> None:
    smiles, weights = ["C", "CC", "bad"], np.array([3.0, 1.0, 100.0])
    table = make_table(smiles, targets=(Target("y"),), y=[0.0, 4.0, 9.0], weights=weights)
    assert MeanPredictor().fit(table).predict(table).value[0, 0] == 1.0
    classes = make_table(smiles, targets=(Target("y", "multiclass", classes=("a", "b", "c")),), y=[2, 0, 1])
    assert MeanPredictor().fit(classes).predict(classes).value[0].tolist() == [0.5, 0.0, 0.5]


def test_equal_weights_are_none() -> None:
    plain = _table()
    same = replace(plain, weights=np.full(len(plain), 2.0))
    found = [_forest(n_estimators=20).fit(table).predict(plain).value for table in (plain, same)]
    np.testing.assert_array_equal(*found)


def test_weights_and_class_weights_move_the_forest() -> None:
    smiles = ["CCO"] * 10
    y = np.array([1.0] + [0.0] * 9)
    targets = (Target("y", "binary"),)
    plain = make_table(smiles, targets=targets, y=y)
    heavy = replace(plain, weights=np.where(y == 1, 9.0, 1.0))
    p, w, b = (
        method.fit(table).predict(plain).value[0, 0]
        for method, table in [
            (_forest(n_estimators=200), plain),
            (_forest(n_estimators=200), heavy),
            (_forest(n_estimators=200, class_weights="balanced"), plain),
        ]
    )
    assert p < 0.2 < 0.35 < w and b == w


def test_a_tables_own_columns_are_used_and_asked_for_again() -> None:
    smiles = ["CCO"] * 40
    column = np.linspace(0, 1, 40)[:, None]
    own = {"features": np.column_stack([column, np.full(40, 7.0)]), "feature_names": ("assay", "constant")}
    table = make_table(smiles, targets=(Target("y"),), y=column, **own)
    method = _through_a_file(_forest(max_features=1.0).fit(table))
    assert np.corrcoef(method.predict(table).value[:, 0], column[:, 0])[0, 1] > 0.95
    turned = replace(table, features=table.features[:, ::-1], feature_names=("constant", "assay"))
    np.testing.assert_array_equal(method.predict(turned).value, method.predict(table).value)
    gap = replace(table, features=np.where(np.arange(40)[:, None] == 7, np.inf, table.features))
    found = method.predict(gap)
    assert found.reason[7] == "no finite value in the descriptor column 'assay'" and np.isnan(found.value[7, 0])
    assert np.isfinite(np.delete(found.value, 7)).all()
    with pytest.raises(MissingColumnError, match="assay"):
        method.predict(make_table(smiles))


@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_what_cannot_be_learnt_is_refused_with_a_hint(make: type[Method]) -> None:
    with pytest.raises(LabelError, match="target"):
        make().fit(make_table(["C"]))
    with pytest.raises(LabelError, match="'y'"):
        make().fit(make_table(["bad", "C"], targets=(Target("y"),), y=[1.0, NAN]))
    with pytest.raises(NotFittedError):
        make().predict(_table())


def test_parameters_are_the_constructors() -> None:
    method = _forest(radius=3)
    assert method.get_params()["radius"] == 3
    with pytest.raises(UnknownNameError, match="n_estimators"):
        method.set_params(n_estimator=3)
    with pytest.raises(BadValueError, match="'morgan'"):
        _forest(features="morgann").fit(_table())
    with pytest.raises(BadValueError, match="class_weights"):
        _forest(class_weights="x").fit(_table())


@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_a_state_that_is_not_whole_is_refused(make: type[Method]) -> None:
    state = make().fit(_table()).state()
    with pytest.raises(DamagedModelError):
        make.from_state(State({}, state.meta)) if make is MeanPredictor else RandomForest.from_state(
            State({}, state.meta)
        )
    kind = MeanPredictor if make is MeanPredictor else RandomForest
    for key in state.meta:
        if key == "params" and kind is MeanPredictor:
            continue
        fewer = State(state.arrays, {k: v for k, v in state.meta.items() if k != key})
        if key in ("unlearned", "notes"):  # a file of a version that refused such targets, or kept no notes
            assert kind.from_state(fewer).notes == ()
        else:
            with pytest.raises(DamagedModelError):
                kind.from_state(fewer)
        with pytest.raises(DamagedModelError):
            kind.from_state(State(state.arrays, {**state.meta, key: 3}))
    wider = [{"name": "y", "kind": "multiclass", "classes": ["a", "b"], "bounds": None}]
    with pytest.raises(DamagedModelError):
        kind.from_state(State(state.arrays, {**state.meta, "targets": wider}))


def test_forest_features_from_a_stranger_are_refused() -> None:
    state = _forest().fit(_table()).state()
    for change in ({"n_bits": 10**9}, {"n_bits": 64}, {"choice": "x"}, {"radius": 99}, {"descriptors": ["a"]}):
        with pytest.raises(ModelFileError if "descriptors" in change else DamagedModelError):
            RandomForest.from_state(
                State(state.arrays, {**state.meta, "features": {**state.meta["features"], **change}})
            )


def test_no_warning_on_two_rows() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table = make_table(["CCO", "CCO"], targets=(Target("y"),), y=[2.0, 3.0])
        value = _forest().fit(table).predict(table).value
    assert value[0] == value[1] and 2 <= value[0] <= 3


@pytest.mark.parametrize("make", [_forest, MeanPredictor])
def test_every_nasty_line_is_one_row_with_the_status_that_it_should_have(make: type[Method], root: Path) -> None:
    lines = [
        line.split("\t") for line in (root / "tests/nasty.tsv").read_text(encoding="utf-8").split("\n")[1:] if line
    ]
    found = make().fit(_table()).predict(make_table([line[0] for line in lines]))
    readable = np.array([line[1] == "ok" for line in lines])
    np.testing.assert_array_equal(found.ok, readable)
    np.testing.assert_array_equal(np.isfinite(found.value[:, 0]), readable)
    assert all(found.reason[~readable]) and not any(found.reason[readable])
