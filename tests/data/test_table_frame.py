"""The table beside the pandas object that it came from: labels of rows, and what a person sees of it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from molgraph.base.errors import DataError
from molgraph.data.table import make_table


def test_labels_of_rows_go_with_them() -> None:
    table = make_table(["C", "CC", "CCC"], index=pd.Index(["x", "y", "z"]))
    assert table.to_frame().index.tolist() == ["x", "y", "z"]
    assert table.take(np.array([2, 0])).to_frame().index.tolist() == ["z", "x"]
    assert table.take(np.array([False, True, False])).to_frame().loc["y", "smiles"] == "CC"
    assert make_table(["C"]).take(np.array([0])).to_frame().index.equals(pd.RangeIndex(1))
    with pytest.raises(DataError, match="index has 2 rows, the table has 1"):
        make_table(["C"], index=pd.RangeIndex(2))
