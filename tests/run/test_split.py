"""Leaks are said by train, whatever made the split; a test table of its own is tested on and nothing else."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import DataError, EmptyError, LabelError, MissingColumnError, MissingFileError
from molgraph.data.sources.builtin import chembl2321810

OPTIONS = {"model": "knn", "params": {"n_bits": 256}, "threads": 1}


def frame(start: int, stop: int) -> pd.DataFrame:
    """Rows of the built-in series."""
    return chembl2321810().to_frame()[["smiles", "pActivity"]].iloc[start:stop].reset_index(drop=True)


def test_leaks_of_the_users_own_split_are_said(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    """B4: `data split` and `xray` reported them, `train --split-column` did not."""
    table = frame(0, 60)
    table["fold"] = ["train"] * 40 + ["valid"] * 5 + ["test"] * 15
    table.loc[45, "smiles"], table.loc[46, "smiles"] = table["smiles"][0], f"{table['smiles'][1]}.Cl"
    said = "2 of 15 test rows hold a molecule that is also in training (2 duplicate)"
    rows = [str(word) for word in table.pop("fold")]
    pd.DataFrame({"id": range(60), "split": rows}).to_csv(tmp_path / "split.csv", index=False)
    both = ({"split_column": "fold"}, table.assign(fold=rows)), ({"split": str(tmp_path / "split.csv")}, table)
    for options, data in both:
        caplog.clear()
        with caplog.at_level(logging.WARNING, "molgraph"):
            result = molgraph.train(data, targets=["pActivity"], **options, **OPTIONS)
        words = [r.getMessage() for r in caplog.records if "also in training" in r.getMessage()]
        assert words == [f"{said}, such as: id 45 of the test is a duplicate of id 0 in training"]
        assert said in result.model.card.notes
    clean = molgraph.train(table[:40], targets=["pActivity"], **OPTIONS)
    assert not any("also in training" in note for note in clean.model.card.notes)


def test_a_test_table_is_tested_on_and_all_of_the_other_is_learnt_from(
    caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    train, test = frame(0, 80), frame(78, 100)
    test.loc[20, "smiles"] = "not a molecule"
    test.to_csv(tmp_path / "later.csv", index=False)
    with caplog.at_level(logging.WARNING, "molgraph"):
        result = molgraph.train(train, test=tmp_path / "later.csv", targets=["pActivity"], **OPTIONS)
    assert result.split.sizes == {"train": 72, "valid": 8, "test": 21, "left_out": 1}
    assert result.recipe.data.test == str(tmp_path / "later.csv")
    assert any(r.getMessage().startswith("2 of 21 test rows hold a molecule") for r in caplog.records)
    assert "The test part is a table of its own." in result.model.card.notes
    assert list(result.test.smiles) == list(test["smiles"].drop(index=20))
    alone = result.model.evaluate(test)
    assert alone.set_index("metric")["value"].to_dict() == pytest.approx(result.scores.loc["knn"].to_dict())
    again = molgraph.train(train, test=test, targets=["pActivity"], **OPTIONS)
    assert again.scores.equals(result.scores) and again.recipe.data.test is None
    folds = train.assign(fold=["train"] * 70 + ["valid"] * 10)
    own = molgraph.train(folds, test=test, targets=["pActivity"], split_column="fold", **OPTIONS)
    assert own.split.valid.tolist() == list(range(70, 80)) and len(own.split.test) == 21


def test_classes_of_a_test_table_are_those_of_the_table() -> None:
    table, levels = frame(0, 90), ["low", "mid", "high"] * 30
    train = table.assign(level=levels)[:60]
    test = table.assign(level=levels)[60:][lambda rows: rows["level"] != "low"]
    result = molgraph.train(train, test=test, targets=["level:multiclass"], **OPTIONS)
    target = result.test.row_targets[0]
    assert [target.classes[int(v)] for v in result.test.y[:, 0]] == test["level"].tolist()
    with pytest.raises(LabelError, match="huge"):
        molgraph.train(train, test=test.assign(level="huge"), targets=["level:multiclass"], **OPTIONS)


def test_what_does_not_fit_is_refused(tmp_path: Path) -> None:
    train = frame(0, 40).assign(fold=["train"] * 30 + ["test"] * 10)
    with pytest.raises(DataError, match="10 rows"):
        molgraph.train(train, test=frame(40, 50), targets=["pActivity"], split_column="fold", **OPTIONS)
    with pytest.raises(MissingColumnError, match="pActivity"):
        molgraph.train(frame(0, 40), test=frame(40, 50)[["smiles"]], targets=["pActivity"], **OPTIONS)
    bad = pd.DataFrame({"smiles": ["C(", "C1"], "pActivity": [1.0, 2.0]})
    with pytest.raises(EmptyError, match="2 rows"):
        molgraph.train(frame(0, 40), test=bad, targets=["pActivity"], **OPTIONS)
    with pytest.raises(MissingFileError, match="test table"):
        molgraph.train(tmp_path / "not looked for.csv", test=tmp_path / "none.csv", **OPTIONS)
    assert np.isfinite(molgraph.train(frame(0, 40), targets=["pActivity"], **OPTIONS).scores.loc["knn", "rmse"])
