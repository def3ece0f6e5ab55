"""Second opinions that learnt from other molecules than the oracle: overlap is left out, told, or refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import DataError, MissingOptionError, UnsupportedError
from molgraph.base.registry import get
from molgraph.data.sources import builtin
from molgraph.generate import auto_control, control
from molgraph.generate.control import judge, make_control
from molgraph.generate.optimised import ranked, rows_of
from molgraph.generate.oracles.calls import OracleCalls
from molgraph.generate.oracles.combined import Combined
from molgraph.generate.oracles.read_oracle import read_oracle
from molgraph.train.model import Model
from molgraph.train.training_molecules import molecule_hashes


@pytest.fixture(scope="module")
def assay(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A property model that learnt from 100 molecules."""
    path = tmp_path_factory.mktemp("control") / "assay.mgm"
    table = builtin.chembl2321810().take(np.arange(120))
    model = molgraph.train(table, model="knn", split="random", baseline=False).model
    model.trained_on = np.unique(molecule_hashes(table.take(np.arange(100))))
    model.save(path)
    return path


@pytest.fixture
def objective(assay: Path) -> Combined:
    return read_oracle(f"{assay},sa<4")


def test_a_control_learns_from_molecules_that_the_objective_did_not(
    objective: Combined, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "get", lambda kind, name: get(kind, "knn"))  # a forest takes longer
    table = builtin.chembl2321810()
    found = make_control(table.take(np.arange(50, 200)), objective)
    assert found.independent and "50 that the oracle's model learnt from were left out" in found.note
    alone = make_control(table.take(np.arange(100, 200)), objective)
    assert np.array_equal(found.oracle.score([*table.smiles]).value, alone.oracle.score([*table.smiles]).value)
    with pytest.raises(DataError, match="15 of"):
        make_control(table.take(np.arange(115)), objective)


def test_a_control_that_shares_molecules_is_told(
    objective: Combined, assay: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(control, "get", lambda kind, name: get(kind, "knn"))
    model = molgraph.load(assay)
    same = make_control(str(assay), objective)
    assert not same.independent and "100 of the 100 molecules" in same.note and "share the oracle's errors" in same.note
    other = Model(model.method, targets=model.targets, trained_on=np.arange(1, 50, dtype=np.uint64))
    assert make_control(other, objective).independent
    unknown = make_control(Model(model.method, targets=model.targets), objective)
    assert not unknown.independent and "the control does not know" in unknown.note
    blind = read_oracle({"a": read_oracle(str(assay)).terms[0].oracle})
    blind.terms[0].oracle.model.trained_on = None  # type: ignore[attr-defined]
    half = make_control(builtin.chembl2321810().take(np.arange(60)), blind)
    assert not half.independent and "30 of its table, at random" in half.note


def test_a_control_is_compared_with_the_model_that_it_controls(objective: Combined, assay: Path) -> None:
    smiles = [str(text) for text in builtin.chembl2321810().smiles[:60]]
    weighted, bound = read_oracle(f"{assay}:-1,qed:5"), read_oracle(f"qed,{assay}<5")
    for asked in (weighted, bound):
        calls = OracleCalls(asked, 60)
        calls.score(smiles)
        frame = rows_of(ranked(calls), asked)
        found = judge(make_control(str(assay), asked), frame, asked)
        np.testing.assert_array_equal(found.scores, frame[asked.labels[asked is bound]])
        if asked is weighted:
            assert found.guard is not None and found.guard.agreement == 1 and np.nanmax(found.guard.control) < 0
        else:
            n = int((found.scores < 5).sum())
            assert found.guard is None and 0 < n < 60
            assert found.notes == (
                f"of the {n} molecules within the bounds, {n} are within those of assay by the control too",
            )


def test_a_table_controls_property_models_alone() -> None:
    frame = pd.DataFrame({"smiles": ["CCO"] * 30, "qed": 0.4})
    for words in ("qed", "qed,sa<4"):
        with pytest.raises(UnsupportedError, match=words):
            make_control(frame, read_oracle(words))


def test_auto_is_the_least_aligned_of_the_methods_that_predict_well(
    objective: Combined, assay: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(auto_control, "METHODS", ("knn", "linear"))
    monkeypatch.setattr(auto_control, "WORSE", 2.0)
    table = builtin.chembl2321810().take(np.arange(100, 220))
    found = auto_control.choose_control("auto", objective, table)
    assert found.independent and "the control is linear, whose" in found.note and "knn" in found.note
    with pytest.raises(MissingOptionError, match="fits methods to a table"):
        auto_control.choose_control("auto", objective)
    with pytest.raises(UnsupportedError, match="asks no property model"):
        auto_control.choose_control("auto", read_oracle("qed"), table)
    data = pd.DataFrame({"smiles": table.smiles, "pActivity": np.asarray(table.y)[:, 0]})
    data.to_csv(tmp_path / "other.csv", index=False)
    how = {"search": "graph-ga", "budget": 30, "compare": False, "reference": str(tmp_path / "other.csv")}
    best = molgraph.optimise(oracle=str(assay), control="auto", **how)
    assert np.isfinite(best.frame["control"]).any() and any("least aligned" in note for note in best.notes)
