"""XGBoost and CatBoost: our trees say what theirs say, whatever the target; and what is refused."""

from __future__ import annotations

import builtins
import sys

import numpy as np
import pytest

from molgraph.auxiliary.maplight import MapLight, nodes_of_catboost
from molgraph.auxiliary.tabular.features import Features
from molgraph.auxiliary.tabular.trees import MeanOfTrees
from molgraph.auxiliary.xgboost import XGBoost, nodes_of_xgboost
from molgraph.base.contracts import Method, Target
from molgraph.base.errors import BadValueError, NotInstalledError
from molgraph.data.table import make_table
from tests.contract.test_methods import labelled
from tests.tiny import series

SMALL = {XGBoost: {"n_estimators": 30, "n_bits": 128}, MapLight: {"iterations": 30, "n_bits": 64}}
SETTINGS: dict[str, str] = {}


@pytest.fixture(scope="module", autouse=True)
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A folder of features: MapLight's cost 10 ms a molecule, and every test asks for the same ones."""
    for library in ("xgboost", "catboost"):
        pytest.importorskip(library)
    SETTINGS["store"] = str(tmp_path_factory.mktemp("store"))
    return SETTINGS["store"]


def make(kind: type[Method], **params) -> Method:
    return kind(**{**SMALL[kind], **SETTINGS, "threads": 1, **params})


def theirs(monkeypatch: pytest.MonkeyPatch, kind: type[Method], method: Method, table) -> np.ndarray:
    """What the library itself predicts from the model that the method makes of it."""
    import catboost
    import xgboost

    made = []
    if kind is XGBoost:
        train = xgboost.train
        monkeypatch.setattr(xgboost, "train", lambda *a, **k: made.append(train(*a, **k)) or made[-1])
    else:
        fit = catboost.CatBoost.fit
        monkeypatch.setattr(catboost.CatBoost, "fit", lambda self, *a, **k: made.append(self) or fit(self, *a, **k))
    method.fit(table)
    x = method.fitted.features.of(table, 1, SETTINGS["store"]).x
    if kind is XGBoost:
        return made[0].predict(xgboost.DMatrix(x))
    raw = made[0].predict(
        x, prediction_type="RawFormulaVal" if table.targets[0].kind == "regression" else "Probability"
    )
    return np.asarray(raw)[:, 1] if table.targets[0].kind == "binary" else np.asarray(raw)


