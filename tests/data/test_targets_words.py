"""Words as the labels of a binary target: which is 1 is the same in every file."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base.errors import LabelError
from molgraph.data.read import read_table
from molgraph.data.reading.cells import WORDS
from tests.data.chunked import iter_tables

PAIRS = [("Active", "inactive"), ("yes", "NO"), ("positive", "negative"), ("toxic", " non-toxic"), ("True", "false")]


@pytest.mark.parametrize(("one", "zero"), PAIRS)
@pytest.mark.parametrize("asked", ["y", "y:binary"])
def test_two_words_are_a_binary_target(one: str, zero: str, asked: str, tmp_path: Path) -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CCN", "CCC", "CCCC"], "y": [zero, one, None, one]})
    frame.to_csv(tmp_path / "in.csv", index=False)
    frame.to_parquet(tmp_path / "in.parquet")
    category = frame.astype({"y": "category"})
    category.to_parquet(tmp_path / "category.parquet")
    sources = [frame, category, *(tmp_path / name for name in ("in.csv", "in.parquet", "category.parquet"))]
    for source in sources:
        table = read_table(source, smiles="smiles", targets=[asked])
        assert table.targets[0].kind == "binary"
        np.testing.assert_array_equal(table.y[:, 0], [0, 1, np.nan, 1])
    # a file, or a chunk of one, that holds one of the words alone keeps its meaning
    parts = [t.y[:, 0] for t in iter_tables(frame, chunk_rows=1, smiles="smiles", targets=["y:binary"])]
    np.testing.assert_array_equal(np.concatenate(parts), [0, 1, np.nan, 1])


def test_other_words_are_told_what_to_do() -> None:
    frame = pd.DataFrame({"smiles": ["CCO", "CCN"], "y": ["blocker", "other"]})
    with pytest.raises(LabelError, match=r"row 1: .*'blocker'.*\n.*active.*y:multiclass"):
        read_table(frame, targets=["y:binary"])
    assert read_table(frame, targets=["y:multiclass"]).targets[0].classes == ("blocker", "other")
    with pytest.raises(LabelError, match="'active'"):  # a word among numbers is none
        read_table(pd.concat([frame, frame]).assign(y=["5.2", "active", "active", "active"]), targets=["y"])
    assert set(WORDS.values()) == {"0", "1"}


def test_labels_that_look_like_numbers_stay_apart() -> None:
    """Wells of a plate are no numbers; a whole number that pandas wrote with a point is one."""
    labels = ["1E2", "100", "007", "7", "7.0", "10000000000000001", "10000000000000000"]
    table = read_table({"smiles": ["CCO"] * 7, "well": labels}, targets=["well:multiclass"])
    assert set(table.targets[0].classes) == set(labels) - {"7.0"}
    codes = table.y[:, 0].tolist()
    assert codes[3] == codes[4] and len(set(codes)) == 6
