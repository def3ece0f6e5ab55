"""What is trained beside what, on which terms, and what is refused before anything is read."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

import molgraph
from molgraph.base.errors import UsageError
from molgraph.contest import contestants, method_of
from molgraph.plan import recipe_of
from tests.train.tiny import SMALL, series


def test_the_baseline_learns_on_the_same_terms() -> None:
    given = {"threads": 1, "seed": 7, "class_weights": {"0": 2.0}, "epochs": 1}
    plan = recipe_of(None, {"threads": 1, "seed": 7, "epochs": 1}).override("class_weights={0=2.0}")
    method = method_of(plan)
    parts = [series(24), series(8, 30), series(8, 40)]
    trained = contestants(plan, method, parts, None)
    assert [c.name for c in trained] == ["dmpnn", "random_forest", "mean"]
    for one in trained[:2]:
        params = one.method.get_params()
        assert {key: params[key] for key in given if key in params} == {k: v for k, v in given.items() if k in params}
    plan = plan.override("baseline=false")
    assert [c.name for c in contestants(plan, method_of(plan), parts, None)] == ["dmpnn", "mean"]


def test_options_that_a_method_does_not_have_are_said(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "molgraph"):
        method_of(recipe_of(None, {"model": "random_forest"}))
        assert not caplog.records
        method_of(recipe_of(None, {"model": "random_forest", "epochs": 3, "patience": 2}))
    (record,) = caplog.records
    assert record.getMessage() == "random_forest has no epochs and no patience: not used"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"model": "dmpn"}, "no model is named 'dmpn'"),
        ({"params": {"dept": 3}}, "dmpnn has no parameter 'dept'"),
        ({"params": {"depth": "four"}}, "dmpnn: depth is 'four', expected a whole number"),
        ({"params": {"depth": "four"}, "ensemble": 2}, "dmpnn: depth is 'four', expected a whole number"),
        ({"params": {"depth": 0}}, "dmpnn cannot be built: depth must be 1 or more, got 0"),
        ({"params": {"readout": "sun"}}, "no readout is named 'sun'"),
        ({"model": "random_forest", "params": {"n_estimators": "many"}}, "random_forest: n_estimators is 'many'"),
        ({"device": "tpu"}, "no device is named 'tpu'"),
        ({"device": "tpu", "ensemble": 2}, "no device is named 'tpu'"),
    ],
)
def test_what_is_wrong_is_said_before_the_table_is_read(options: dict, words: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=words):
        molgraph.train(tmp_path / "is not looked for.csv", workdir=tmp_path / "work", **options)
    assert not (tmp_path / "work").exists()


def test_a_checkpoint_stays_until_the_caller_has_the_model(tmp_path: Path) -> None:
    """A disk that is full when the model is saved must not cost the training."""
    inner = {**SMALL["params"], "head_width": SMALL["head_width"]}
    options = {"params": inner, "epochs": 2, "baseline": False, "workdir": tmp_path}
    first = molgraph.train("builtin:chembl2321810", **options)
    (path,) = tmp_path.rglob("*.ckpt")
    again = molgraph.train("builtin:chembl2321810", **options)
    assert path.exists()
    assert again.curves.equals(first.curves)  # their seconds too: nothing was trained again
    assert again.predict(["CCO"]).value.tolist() == first.predict(["CCO"]).value.tolist()
