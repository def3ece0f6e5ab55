"""Rows of molecule, concentration and response: grouped by molecule, each row with a value or a reason."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import molgraph
from molgraph.base.errors import ConflictError, LabelError, MissingColumnError, MissingOptionError, UnusedSettingError
from molgraph.data.read import read_table
from molgraph.data.table import concatenate
from tests.tiny import curve_points, small

X = np.linspace(-2, 2, 8)


def rows(smiles: str, log_ec50: float, x: np.ndarray = X) -> list[tuple[str, object, object]]:
    return [(smiles, 10**a, b) for a, b in zip(x, 100 / (1 + 10 ** (log_ec50 - x)), strict=True)]


def frame(*more: tuple[str, object, object]) -> pd.DataFrame:
    return pd.DataFrame([*rows("CCO", 0.5), *more], columns=["smiles", "conc_uM", "response"])


def test_rows_of_a_molecule_are_one_curve_whatever_their_order_and_text() -> None:
    points = frame(*rows("OCC", 0.5), *rows("CCN", -0.5)).sample(frac=1, random_state=0)
    table = read_table(points, targets="response:curve")
    assert len(table) == 2 and table.points is not None and sorted(table.points.sizes) == [8, 16]
    assert [target.name for target in table.targets] == ["log10_EC50", "log10_slope", "top", "bottom"]
    found = dict(zip(table.points.sizes.tolist(), table.y, strict=True))
    np.testing.assert_allclose(found[16], [0.5, 0, 100, 0], atol=1e-4)
    np.testing.assert_allclose(found[8], [-0.5, 0, 100, 0], atol=1e-4)
    both = concatenate(table, table.take(np.array([0])))
    assert both.points is not None and both.points.sizes.tolist() == [*table.points.sizes, table.points.sizes[0]]


def test_a_row_that_is_no_point_keeps_its_place_and_has_a_reason() -> None:
    bad = [("CCO", 0, 5), ("CCO", "much", 5), ("CCO", -1, 5), ("CCO", None, 5), ("CCO", 1, None), ("CCO", 1, "high")]
    table = read_table(frame(*bad, ("CCC", 1, 5), ("CCC", 2, 6)), targets="response:curve")
    assert table.ids.tolist() == ["0", *map(str, range(8, 14)), "14"]
    assert table.ok.tolist() == [True, *[False] * 6, True]
    for row, why in zip(range(1, 7), ("is 0", "'much'", "is -1", "'conc_uM'", "'response'", "'high'"), strict=True):
        assert why in table.reason[row]
    assert table.points is not None and table.points.sizes.tolist() == [8, *[0] * 6, 2]
    assert np.isnan(table.y[-1]).all()  # type: ignore[index]
    assert any("(row 15): 2 concentrations do not determine a curve" in note for note in table.notes)


def test_limits_and_weights_are_kept_with_the_points() -> None:
    points = frame(("CCO", 1000, ">90"))
    points["w"] = np.arange(1, 10)
    table = read_table(points, targets="response:curve", qualifiers="learn", weight="w")
    assert table.points is not None and table.weights is None and table.limits is None
    np.testing.assert_allclose(table.points.values[-1], [3, 90, np.inf, 9])
    assert np.isfinite(table.y).all()


def test_what_cannot_be_a_curve_is_refused_in_a_sentence(tmp_path: Path) -> None:
    with pytest.raises(LabelError, match=re.escape("in 1 curve (row 1: 2 concentrations do not")):
        read_table(frame().iloc[:2], targets="response:curve")
    for wrong, error, words in (
        ({"targets": ["response:curve", "conc_uM"]}, ConflictError, "learnt alone"),
        ({"targets": "response:curve", "concentration": "dose"}, MissingColumnError, "dose"),
        ({"targets": "response:curve", "log": True}, UnusedSettingError, "logarithm"),
        ({"targets": "response", "concentration": "conc_uM"}, UnusedSettingError, "curves"),
    ):
        with pytest.raises(error, match=words):
            read_table(frame(), **wrong)
    with pytest.raises(MissingColumnError, match="no column is named as concentrations"):
        read_table(frame().rename(columns={"conc_uM": "x"}), targets="response:curve")
    with pytest.raises(MissingOptionError, match="the table has none"):
        small(objective="dose_response").fit(read_table(frame(), targets="response"))


def test_a_model_of_curves_is_trained_evaluated_and_predicts_with_intervals(tmp_path: Path) -> None:
    curve_points(60).to_csv(tmp_path / "curves.csv", index=False)
    how = {"params": {"d_hidden": 8, "head_width": 8}, "epochs": 3, "split": "random", "baseline": False, "threads": 1}
    result = molgraph.train(tmp_path / "curves.csv", targets="response:curve", test=tmp_path / "curves.csv", **how)
    assert result.model.method.objective == "dose_response"
    model = molgraph.load(result.model.save(tmp_path / "m.mgm"))
    found = model.predict(["CCO", "C(C"]).to_frame()
    assert {"log10_EC50", "log10_slope", "top", "bottom"} <= set(found.columns)
    assert found.log10_EC50.notna().tolist() == [True, False] and found.reason[1]
    scores = model.evaluate(tmp_path / "curves.csv")
    assert set(scores["target"]) >= {"log10_EC50", "top"} and np.isfinite(scores["value"]).any()
