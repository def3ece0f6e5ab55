"""A model knows the molecules that it learnt from again, and says so where it is evaluated on them."""

from __future__ import annotations

import logging
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import DamagedModelError
from molgraph.data.sources.builtin import chembl2321810
from molgraph.train import archive
from molgraph.train.model import Model


@pytest.fixture(scope="module")
def table() -> pd.DataFrame:
    frame = chembl2321810().to_frame()[["smiles", "pActivity"]].head(90)
    return frame.assign(active=(frame["pActivity"] > 7).astype(int))


@pytest.fixture(scope="module")
def model(table: pd.DataFrame, tmp_path_factory: pytest.TempPathFactory) -> Model:
    params = {"n_bits": 256}
    result = molgraph.train(table[:60], targets=["pActivity", "active"], model="knn", params=params, split="random")
    assert result.model.trained_on is not None and len(result.model.trained_on) <= len(result.split.train)
    return molgraph.load(result.save(tmp_path_factory.mktemp("seen") / "model.mgm"))


def test_rows_that_were_trained_on_are_counted(
    model: Model, table: pd.DataFrame, caplog: pytest.LogCaptureFixture
) -> None:
    train = model.trained_on
    assert train is not None and train.dtype == np.uint64
    with caplog.at_level(logging.WARNING, "molgraph"):
        model.evaluate(table[70:])
        assert not caplog.records, "later molecules"
        model.evaluate(table[:60].assign(smiles=[f"{s}.Cl" for s in table["smiles"][:60]]))
    (record,) = caplog.records
    n = int(re.match(r"(\d+) of 60 rows hold a molecule that the model learnt from", record.getMessage())[1])
    assert n == 48, "every training row, as a salt, and no valid row: the method does not learn from those"


def test_a_page_of_an_evaluation_has_plots_intervals_and_the_warning(
    model: Model, table: pd.DataFrame, tmp_path: Path
) -> None:
    scores = model.evaluate(table, report=tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text()
    assert page.count('<span class="small">') == len(scores) == 8, "an interval below each score"
    assert "95% interval below each score" in page
    assert "Predicted against measured pActivity" in page and "ROC, precision-recall and calibration" in page
    assert "rows hold a molecule that the model learnt from" in page and "rows of active 0 | 1" in page
    assert molgraph.api.evaluate(model, table[60:], report=tmp_path / "b.html").equals(model.evaluate(table[60:]))
    assert "learnt from" not in (tmp_path / "b.html").read_text()


def test_older_files_are_silent_and_broken_lists_are_refused(
    model: Model, table: pd.DataFrame, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = model.save(tmp_path / "m.mgm")
    parts, arrays = archive.read_archive(path)
    hashes = arrays.pop("trained_on")
    archive.write_archive(tmp_path / "old.mgm", parts, arrays)
    with caplog.at_level(logging.WARNING, "molgraph"):
        old = molgraph.load(tmp_path / "old.mgm")
        old.evaluate(table)
    assert old.trained_on is None and not caplog.records
    assert old.predict(["CCO"]).value.tolist() == model.predict(["CCO"]).value.tolist()
    for bad in (hashes[::-1].copy(), hashes.astype(np.int64), hashes[:, None]):
        archive.write_archive(tmp_path / "bad.mgm", parts, {**arrays, "trained_on": bad})
        with pytest.raises(DamagedModelError, match="trained_on"):
            molgraph.load(tmp_path / "bad.mgm")
