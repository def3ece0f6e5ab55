"""The model as people hold it: any form of input, one row out for each row in, a readable summary."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from rdkit import Chem

from molgraph.base.contracts import Target
from molgraph.base.errors import BadValueError, LabelError, MismatchError, MissingColumnError, MissingOptionError
from molgraph.data.read import read_table
from molgraph.data.table import make_table
from molgraph.train.card import ModelCard, scores_html
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.trust.ensemble import Ensemble
from tests.tiny import mixed, series, small


@pytest.fixture(scope="module")
def model() -> Model:
    table = series(32)
    card = ModelCard(what="activity", units={"pActivity": "-log10 M"}, n_train=32, split="random", split_hash="abc")
    return Model(small(epochs=1).fit(table), targets=table.row_targets, card=card)


def test_every_form_of_input_gives_the_same_answers(model, tmp_path):
    smiles = ["CCO", "c1ccccc1", "oops", "CC(=O)[O-].[Na+]"]
    frame = pd.DataFrame({"smiles": smiles})
    frame.to_csv(tmp_path / "in.csv", index=False)
    expected = model.predict(smiles)
    assert list(expected.status) == ["ok", "ok", "unreadable", "ok"] and list(expected.inputs) == smiles
    assert np.isnan(expected.value[2, 0]) and expected.reason[2]
    for data in (tuple(smiles), np.array(smiles), frame.smiles, frame, str(tmp_path / "in.csv"), make_table(smiles)):
        assert model.predict(data).value.tobytes() == expected.value.tobytes(), type(data)


@pytest.mark.slow
@pytest.mark.parametrize("index", [[30, 10, 20, 40], list("abcd"), pd.MultiIndex.from_product([[1, 2], ["x", "y"]])])
def test_the_frame_of_a_prediction_stands_beside_its_input(model, index, tmp_path):
    frame = pd.DataFrame({"smiles": ["CCO", "c1ccccc1", "oops", "CCN"]}, index=index)
    value = model.predict(list(frame.smiles)).value[:, 0]
    for data in (frame.smiles, frame):
        frame["pred"] = model.predict(data).to_frame()["pActivity"]
        np.testing.assert_array_equal(frame["pred"], value)
    some = model.predict(frame, on_error="drop").to_frame()
    assert some.index.equals(frame.index[[0, 1, 3]]) and not some["pActivity"].isna().any()
    frame.to_csv(tmp_path / "in.csv", index=False)
    for data in (list(frame.smiles), frame.smiles.to_numpy(), tmp_path / "in.csv"):
        assert model.predict(data).to_frame().index.equals(pd.RangeIndex(4))


def test_molecules_of_rdkit_and_what_is_no_molecule(model):
    smiles = ["CCO", "c1ccccc1", "C[C@H](N)C(=O)O", "[13CH4]", "CC(=O)[O-].[Na+]"]
    mols = [Chem.MolFromSmiles(text) for text in smiles]
    mols[1] = Chem.AddHs(mols[1])
    expected = model.predict(smiles)
    frame = pd.DataFrame({"molecule": mols, 7: 1.0}, index=list("abcde"))
    for data in (mols, tuple(mols), pd.Series(mols), np.array(mols, dtype=object), frame):
        found = model.predict(data)
        assert found.ok.all(), type(data)
        np.testing.assert_allclose(found.value, expected.value, rtol=1e-5)
        assert found.inputs[0] == "CCO"
    assert isinstance(frame["molecule"].iloc[0], Chem.Mol)  # nothing edits its input
    mixed = model.predict([mols[0], 5, None, np.float64(2.5), b"C", Chem.Mol(), "CCO"])
    assert mixed.status.tolist() == ["ok", "unreadable", "missing", *["unreadable"] * 3, "ok"]
    number = "a number, not SMILES text"
    words = ["", number, "no molecule in this row", number, "not text: bytes", "a molecule of no atoms", ""]
    assert mixed.reason.tolist() == words and mixed.inputs[1] == "5"


def test_the_standardiser_is_applied_before_the_method(model):
    salt, acid = model.predict(["CC(=O)[O-].[Na+]", "CC(=O)O"]).value[:, 0]
    assert salt == acid
    plain = Model(model.method, targets=model.targets, standardiser="none")
    salt, acid = plain.predict(["CC(=O)[O-].[Na+]", "CC(=O)O"]).value[:, 0]
    assert salt != acid


def test_one_smiles_as_text_is_answered_with_advice(model):
    with pytest.raises(BadValueError, match="'CCO'"):
        model.predict("CCO")


def test_evaluate_scores_every_target(model):
    table = series(40, 100)
    frame = model.evaluate(table)
    rmse = frame.set_index("metric").value["rmse"]
    np.testing.assert_allclose(rmse, np.sqrt(np.mean((model.predict(list(table.smiles)).value - table.y) ** 2)))


def test_evaluate_reads_class_labels_in_the_models_order():
    """A test file that lacks a class codes the others differently; the model's own codes count."""
    table = mixed()
    known = table.take(np.flatnonzero(table.ok & (table.y[:, 2] >= 1))).with_targets(["c"])
    shifted = type(known)(
        **{**vars(known), "targets": (Target("c", "multiclass", classes=("y", "z")),), "y": known.y - 1}
    )
    one = table.with_targets(["c"])
    single = Model(small(epochs=1).fit(one), targets=one.row_targets, feature_names=("f", "g"))
    expected = single.evaluate(known).set_index("metric").value["accuracy"]
    assert single.evaluate(shifted).set_index("metric").value["accuracy"] == expected
    foreign = type(known)(**{**vars(shifted), "targets": (Target("c", "multiclass", classes=("y", "q")),)})
    with pytest.raises(MismatchError, match="'q'"):
        single.evaluate(foreign)


