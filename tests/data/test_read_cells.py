"""A fault in one cell of any column marks its row, with a reason, in a whole table and in a stream."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import molgraph
from molgraph.base.contracts import Target
from molgraph.base.errors import CellError, LabelError
from molgraph.data.read import read_table
from tests.data.chunked import iter_tables

XYZ = "3\n\nO 0 0 0\nH 0 0 1\nH 0 1 0"
# what the column is, a sound cell, a faulty one, its row's status, and a word of the reason
CELLS = {
    "a feature that is text": ({"features": ["c"]}, "1.5", "n.d.", "unreadable", "'n.d.'"),
    "a feature that is infinite": ({"features": ["c"]}, "1.5", "1e999", "unreadable", "infinite"),
    "a feature with a decimal comma": ({"features": ["c"]}, "1.5", "2,5", "unreadable", "--decimal ,"),
    "no feature": ({"features": ["c"]}, "1.5", "", "missing", "descriptor column 'c'"),
    "a weight that is text": ({"weight": "c"}, "1", "heavy", "unreadable", "'heavy'"),
    "a weight that is infinite": ({"weight": "c"}, "1", "inf", "unreadable", "infinite"),
    "a negative weight": ({"weight": "c"}, "1", "-1", "unreadable", "below 0"),
    "no weight": ({"weight": "c"}, "1", "", "missing", "no weight"),
    "a label that is text": ({"targets": ["c:regression"]}, "1.5", "n.d.", "unreadable", "'n.d.'"),
    "a label that is infinite": ({"targets": ["c:regression"]}, "1.5", "1e999", "unreadable", "infinite"),
    "a label of no class": ({"targets": ["c:binary"]}, "1", "2", "unreadable", "0 and 1"),
    "a label of an unknown class": (
        {"targets": [Target("c", "multiclass", classes=("a", "b"))]}, "a", "z", "unreadable", "none of its classes"
    ),
    "a label out of bounds": ({"targets": [Target("c", "bounded", bounds=(0, 1))]}, "0.5", "7", "unreadable", "bounds"),
    "a list of labels": ({"targets": ["c:atom:regression"]}, "[1.5]", "[x]", "unreadable", "atom 1"),
    "no sequence": ({"sequence": "c"}, "MKT", "", "missing", "no sequence"),
    "a geometry": ({"geometry": "c", "smiles": "smiles"}, XYZ, "3 O", "unreadable", ""),
    "no second molecule": ({"smiles": ["smiles", "c"]}, "CO", " ", "missing", "c: no molecule"),
}  # fmt: skip


@pytest.mark.parametrize("case", CELLS)
def test_a_cell_marks_its_row_and_no_other(case: str) -> None:
    options, sound, faulty, status, word = CELLS[case]
    data = {"smiles": ["C"] * 7, "c": [sound] * 4 + [faulty] + [sound] * 2}
    whole = read_table(data, **options)
    assert whole.status.tolist() == ["ok"] * 4 + [status] + ["ok"] * 2 and word in whole.reason[4]
    parts = list(iter_tables(data, chunk_rows=3, **options))
    assert np.concatenate([part.reason for part in parts]).tolist() == whole.reason.tolist()
    with pytest.raises(CellError, match="row 5"):
        read_table(data, on_error="stop", **options)


def test_a_column_of_nothing_but_faults_is_no_fault_of_a_row() -> None:
    with pytest.raises(LabelError, match="y:multiclass"):
        read_table({"smiles": ["C"] * 5, "y": ["1", "high", "low", "high", ""]}, targets=["y"])


def test_a_fault_beside_decimal_commas_leaves_them_numbers(tmp_path: Path) -> None:
    path = tmp_path / "in.csv"
    path.write_text("smiles;dose\nC;0,5\nCC;n.d.\nCCC;2,25\n")
    for tables in ([read_table(path, features=["dose"])], iter_tables(path, chunk_rows=2, features=["dose"])):
        assert np.concatenate([t.features[t.ok, 0] for t in tables]).tolist() == [0.5, 2.25]


def test_one_junk_relation_does_not_make_the_others_exact() -> None:
    data = {"smiles": ["C"] * 5, "y": ["1", "2", "3", "4", "5.5"], "y_relation": ["=", ">", "junk", "<", "="]}
    table = read_table(data, targets=["y"], qualifiers="drop")
    assert table.ok.tolist() == [True, True, False, True, True] and "'junk'" in table.reason[2]
    assert np.isnan(table.y[:, 0]).tolist() == [False, True, False, True, False]


def test_training_evaluation_and_a_stream_go_on(tmp_path: Path) -> None:
    rows = [f"{'C' * (i % 9 + 1)}{'O' * (i // 9 + 1)},{i % 7},{i},{i % 3 + 1}" for i in range(40)]
    rows[5], rows[6], rows[7] = "CCO,n.d.,1,1", "CCO,3,n.d.,1", "CCO,3,1,n.d."
    path, out = tmp_path / "in.csv", tmp_path / "out.csv"
    path.write_text("\n".join(["smiles,y,f,w", *rows]) + "\n")
    options = {"targets": ["y"], "features": ["f"], "weight": "w"}
    result = molgraph.train(path, model="linear", params={"features": "morgan"}, split="random", **options)
    assert sorted(result.table.ids[~result.table.ok]) == ["5", "6", "7"]
    scores = result.model.evaluate(path, weight="w")
    assert scores.n.tolist() == [37] * len(scores)
    done = molgraph.predict_file(result.model, path, out)
    assert (done.rows, done.failed) == (40, 1) and "6,CCO,,,,,,,unreadable" in out.read_text()


@pytest.mark.parametrize(
    ("splitter", "sound", "faulty"),
    [("time", "2020", "soon"), ("time", "2020-05-06", "soon"), ("column", "train", "tarin"), ("column", "0", "x")],
)
def test_one_faulty_cell_of_a_split_column_leaves_its_row_out(splitter: str, sound: str, faulty: str) -> None:
    from molgraph.data.splits import split_table

    others = {"2020": ["2021"] * 9, "2020-05-06": ["2021-05-06"] * 9, "train": ["test"] * 9, "0": list("121212120")}
    table = read_table({"smiles": ["C" * i for i in range(1, 41)], "part": [sound] * 30 + [faulty] + others[sound]},
                       split="part")  # fmt: skip
    split = split_table(table, splitter, fractions=(0.75, 0.0, 0.25))
    assert [out.row for out in split.left_out] == [30] and len(split.test) > 8
