"""Duplicates: merged by one rule for editions, files and training; every row kept, merged or out with a reason."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import ConflictError
from molgraph.data.curate import curate
from molgraph.data.table import Entities, Table, make_table

SMILES = ["CCO", "OCC", "[Na+].CC[O-]", "CCN", "NCC", "CCC", "C(C", "[Na+].[Cl-]", "O", "O"]
Y = [1.0, 2.0, 6.0, 5.0, 5.0, 7.0, 8.0, 9.0, 1.0, 3.0]
TOLD = {"smiles": [*SMILES, *("C" * n for n in range(4, 24))], "y": [*Y, *(n % 5 + 0.5 for n in range(20))]}


def table() -> Table:
    return make_table(SMILES, targets=(Target("y"),), y=Y)


@pytest.mark.parametrize(
    ("replicates", "tolerance", "expected"),
    [
        ("mean", None, {0: 3.0, 3: 5.0, 5: 7.0}),
        ("median", None, {0: 2.0, 3: 5.0, 5: 7.0}),
        ("drop", None, {3: 5.0, 5: 7.0}),
        ("mean", 4.9, {3: 5.0, 5: 7.0}),
        ("median", 5.0, {0: 2.0, 3: 5.0, 5: 7.0}),
        ("drop", 5.0, {0: 3.0, 3: 5.0, 5: 7.0}),
    ],
)
def test_labels_of_one_molecule_become_one(replicates: str, tolerance: float | None, expected: dict) -> None:
    made = curate(table(), replicates=replicates, tolerance=tolerance)
    assert dict(zip(made.rows.tolist(), made.table.y[:, 0].tolist(), strict=True)) == expected
    gone = made.taken_out[made.taken_out["action"] != "label out"]
    assert sorted([*(made.rows + 1), *gone["row"]]) == list(range(1, 11)) and (gone["reason"] != "").all()
    merged = made.taken_out[made.taken_out["action"] == "merged"]
    assert set(merged["kept_row"] - 1) <= set(made.rows.tolist())
    assert made.sentence.startswith(f"{len(expected)} of 10 rows stay")


def test_replicates_alone_leave_all_other_rows_as_they_are() -> None:
    made = curate(table(), replicates_alone=True)
    assert made.table.smiles.tolist() == ["CCO", "CCN", "CCC", "C(C", "[Na+].[Cl-]", "O"]
    assert made.table.y[:, 0].tolist() == [3, 5, 7, 8, 9, 2]


def test_rows_that_differ_in_anything_else_are_no_replicates() -> None:
    plain = make_table(["CCO", "OCC", "CCO"], targets=(Target("y"),), y=[1.0, 2.0, 3.0])
    dose = replace(plain, features=np.array([[1.0], [1.0], [2.0]]), feature_names=("dose",))
    assert curate(dose).rows.tolist() == [0, 2]
    own = replace(plain, split=np.array(["train", "test", "train"], dtype=object))
    assert curate(own).rows.tolist() == [0, 1] and curate(own).table.y[:, 0].tolist() == [2, 2]
    proteins = Entities("protein", "sequence", np.array(["MKV", "MAA", "MKV"], dtype=object))
    assert curate(replace(plain, entities=(*plain.entities, proteins))).rows.tolist() == [0, 1]


def test_training_says_what_it_learns_raw_and_what_it_merged(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    caplog.set_level("INFO", "molgraph")
    options = {"targets": ["y"], "model": "mean", "split": "random"}
    kept = molgraph.train(TOLD, **options)
    note = next(n for n in kept.model.card.notes if "duplicates" in n)
    assert "3 molecules stand in 7 rows, 5 of them with contradictory labels" in note and "--duplicates mean" in note
    assert note in caplog.messages and len(kept.table) == 30
    merged = molgraph.train(TOLD, duplicates="mean", **options)
    assert any(n.startswith("duplicates (mean): 26 of 30 rows stay") for n in merged.model.card.notes)
    assert merged.model.card.recipe["data"]["duplicates"] == "mean" and len(merged.table) == 26
    assert merged.table.status.tolist().count("ok") == 26  # one of them is found unreadable when it is parsed
    assert not any("as they stand" in n for n in molgraph.train(merged.table, **options).model.card.notes)
    own = tmp_path / "s.json"
    kept.split.save(own)
    with pytest.raises(ConflictError, match="split file"):
        molgraph.train(TOLD, duplicates="mean", **options | {"split": str(own)})