@pytest.mark.parametrize("label", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("kind", [XGBoost, MapLight])
def test_our_trees_are_the_librarys(monkeypatch, kind: type[Method], label: str) -> None:
    table = labelled(label, 60)
    method = make(kind)
    found, expected = None, theirs(monkeypatch, kind, method, table)
    found = method.predict(table).value
    if label == "regression":
        y = table.y[:, 0]
        expected = expected * y.std() + y.mean()
    np.testing.assert_allclose(found, expected.reshape(found.shape), rtol=2e-5, atol=2e-6)
    if label == "regression":
        assert np.corrcoef(found[:, 0], table.y[:, 0])[0, 1] > 0.8


@pytest.mark.parametrize("kind", [XGBoost, MapLight])
def test_a_seed_gives_one_model_whatever_the_threads(kind: type[Method]) -> None:
    table = series(60)
    a, b, other = (make(kind, seed=s, threads=t).fit(table).predict(table).value for s, t in [(1, 1), (1, 2), (2, 1)])
    np.testing.assert_array_equal(a, b)
    assert (a != other).any()


@pytest.mark.parametrize("kind", [XGBoost, MapLight])
def test_weights_move_the_model(kind: type[Method]) -> None:
    y = np.array([1.0] + [0.0] * 9)
    plain = make_table(["CCO"] * 5 + ["CCN"] * 5, targets=(Target("y", "binary"),), y=y)
    heavy = make_table(["CCO"] * 5 + ["CCN"] * 5, targets=(Target("y", "binary"),), y=y, weights=np.where(y, 9.0, 1.0))
    a, b, c = (
        m.fit(t).predict(plain).value[0, 0]
        for m, t in [(make(kind), plain), (make(kind), heavy), (make(kind, class_weights="balanced"), plain)]
    )
    assert a + 0.05 < b and b == pytest.approx(c, abs=1e-3)


@pytest.mark.parametrize("label", ["regression", "binary", "multiclass"])
@pytest.mark.parametrize("kind", [XGBoost, MapLight])
def test_molecules_that_all_look_alike_give_the_mean_or_the_shares(kind: type[Method], label: str) -> None:
    y = np.array([0.0, 1.0, 1.0, 1.0])
    target = Target("y", label, classes=("a", "b", "c") if label == "multiclass" else ())
    found = make(kind).fit(make_table(["CCO"] * 4, targets=(target,), y=y)).predict(make_table(["CCO"])).value[0]
    expected = {"regression": [0.75], "binary": [0.75], "multiclass": [0.25, 0.75, 0.0]}[label]
    np.testing.assert_allclose(found, expected, atol=1e-5)


def test_bounds_hold() -> None:
    target = Target("y", "bounded", bounds=(0.0, 1.0))
    table = make_table(list(series(60).smiles), targets=(target,), y=np.arange(60) % 2)
    for kind in SMALL:
        found = make(kind, **({"n_estimators": 200} if kind is XGBoost else {"iterations": 200})).fit(table)
        assert ((found.predict(table).value >= 0) & (found.predict(table).value <= 1)).all()


def test_thresholds_are_those_of_the_libraries_on_their_very_edge() -> None:
    edge = np.float32(0.3)
    x = np.array([[np.nextafter(edge, np.float32(-1))], [edge], [np.nextafter(edge, np.float32(1))]], dtype=np.float32)
    tree = {"left_children": [1, -1, -1], "right_children": [2, -1, -1], "split_indices": [0, 0, 0]}
    tree["split_conditions"] = [float(edge), 1.0, 2.0]
    ours = MeanOfTrees.from_nodes(Target("y"), [nodes_of_xgboost(tree, 0, 1)], 1)
    assert ours.mean(x).ravel().tolist() == [1.0, 2.0, 2.0], "xgboost: less goes left"
    tree = {"splits": [{"float_feature_index": 0, "border": float(edge)}], "leaf_values": [1.0, 2.0]}
    ours = MeanOfTrees.from_nodes(Target("y"), [nodes_of_catboost(tree, np.arange(1), 1, 1.0)], 1)
    assert ours.mean(x).ravel().tolist() == [1.0, 1.0, 2.0], "catboost: greater goes right"


def test_a_saved_model_predicts_without_the_library(monkeypatch) -> None:
    for kind, library in [(XGBoost, "xgboost"), (MapLight, "catboost")]:
        table = series(40)
        method = make(kind).fit(table)
        expected, state = method.predict(table).value, method.state()
        monkeypatch.setitem(sys.modules, library, None)
        np.testing.assert_array_equal(kind.from_state(state).predict(table).value, expected)


@pytest.mark.parametrize("name", ["xgboost", "maplight", "gp"])
def test_a_missing_library_is_said_with_the_command(monkeypatch, name: str) -> None:
    from molgraph.train.make_method import make_method

    real = builtins.__import__
    missing = ("xgboost", "catboost", "gpytorch")

    def without(module: str, *rest, **more):
        if module.split(".")[0] in missing:
            raise ImportError(f"No module named {module!r}")
        return real(module, *rest, **more)

    for library in missing:
        monkeypatch.setitem(sys.modules, library, None)
    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(NotInstalledError, match="bench"):
        make_method(name).fit(series(16))


@pytest.mark.parametrize("kind", [XGBoost, MapLight])
def test_settings_that_cannot_be_are_refused(kind: type[Method]) -> None:
    with pytest.raises(BadValueError, match=f"{next(iter(SMALL[kind]))} is 0"):
        make(kind, **{next(iter(SMALL[kind])): 0}).fit(series(8))
    with pytest.raises(BadValueError, match="'RMSE'"):
        MapLight(loss="RMS").fit(series(8))


def test_maplight_is_wide() -> None:
    assert Features("maplight", 2, 1024).width == 1024 + 1024 + 315 + 200
