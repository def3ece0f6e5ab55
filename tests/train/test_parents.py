"""Measured analogues: corrected numbers, a share of 0 is the plain model, and bad parents are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from molgraph.auxiliary.linear import Linear
from molgraph.base.errors import BadValueError, DataError, EmptyError, UnsupportedError
from molgraph.cli.main import app
from molgraph.train.model import Model
from molgraph.train.parents import with_parents
from molgraph.train.training_molecules import distinct, molecule_hashes
from tests.tiny import mixed, series

LEARNT, MEASURED, NEW = series(60), series(40, 60), series(12, 100)


@pytest.fixture(scope="module")
def model() -> Model:
    method = Linear(features="morgan", n_bits=256, threads=1).fit(LEARNT)
    return Model(method, targets=LEARNT.targets, trained_on=distinct(molecule_hashes(LEARNT)))


def test_a_share_of_zero_is_the_plain_model_and_of_one_adds_the_whole_error(model: Model) -> None:
    plain = model.predict_table(NEW)
    for share in (0.0, 1.0):
        found = model.predict(NEW, parent=MEASURED, parent_share=share)
        assert np.array_equal(found.extra["pActivity_plain"], plain.value[:, 0])
        assert np.array_equal(found.value, plain.value) == (share == 0)
    alone = MEASURED.take(np.array([3]))
    near = model.predict(alone, parent=alone, parent_share=1.0)
    assert near.value[0, 0] == pytest.approx(alone.y[0, 0]) and near.extra["pActivity_similarity"][0] == 1  # type: ignore[index]


def test_a_shift_that_all_share_is_taken_back(model: Model) -> None:
    shifted = MEASURED.__class__(**{**MEASURED.__dict__, "y": MEASURED.y + 4.0})  # type: ignore[operator]
    found = model.predict(NEW, parent=shifted)
    some = found.extra["pActivity_parents"] > 0
    moved = (found.value[:, 0] - found.extra["pActivity_plain"])[some]
    assert (
        some.any()
        and (moved > 2).all()
        and np.array_equal(found.value[~some, 0], found.extra["pActivity_plain"][~some])
    )
    assert set(found.extra["pActivity_parent"]) <= {*map(str, shifted.ids)}


def test_the_verb_corrects_and_narrows(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model.save("m.mgm")
    frame = pd.DataFrame({"smiles": MEASURED.smiles, "pActivity": MEASURED.y[:, 0]})  # type: ignore[index]
    frame.to_csv("measured.csv", index=False)
    pd.DataFrame({"smiles": [*NEW.smiles, "C(("]}).to_csv("new.csv", index=False)
    call = ["predict", "m.mgm", "new.csv", "--parent", "measured.csv", "-o", "out.csv"]
    done = CliRunner().invoke(app, call)
    assert done.exit_code == 0, done.output
    out = pd.read_csv("out.csv")
    assert len(out) == 13 and {"pActivity", "pActivity_plain", "pActivity_sd", "pActivity_parent"} <= {*out}
    assert np.isnan(out["pActivity"].iloc[-1]) and (out["pActivity"] != out["pActivity_plain"])[:12].any()
    assert CliRunner().invoke(app, [*call[:3], "--parent-share", "0.5"]).exit_code == 2
    assert CliRunner().invoke(app, [*call, "--parent-share", "2"]).exit_code == 2
    frame[["smiles"]].to_csv("measured.csv", index=False)
    assert CliRunner().invoke(app, call).exit_code == 3


def test_parents_that_teach_nothing_are_refused(model: Model) -> None:
    with pytest.raises(EmptyError, match="no parent"):
        with_parents(model, LEARNT)
    with pytest.raises(EmptyError, match="too few"):
        with_parents(model, MEASURED.take(np.arange(3)))
    with pytest.raises(BadValueError):
        with_parents(model, MEASURED, 1.5)
    with pytest.raises(DataError):
        with_parents(model, ["CCO"])
    table = mixed(24).with_targets(["b"])
    classes = Model(Linear(features="morgan", n_bits=256, threads=1).fit(table), targets=table.targets)
    with pytest.raises(UnsupportedError, match="numbers"):
        with_parents(classes, table)
