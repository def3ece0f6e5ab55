"""What is trained beside what, on which terms, and what is refused before anything is read."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import BadValueError, UnknownNameError, UnusedSettingError
from molgraph.base.recipe_keys import GRADIENT_DESCENT
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.read import read_table
from molgraph.run.config import config_of
from molgraph.run.fit import run_methods
from molgraph.run.method import method_of
from molgraph.train.make_method import make_method
from molgraph.trust.wrapper import Wrapper
from tests.tiny import SMALL, series


def test_the_baseline_learns_on_the_same_terms() -> None:
    given = {"threads": 1, "seed": 7, "class_weights": {"0": 2.0}, "epochs": 1}
    plan = config_of(None, {"threads": 1, "seed": 7, "epochs": 1}).override("class_weights={0=2.0}")
    method = method_of(plan)
    parts = [series(24), series(8, 30), series(8, 40)]
    trained = run_methods(plan, method, parts, None)
    assert [c.name for c in trained] == ["dmpnn", "random_forest", "mean"]
    for one in trained[:2]:
        params = one.method.get_params()
        assert {key: params[key] for key in given if key in params} == {k: v for k, v in given.items() if k in params}
    plan = plan.override("baseline=false")
    assert [c.name for c in run_methods(plan, method_of(plan), parts, None)] == ["dmpnn", "mean"]


def test_options_that_a_method_does_not_have_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "molgraph"):
        method_of(config_of(None, {"model": "random_forest"}))
        assert not caplog.records
        method_of(config_of(None, {"model": "random_forest", "epochs": 3, "patience": 2}))
    (record,) = caplog.records
    assert record.getMessage() == "random_forest has no epochs and no patience: not used"


#: what is put around a method hands its options on
WRAPPERS = [name for name in names("method") if issubclass(get("method", name), Wrapper)]
#: a value of every training option that no method has by itself
OTHERS = {"epochs": 7, "batch_size": 17, "learning_rate": 0.0123, "warmup_epochs": 1.5, "weight_decay": 0.25}
OTHERS |= {"patience": 9, "gradient_clip": 3.5, "class_weights": "balanced", "store": "auto", "seed": 11, "threads": 1}


@pytest.mark.parametrize("name", sorted({*names("method"), *names("encoder")} - {"graph", *WRAPPERS}))
def test_no_training_option_reaches_a_method_that_means_something_else_by_it(name: str) -> None:
    """Each option reaches the parameter of its name or is refused; no other parameter changes."""
    own, descent = make_method(name).get_params(), make_method(name).gradient_descent
    base = method_of(RunConfig.from_dict({"model": {"name": name}})).get_params()
    assert {k for k in own if base[k] != own[k]} <= set(GRADIENT_DESCENT if descent else ())
    for key, value in OTHERS.items():
        asked = {"model": {"name": name}, "training": {key: value}}
        if key in own and key in GRADIENT_DESCENT and not descent:
            with pytest.raises(UnusedSettingError, match=f"{name} .*\n.*params.{key}={value}"):
                method_of(RunConfig.from_dict(asked))
            asked["model"] = {"name": name, "params": {key: 0.2}}
            assert method_of(RunConfig.from_dict(asked)).get_params() == base | {key: 0.2}
        else:
            assert method_of(RunConfig.from_dict(asked)).get_params() == base | ({key: value} if key in own else {})


@pytest.mark.parametrize("name", [n for n in names("method") if n not in ("graph", *WRAPPERS)])
def test_a_method_of_gradient_descent_is_one(name: str) -> None:
    declared = make_method(name).gradient_descent
    assert declared == ({"epochs", "batch_size"} <= set(make_method(name).param_names()))


def test_the_default_step_size_given_to_a_booster_is_answered_too(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "molgraph"):
        method = method_of(config_of(None, {"model": "xgboost"}).override("learning_rate=0.001"))
    assert method.get_params()["learning_rate"] == 0.05
    (record,) = caplog.records
    assert "learning_rate=0.001 is not used; set its own one with -s params.learning_rate=0.001" in record.getMessage()


def test_boosted_trees_of_train_are_those_of_the_method_itself() -> None:
    """B1: [training] learning_rate = 0.001 made them boost at a fiftieth of their own step size."""
    params = {"n_estimators": 40, "n_bits": 256, "features": "morgan"}
    options = {"baseline": False, "split": "random", "threads": 1}
    result = molgraph.train(series(200), model="xgboost", params=params, **options)
    alone = make_method("xgboost", **params, threads=1).fit(result.table.take(result.split.train))
    test = result.table.take(result.split.test)
    assert result.predict(test).value.tolist() == alone.predict(test).value.tolist()
    assert result.scores.loc["xgboost", "rmse"] < 0.75 * result.scores.loc["mean", "rmse"]


@pytest.mark.parametrize(
    ("options", "error", "noun"),
    [
        ({"model": "dmpn"}, UnknownNameError, "model .*'dmpn'"),
        ({"params": {"dept": 3}}, UnknownNameError, "dmpnn .*'dept'"),
        ({"params": {"depth": "four"}}, BadValueError, "dmpnn: depth is 'four'"),
        ({"params": {"depth": "four"}, "ensemble": 2}, BadValueError, "dmpnn: depth is 'four'"),
        ({"params": {"depth": 0}}, BadValueError, "dmpnn: depth is 0"),
        ({"params": {"readout": "sun"}}, UnknownNameError, "readout .*'sun'"),
        ({"model": "random_forest", "params": {"n_estimators": "many"}}, BadValueError, "n_estimators is 'many'"),
        ({"device": "tpu"}, UnknownNameError, "device .*'tpu'"),
        ({"device": "tpu", "ensemble": 2}, UnknownNameError, "device .*'tpu'"),
    ],
)
def test_what_is_wrong_is_said_before_the_table_is_read(
    options: dict, error: type[Exception], noun: str, tmp_path: Path
) -> None:
    with pytest.raises(error, match=noun):
        molgraph.train(tmp_path / "is not looked for.csv", workdir=tmp_path / "work", **options)
    assert not (tmp_path / "work").exists()


def test_a_checkpoint_stays_until_the_caller_has_the_model(tmp_path: Path) -> None:
    """A disk that is full when the model is saved must not cost the training."""
    inner = {**SMALL["params"], "head_width": SMALL["head_width"]}
    options = {"params": inner, "epochs": 2, "baseline": False, "workdir": tmp_path}
    first = molgraph.train(series(60), **options)
    (path,) = tmp_path.rglob("*.ckpt")
    again = molgraph.train(series(60), **options)
    assert path.exists()
    assert again.curves.equals(first.curves)  # their seconds too: nothing was trained again
    assert again.predict(["CCO"]).value.tolist() == first.predict(["CCO"]).value.tolist()


def test_feature_columns_that_a_method_does_not_read_are_refused_and_never_asked_for() -> None:
    frame = pd.DataFrame({"smiles": [*map("C".__mul__, range(1, 31))], "f": np.arange(30.0), "y": np.arange(30.0)})
    for name in ("knn", "mean"):
        with pytest.raises(UnusedSettingError, match=name):
            molgraph.train(frame, targets="y", features=["f"], model=name)
    table = read_table(frame, targets="y", features=["f"])
    assert molgraph.train(table, model="knn", split="random").model.predict(["CCO"]).status.tolist() == ["ok"]
    assert molgraph.train(frame, targets="y", features=["f"], model="linear").model.feature_names == ("f",)


def test_the_runs_options_reach_what_a_wrapper_wraps(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "molgraph"):
        params = {"n": 2, "params": {"d_hidden": 4, "batch_size": 8}}
        method = method_of(config_of(None, {"model": "ensemble", "epochs": 1, "batch_size": 4, "params": params}))
        assert [(m.epochs, m.batch_size) for m in method.members] == [(1, 8)] * 2 and not caplog.messages
        plain = config_of(None, {"model": "ensemble", "baseline": False})
        run_methods(plain, method, [series(24), series(8, 30), series(8, 40)], None)
        assert "training ensemble of 2 dmpnn" in caplog.messages
        caplog.clear()
        method_of(config_of(None, {"model": "ensemble(random_forest)", "epochs": 3}))
        assert len(caplog.messages) == 1 and "epochs" in caplog.messages[0]
