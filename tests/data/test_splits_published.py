"""Row numbers as somebody published them: every layout, what they leave out, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import DataError, FormatError, MissingOptionError, RowIdError, UnsupportedError
from molgraph.data.splits import split_table
from molgraph.data.table import Table, make_table

SMILES = ["CCO", "OCC", "CCN", "CCC", "CCCC", "C1CC", "CCS", "CCF"]
TRAIN, VALID, TEST = [0, 2, 3, 5], [4], [1, 6]


@pytest.fixture
def table() -> Table:
    return make_table(SMILES)


def write(folder: Path, layout: str) -> dict:
    parts = {"train": TRAIN, "valid": VALID, "test": TEST}
    if layout == "json":
        (folder / "s.json").write_text(json.dumps(parts))
        return {"path": folder / "s.json"}
    if layout == "npz":
        np.savez(folder / "s.npz", train_idx=TRAIN, val_idx=np.array(VALID, float), test_idx=TEST)
        return {"path": str(folder / "s.npz")}
    if layout == "columns":
        (folder / "s.csv").write_text("train,valid,test\n0,4,1\n2,,6\n3,,\n5,,\n")
        return {"path": folder / "s.csv"}
    if layout == "ogb":
        for name, rows in parts.items():
            (folder / f"{name}.csv.gz").write_bytes(gzip.compress("\n".join(map(str, rows)).encode()))
        (folder / "mapping.md").write_text("train")
        return {"path": folder}
    if layout == "text":
        for name, rows in parts.items():
            (folder / f"jtvae_{name}_idx.txt").write_text("".join(f"{row}\n" for row in rows))
        return {name: folder / f"jtvae_{name}_idx.txt" for name in parts}
    if layout == "npy":
        np.save(folder / "test.npy", np.array(TEST))
        return {"train": TRAIN, "valid": tuple(VALID), "test": folder / "test.npy"}
    (folder / "s.json").write_text(json.dumps({name: [row + 1 for row in rows] for name, rows in parts.items()}))
    return {"path": folder / "s.json", "first": 1}


@pytest.mark.parametrize("layout", ["json", "npz", "columns", "ogb", "text", "npy", "from one"])
def test_every_layout_gives_the_same_parts_and_tells_the_leaks(
    layout: str, table: Table, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    split = split_table(table, "index/file", **write(tmp_path, layout))
    assert [p.tolist() for p in (split.train, split.valid, split.test)] == [[0, 2, 3], VALID, TEST]
    assert {out.row for out in split.left_out} == {5, 7}
    assert "in no part" in split.left_out[1].reason and "unclosed ring" in split.left_out[0].reason
    assert [(leak.train, leak.test, leak.what) for leak in split.leaks] == [("0", "1", "duplicate")]
    assert "LEAKS: 1 of " in capsys.readouterr().err


def test_rows_of_no_list_train_where_no_training_list_is_given(table: Table, tmp_path: Path) -> None:
    (tmp_path / "test_idx.txt").write_text("1\n6\n")
    split = split_table(table, "index/file", test=tmp_path / "test_idx.txt", quiet=True)
    assert split.train.tolist() == [0, 2, 3, 4, 7] and split.valid.tolist() == []
    assert split_table(table, "index/file", path=str(tmp_path), quiet=True).hash == split.hash
    assert split_table(table, "index/file", path=tmp_path, quiet=True).test.tolist() == [1, 6]


@pytest.mark.parametrize(
    ("files", "settings", "kind", "noun"),
    [
        ({"s.json": '{"train": [0], "test": [8]}'}, {"path": "s.json"}, RowIdError, "row 8 .*test"),
        ({"s.json": '{"train": [0, -1], "test": [2]}'}, {"path": "s.json"}, RowIdError, "row -1 .*train"),
        ({"s.json": '{"train": [0, 0], "test": [2]}'}, {"path": "s.json"}, RowIdError, "row 0 twice"),
        ({"s.json": '{"train": [0, 2], "test": [2]}'}, {"path": "s.json"}, RowIdError, "row 2 in train"),
        ({"s.json": '{"train": [0.5], "test": [2]}'}, {"path": "s.json"}, FormatError, "train"),
        ({"s.json": '{"train": ["a"], "test": [2]}'}, {"path": "s.json"}, FormatError, "'a'"),
        ({"s.json": '{"train": [[0]], "test": [2]}'}, {"path": "s.json"}, FormatError, "train"),
        ({"s.json": '{"train": 5, "test": [2]}'}, {"path": "s.json"}, FormatError, "train"),
        ({"s.json": '{"learn": [5], "test": [2]}'}, {"path": "s.json"}, FormatError, "'learn'"),
        ({"s.json": '{"valid": [5], "val": [2]}'}, {"path": "s.json"}, FormatError, "'valid'"),
        ({"s.json": "[1, 2]"}, {"path": "s.json"}, FormatError, "s.json"),
        ({"s.json": "{"}, {"path": "s.json"}, FormatError, "s.json"),
        ({"s.npz": "not a zip"}, {"path": "s.npz"}, FormatError, "s.npz"),
        ({"s.csv": "a,b\n1,2\n"}, {"path": "s.csv"}, FormatError, "s.csv"),
        ({}, {"path": "none.json"}, DataError, "none.json"),
        ({}, {"path": "."}, FormatError, "train"),
        ({"train.txt": "1", "train_idx.csv": "1"}, {"path": "."}, FormatError, "train.txt"),
        ({"s.txt": "1\n"}, {"path": "s.txt"}, UnsupportedError, "s.txt"),
        ({"t.txt": "1\nx\n"}, {"test": "t.txt"}, FormatError, "'x'"),
    ],
)
def test_what_is_wrong_is_said(files, settings, kind, noun, table: Table, tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(kind, match=noun):
        split_table(table, "index/file", **settings)


def test_no_list_and_both_ways_at_once_are_refused(table: Table) -> None:
    for settings in ({}, {"path": "a", "test": [1]}):
        with pytest.raises(MissingOptionError, match="index/file"):
            split_table(table, "index/file", **settings)


def test_no_pickle_is_read(table: Table, tmp_path: Path) -> None:
    np.savez(tmp_path / "s.npz", train=np.array([{"a": 1}], dtype=object), test=np.array([1]))
    with pytest.raises(FormatError, match=r"s\.npz"):
        split_table(table, "index/file", path=tmp_path / "s.npz")
    np.save(tmp_path / "t.npy", np.array([{"a": 1}], dtype=object))
    with pytest.raises(FormatError, match=r"t\.npy"):
        split_table(table, "index/file", test=tmp_path / "t.npy")


@pytest.mark.data
def test_the_lists_of_jtvae(data_dir: Path) -> None:
    lists = {name: data_dir / f"zinc250k/jtvae_{name}_idx.txt" for name in ("valid", "test")}
    sizes = {name: len(file.read_text().split()) for name, file in lists.items()}
    smiles = np.full(249_455, "C", dtype=object)
    for molecule, file in zip(("CC", "CCC"), lists.values(), strict=True):
        smiles[np.loadtxt(file, dtype=int)] = molecule
    table = make_table(smiles)
    split = split_table(table, "index/file", quiet=True, **lists)
    assert split.sizes == {"train": 249_455 - sum(sizes.values()), **sizes, "left_out": 0}
    assert split.leaks == () and (table.smiles[split.test] == "CCC").all()
