"""Splits by the user's own data: times, groups, words in a column and files."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from molgraph.base.contracts import Target
from molgraph.base.errors import (
    CellError,
    DataError,
    EmptyError,
    FormatError,
    MismatchError,
    MissingColumnError,
    MissingOptionError,
    RowIdError,
    ShapeError,
    UnknownNameError,
)
from molgraph.data.splits import kfold, split_table
from molgraph.data.table import Table, make_table

SMILES = ["C" * (i + 1) for i in range(10)]


@pytest.fixture
def table() -> Table:
    years = np.array([2001, 2009, 2003, 2004, 2005, 2006, 2007, 2008, 2002, 2010.0])
    return make_table(
        SMILES,
        ids=[f"00{i}" for i in range(10)],
        targets=(Target("y"),),
        y=np.arange(10),
        features=years[:, None],
        feature_names=("year",),
        split=np.array(["train"] * 6 + ["Validation", "val", " test ", "TEST"], dtype=object),
    )


def test_time_trains_on_the_past(table: Table) -> None:
    split = split_table(table, "time", column="year")
    assert split.valid.tolist() == [1]
    assert split.test.tolist() == [9]
    assert split.params == {"column": "year"}


def test_rows_of_one_time_stay_together(table: Table) -> None:
    days = ["2020-01-01"] * 3 + ["2020-02-01"] * 4 + ["2020-03-01"] * 3
    split = split_table(table, "time", fractions=(0.4, 0.3, 0.3), column=days)
    assert [p.tolist() for p in (split.train, split.valid, split.test)] == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9]]
    with pytest.raises(EmptyError, match="valid"):
        split_table(table, "time", column=["2020-01-01"] * 10)


def test_dates_are_dates_and_missing_times_are_left_out(table: Table) -> None:
    days = ["9 Jan 2020", "2020-01-10", "2020-02-01T10:00:00Z", "2021-01-01", "", None, "2022-01-01"] + [
        "2023-05-05"
    ] * 3
    split = split_table(table, "time", fractions=(0.5, 0.0, 0.5), column=np.array(days, dtype=object))
    assert split.train.tolist() == [0, 1, 2, 3]
    assert [(o.row, o.reason) for o in split.left_out] == [(4, "no time in this row"), (5, "no time in this row")]
    stamps = pd.to_datetime(pd.Series(["2020-01-0" + str(9 - i) for i in range(9)] + ["2019-01-01"]))
    split = split_table(table, "time", fractions=(0.5, 0.0, 0.5), column=stamps.to_numpy())
    assert split.train.tolist() == [5, 6, 7, 8, 9]
    with pytest.raises(CellError, match="'soon'"):
        split_table(table, "time", column=["soon"] * 10)


def test_groups_stay_together_in_parts_and_folds(table: Table) -> None:
    groups = np.array(list("aabbccddee"), dtype=object)
    split = split_table(table, "group", fractions=(0.6, 0.2, 0.2), column=groups)
    words = split.words
    assert all(words[i] == words[i + 1] for i in range(0, 10, 2))
    assert split.groups == 5
    for fold in kfold(table, 5, "group", column=groups):
        assert len(fold.test) == 2
        assert groups[fold.test[0]] == groups[fold.test[1]]
    groups[3] = " "
    left = split_table(table, "group", fractions=(0.6, 0.2, 0.2), column=groups).left_out
    assert [(o.row, o.reason) for o in left] == [(3, "no group in this row")]


def test_the_split_column_is_taken_at_its_word(table: Table) -> None:
    split = split_table(table, "column")
    assert [p.tolist() for p in (split.train, split.valid, split.test)] == [[0, 1, 2, 3, 4, 5], [6, 7], [8, 9]]
    words = ["train"] * 8 + ["", "test"]
    split = split_table(table, "column", column=words)
    assert len(split.valid) == 0
    assert split.left_out[0].row == 8
    with pytest.raises(CellError, match=r"'exam' .*row 10"):
        split_table(table, "column", column=[*words[:9], "exam"])
    with pytest.raises(EmptyError, match="test"):
        split_table(table, "column", column=["train"] * 10)
    with pytest.raises(MissingColumnError, match=r"'yaer'.*\n.*'year'"):
        split_table(table, "time", column="yaer")
    with pytest.raises(ShapeError, match=r"\(3,\)"):
        split_table(table, "group", column=[1, 2, 3])
    with pytest.raises(MissingOptionError, match="--split-column"):
        split_table(make_table(SMILES), "column")


def test_files_of_ids_of_rows_and_of_molgraph(table: Table, tmp_path: Path) -> None:
    csv, rows, own = (tmp_path / name for name in ("s.csv", "r.json", "own.json"))
    csv.write_text("id,split\n" + "".join(f"00{i},{'train' if i < 7 else 'test'}\n" for i in range(9)))
    split = split_table(table, "file", path=csv)
    assert split.test.tolist() == [7, 8]
    assert split.left_out[0].row == 9
    rows.write_text(json.dumps({"train": [5, 1, 2], "val": [3], "test": [0]}))
    split = split_table(table, "file", path=str(rows))
    assert [p.tolist() for p in (split.train, split.valid, split.test)] == [[1, 2, 5], [3], [0]]
    first = split_table(table, "random", seed=9)
    first.save(own)
    again = split_table(table, "file", path=own)
    assert (again.test == first.test).all()
    with pytest.raises(MismatchError, match=r"own\.json"):
        split_table(make_table(SMILES), "file", path=own)


@pytest.mark.parametrize(
    ("name", "text", "kind", "noun"),
    [
        ("s.csv", "id,part\n000,train\n", MissingColumnError, "'split'"),
        ("s.csv", "id,split\n000,train\n000,test\n", RowIdError, "'000'"),
        ("s.csv", "id,split\nzzz,train\n", RowIdError, "'zzz'"),
        ("s.json", "[1]", FormatError, "s.json"),
        ("s.json", "{", FormatError, "s.json"),
        ("s.json", '{"train": [0, "a"]}', FormatError, "'a'"),
        ("s.json", '{"learn": [0]}', FormatError, "'learn'"),
        ("s.json", '{"train": [0], "test": [0]}', RowIdError, "row 0"),
        ("s.json", '{"train": [0], "test": [10]}', RowIdError, "row 10"),
    ],
)
def test_a_bad_file_is_one_clear_error(name, text, kind, noun, table: Table, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(kind, match=noun):
        split_table(table, "file", path=path)


def test_a_file_that_is_not_there_is_one_clear_error(table: Table, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"none\.csv"):
        split_table(table, "file", path=tmp_path / "none.csv")
    with pytest.raises(MissingOptionError, match="path"):
        split_table(table, "file")


def test_leaks_of_a_column_are_found() -> None:
    table = make_table(["CCO", "CCN", "OCC"], split=np.array(["train", "train", "test"], dtype=object))
    assert [(lk.train, lk.test, lk.what) for lk in split_table(table, "column").leaks] == [("0", "2", "duplicate")]


@pytest.mark.parametrize("form", ["%d/%m/%Y", "%m-%d-%Y", "%Y-%m-%d"])
def test_days_and_months_keep_one_order_in_a_column(form: str) -> None:
    days = [pd.Timestamp("2020-01-01") + pd.Timedelta(days=9 * i) for i in range(40)]
    words = np.array([day.strftime(form) for day in days], dtype=object)
    split = split_table(make_table(["C" * (i + 1) for i in range(40)]), "time", column=words)
    assert [*split.train, *split.valid, *split.test] == list(range(40))


@pytest.mark.parametrize("text", ["1-Jan-72", "31/12/99", "12:30"])
def test_dates_without_a_year_of_four_digits_are_refused(table: Table, text: str) -> None:
    with pytest.raises(CellError, match=text):
        split_table(table, "time", column=np.array(["1-Jan-2001"] * (len(table) - 1) + [text], dtype=object))


@pytest.mark.parametrize("texts", [["01/02/2020", "03/04/2020"], ["13/01/2020", "01/13/2020"]])
def test_dates_whose_order_is_open_are_refused(table: Table, texts: list[str]) -> None:
    with pytest.raises(FormatError, match=texts[0]):
        split_table(table, "time", column=np.array(texts * 5, dtype=object))


def test_a_word_of_another_test_set_is_left_out_where_it_is_named():
    table = make_table(["C" * n for n in range(1, 10)])
    words = np.array(["train", "test", "Test_Scaffolds"] * 3, dtype=object)
    found = split_table(table, "column", column=words, leave_out="test_scaffolds", quiet=True)
    assert found.train.tolist() == [0, 3, 6] and found.test.tolist() == [1, 4, 7] and len(found.left_out) == 3
    for odd in ("scaffolds", 3):
        with pytest.raises(UnknownNameError, match=repr(odd)):
            split_table(table, "column", column=words, leave_out=odd, quiet=True)
