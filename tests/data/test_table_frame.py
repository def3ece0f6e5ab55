"""The table beside the pandas object that it came from: labels of rows, and what a person sees of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import ShapeError
from molgraph.data.table import make_table


def test_labels_of_rows_go_with_them() -> None:
    table = make_table(["C", "CC", "CCC"], index=pd.Index(["x", "y", "z"]))
    assert table.to_frame().index.tolist() == ["x", "y", "z"]
    assert table.take(np.array([2, 0])).to_frame().index.tolist() == ["z", "x"]
    assert table.take(np.array([False, True, False])).to_frame().loc["y", "smiles"] == "CC"
    assert make_table(["C"]).take(np.array([0])).to_frame().index.equals(pd.RangeIndex(1))
    with pytest.raises(ShapeError, match=r"index has 2.* 1"):
        make_table(["C"], index=pd.RangeIndex(2))


def test_a_plain_shell_shows_a_few_lines() -> None:
    y = np.array([[1.0, np.nan]] * 2000)
    text = repr(make_table(["CCO", None] * 1000, targets=(Target("a"), Target("b", "binary")), y=y))
    head, *rows = text.splitlines()
    expected = "target a (regression); target b (binary, 2,000 without a value)"
    assert head == f"Table of 2,000 rows, 1,000 without a molecule; {expected}"
    assert len(text) < 800 and "array(" not in text and sum("CCO" in row for row in rows) == 3
    many = tuple(Target(f"t{j}") for j in range(9))
    assert "4 more targets" in repr(make_table(["C"], targets=many, y=np.zeros((1, 9))))
    assert repr(make_table([])).startswith("Table of 0 rows")


def test_no_column_is_lost_to_one_of_the_tables_own() -> None:
    y = np.array([[1.0, 2.0, 3.0]])
    features = {"features": np.array([[4.0]]), "feature_names": ("weight",), "weights": np.array([5.0])}
    frame = make_table(["C"], targets=(Target("status"), Target("id"), Target("y")), y=y, **features).to_frame()
    expected = ["id", "smiles", "input_status", "input_id", "y", "input_weight", "weight", "status", "reason"]
    assert list(frame) == expected
    assert frame.iloc[0].tolist() == ["0", "C", 1.0, 2.0, 3.0, 4.0, 5.0, "ok", ""]
