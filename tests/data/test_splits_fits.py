"""A split's file is taken for the table that it was made for, in whatever form its molecules are, and no other."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import MismatchError
from molgraph.data.splits import Split, split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table, make_table

SALTS = [f"{'C' * n}C(=O)[O-].[Na+]" for n in range(1, 31)]


@pytest.fixture
def table() -> Table:
    return make_table(SALTS)


@pytest.mark.parametrize("preset", ["none", "desalt", "standard"])
def test_a_file_serves_the_table_as_written_and_each_standardised_form(preset: str, table: Table, tmp_path: Path):
    made = split_table(standardise(table, preset), "random", seed=3)
    made.save(tmp_path / "s.json")
    for other in ("none", "desalt", "standard"):
        if other in ("none", preset):  # what was taken off cannot be put on again
            again = split_table(standardise(table, other), "file", path=tmp_path / "s.json")
            assert [again.train.tolist(), again.test.tolist()] == [made.train.tolist(), made.test.tolist()]


def swapped(table: Table) -> Table:
    return table.take(np.array([1, 0, *range(2, 30)]))


def other_ids(table: Table) -> Table:
    return replace(table, ids=np.array([f"M{i}" for i in range(30)], dtype=object))


def another(table: Table) -> Table:
    return make_table([*SALTS[:4], "c1ccccc1", *SALTS[5:]])


@pytest.mark.parametrize(
    ("change", "noun", "cure"),
    [
        (lambda t: t.take(np.arange(29)), "30 rows.* 29", "split this table anew"),
        (swapped, r"order.*row 1 \(id '1'\)", "as a .csv of ids"),
        (
            another,
            r"row 5 \(id '4'\)",
            "the standardisers canonical, desalt, none, standard",
        ),
        (other_ids, "not one", "--id"),
    ],
)
def test_a_file_of_other_rows_names_the_cause_and_the_cure(change, noun, cure, table: Table, tmp_path: Path):
    split_table(standardise(table), "random").save(tmp_path / "s.json")
    with pytest.raises(MismatchError, match=noun) as error:
        split_table(change(table), "file", path=tmp_path / "s.json")
    assert cure in str(error.value)
    raw = json.loads((tmp_path / "s.json").read_text())  # as earlier versions wrote it: without digests of rows
    (tmp_path / "s.json").write_text(json.dumps({k: v for k, v in raw.items() if k != "digests"}))
    assert Split.load(tmp_path / "s.json").digests == ""
    with pytest.raises(MismatchError):
        split_table(change(table), "file", path=tmp_path / "s.json")
