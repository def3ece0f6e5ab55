"""``select``: the rows of the highest disagreement, spread; what is left out is counted; other models are refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import molgraph
from molgraph.base.errors import BadValueError, EmptyError, UnknownNameError, UnsupportedError
from molgraph.chem.max_min import pick_max_min
from molgraph.chem.tanimoto import tanimoto
from molgraph.cli.main import app
from molgraph.data.table import make_table
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes
from molgraph.trust.ensemble import Ensemble
from tests.tiny import SMALL, mixed, series

FOREST = {"n_estimators": 3, "n_bits": 256}


@pytest.fixture(scope="module")
def model() -> Model:
    few = series(48)
    forests = Ensemble("random_forest", n=3, params=FOREST, threads=1).fit(few)
    return Model(forests, targets=few.targets, trained_on=distinct(molecule_hashes(few)))


def test_the_highest_scores_are_taken_and_the_rest_is_counted(model: Model) -> None:
    new, old = [str(text) for text in series(30, 100).smiles], str(series(1).smiles[0])
    plate = molgraph.select(model, [*new, old, new[0], "C((", "[Na+]"], batch=5, among=1)
    every = molgraph.select(model, new, batch=100, among=1)
    assert plate["id"].tolist() == every["id"].tolist()[:5] and plate["rank"].tolist() == [1, 2, 3, 4, 5]
    assert every["score"].is_monotonic_decreasing and len(every) == 30
    left = plate.attrs["left_out"]
    assert sum(left.values()) == 4 and any("learnt from" in each for each in left) and any("Parse" in e for e in left)
    assert plate["reason"][0] == "disagreement 1 of 30"
    wide = molgraph.select(model, new, batch=5, among=3)
    assert {*wide["id"]} <= {*every["id"][:15]} and wide["id"][0] == every["id"][0]
    assert "similarity" in wide["reason"][1]


def test_networks_with_variances_and_classes_have_scores() -> None:
    table = mixed(24)
    params = {**SMALL, "epochs": 1, "params": {"d_hidden": 8, "head": "gaussian"}}
    nets = Ensemble("dmpnn", n=2, params={**params["params"], "epochs": 1, "head_width": 8}, threads=1)
    bare = make_table(list(table.smiles), targets=table.targets, y=table.y)
    nets.fit(bare)
    made = Model(nets, targets=bare.targets)
    for target in "abc":
        plate = molgraph.select(made, ["CCO", "c1ccccc1O", "CCN"], target=target, batch=2)
        assert len(plate) == 2 and np.isfinite(plate["score"]).all()
    with pytest.raises(BadValueError, match="jrd"):
        molgraph.select(made, ["CCO"], target="c", score="jrd")


def test_other_models_and_bad_values_are_refused(model: Model) -> None:
    alone = Model(model.method.members[0], targets=model.targets)  # type: ignore[arg-type]
    with pytest.raises(UnsupportedError, match="no members") as caught:
        molgraph.select(alone, ["CCO"])
    assert "--ensemble" in caught.value.hint
    for how, kind in (
        ({"score": "bald"}, UnknownNameError),
        ({"score": "jsd"}, BadValueError),
        ({"batch": 0}, BadValueError),
        ({"among": 0.5}, BadValueError),
        ({"target": "pKi"}, BadValueError),
    ):
        with pytest.raises(kind):
            molgraph.select(model, ["CCO"], **how)  # type: ignore[arg-type]
    with pytest.raises(EmptyError):
        molgraph.select(model, ["C(("])


def test_the_verb_writes_a_plate(model: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model.save("m.mgm")
    (tmp_path / "pool.smi").write_text("CCO a\nC(( b\nc1ccccc1O c\nCCN d\n")
    done = CliRunner().invoke(app, ["select", "m.mgm", "pool.smi", "--batch", "2", "-o", "plate.csv"])
    assert done.exit_code == 0, done.output
    frame = pd.read_csv("plate.csv")
    assert [*frame][:4] == ["rank", "id", "input", "score"] and len(frame) == 2 and {*frame["id"]} < {*"acd"}
    assert "left out: 1 x" in done.stderr
    assert CliRunner().invoke(app, ["select", "m.mgm", "pool.smi", "--score", "most"]).exit_code == 2


def test_picks_are_those_of_the_definition() -> None:
    x = np.random.default_rng(0).integers(0, 2, (20, 16))
    rows, similarity = pick_max_min(x, 6)
    alike = tanimoto(x, x)
    for place in range(1, 6):
        free = np.setdiff1d(np.arange(20), rows[:place])
        assert (
            similarity[place]
            == alike[free][:, rows[:place]].max(axis=1).min()
            == alike[rows[place], rows[:place]].max()
        )