def test_evaluate_reads_a_file_of_text_classes(tmp_path):
    smiles = list(series(30).smiles)
    frame = pd.DataFrame({"smiles": smiles, "level": ["low", "middle", "high"] * 10})
    table = read_table(frame, targets=["level:multiclass"])
    model = Model(small(epochs=1).fit(table), targets=table.row_targets)
    frame[frame.level != "low"].to_csv(tmp_path / "later.csv", index=False)  # a class fewer: other codes
    found = model.evaluate(tmp_path / "later.csv").set_index("metric").value
    known = model.evaluate(table.take(np.flatnonzero(frame.level != "low"))).set_index("metric").value
    assert found["accuracy"] == known["accuracy"] and found["accuracy"] >= 0
    frame["level"] = "enormous"
    with pytest.raises(LabelError, match="'enormous'"):
        model.evaluate(frame)


def test_descriptor_columns_are_asked_for():
    table = mixed()
    model = Model(small(epochs=1).fit(table), targets=table.row_targets, feature_names=("f", "g"))
    with pytest.raises(MissingOptionError, match=r"\['f', 'g'\]"):
        model.predict(["CCO"])
    with pytest.raises(MissingColumnError, match="'g'"):
        model.predict(pd.DataFrame({"smiles": ["CCO"], "f": [1.0]}))
    assert np.isfinite(model.predict(pd.DataFrame({"smiles": ["CCO"], "f": [1.0], "g": [2.0]})).value).all()


def test_it_shows_what_it_is(model):
    assert "dmpnn" in repr(model) and "pActivity" in repr(model)
    html = model._repr_html_()
    for words in ("pActivity", "-log10 M", "32 trained on", "random", "standard", "activity"):
        assert words in html
    risky = Model(model.method, targets=model.targets, card=ModelCard(what="<script>alert(1)</script>"))
    assert "<script>" not in risky._repr_html_()


def test_an_ensemble_says_that_it_is_one(tmp_path):
    table = series(32)
    made = Ensemble("random_forest", n=3, params={"n_estimators": 2, "features": "morgan"}).fit(table)
    model = Model(made, targets=table.row_targets, card=ModelCard(name="random_forest"))
    model = load_model(model.save(tmp_path / "a.mgm"))
    assert model.name == "random_forest" and model.summary()["model"] == "ensemble of 3 random_forest"
    assert "ensemble of 3 random_forest" in repr(model) and "ensemble of 3 random_forest" in model._repr_html_()


def cells(kind, html):
    """The texts of a table's cells."""
    return re.findall(f"<{kind}>(.*?)</{kind}>", html)


def test_scores_are_shown_in_the_order_of_reading(model):
    scores = [{"metric": "rmse", "n": 9, "note": "", "part": "test", "target": "y", "value": 1.25}]
    html = scores_html(scores)
    assert cells("th", html) == ["target", "metric", "value", "n"] and "on the test part" in html
    assert cells("td", html) == ["y", "rmse", "1.25", "9"]
    scores += [{"metric": "r2", "n": 1, "note": "1 row", "part": "valid", "target": "y", "value": None}]
    html = scores_html(scores)
    assert cells("th", html) == ["part", "target", "metric", "value", "n", "note"]
    assert cells("td", html)[6:] == ["valid", "y", "r2", "–", "1", "1 row"]
    assert not scores_html([]) and "<script>" not in scores_html([scores[0] | {"part": "<script>", "n": "<script>"}])


@pytest.mark.parametrize("wrong", [{"batch_size": 10**12}, {"epochs": 2**20 + 1}])
def test_numbers_that_no_model_file_may_hold_are_refused_before_the_work(wrong: dict[str, object]) -> None:
    with pytest.raises(BadValueError, match=next(iter(wrong))):
        GraphMethod(**wrong).check()  # type: ignore[arg-type]
