"""Files that cannot be read as asked: one clear sentence each, and what to do next."""

from __future__ import annotations

import bz2
import gc
import gzip
import os
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

from molgraph.base.errors import (
    AmbiguousColumnError,
    CannotReadError,
    DataError,
    EmptyError,
    FormatError,
    LabelError,
    MissingFileError,
    ShapeError,
    UnusedSettingError,
)
from molgraph.chem.smiles import parse_smiles
from molgraph.data.read import read_table
from tests.data.chunked import iter_tables

SMALL = "smiles,y,id\nCCO,1.5,007\nCCN,,NA\n,2.5,x\n"


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("content", "kind", "noun"),
    [
        ("", EmptyError, "t.csv"),
        ("\n\n  \n", EmptyError, "t.csv"),
        ("smiles,y,y\nC,1,2\n", AmbiguousColumnError, "'y'"),
        ("smiles,y, y\nC,1,2\n", AmbiguousColumnError, "'y'"),
        ('smiles,y\nC,"1\nCC,2\n', FormatError, "row 1"),
        ("name,value\nabc,1\nxyz,2\n", AmbiguousColumnError, "name, value"),
        ("a,b,y\nCCO,CCN,1\nCCC,CCCC,2\n", AmbiguousColumnError, "'a', 'b'"),
        (gzip.compress(b"smiles\n" + b"CCO\n" * 5000, mtime=0)[:40], FormatError, "t.csv"),
        (bz2.compress(b"smiles\nC\n"), FormatError, "bzip2"),
        (pickle.dumps({"smiles": ["C"]}), FormatError, "pickle"),
        ('{"smiles": ["C"]}', FormatError, "JSON"),
        (b"PAR1 and then nothing of the kind", FormatError, "t.csv"),
        ("CCO,1.5\nCCN,2\n", FormatError, r"\(CCO\)"),
    ],
)
def test_clear_errors(tmp_path: Path, content: str | bytes, kind: type[DataError], noun: str) -> None:
    with pytest.raises(kind, match=noun) as caught:
        read_table(write(tmp_path, content))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("name", "hint"), [("a.csv", "header line"), ("a.sdf", "a record for each"), ("a.smi.gz", "a line for each")]
)
def test_an_empty_file_is_told_what_it_lacks(tmp_path: Path, name: str, hint: str) -> None:
    content = gzip.compress(b"\n") if name.endswith("gz") else b""
    with pytest.raises(EmptyError, match=name) as caught:
        read_table(write(tmp_path, content, name))
    assert hint in caught.value.hint


def test_a_header_that_is_not_utf8_is_shown_and_how_to_convert_it(tmp_path: Path) -> None:
    path = write(tmp_path, "smiles,pIC50 (\u00b5M)\nCC,1\nCCO,2\n".encode("cp1252"))
    with pytest.raises(FormatError, match="'smiles,pIC50 \\(\ufffdM\\)'") as caught:
        read_table(path)
    assert "iconv -f WINDOWS-1252 -t UTF-8" in caught.value.hint


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\nsmiles,y\nCCO,1\nCC,2\n",
        "# one\n# two, three\nsmiles,y\nCCO,1\nCC,2\n",
        "# two, cells\nsmiles,y\nCCO,1\nCC,2\n",
        "#x\nsmiles\nCCO\nCC\n",
        "# made by hand\nstructure_text;y\nCCO;1\nCC;2\nCC;3\n",
    ],
)
def test_a_comment_before_the_header_is_named(tmp_path: Path, text: str) -> None:
    with pytest.raises(FormatError, match=r"\(#") as caught:
        read_table(write(tmp_path, text))
    assert "grep -v" in caught.value.hint


def test_a_header_may_begin_with_a_hash(tmp_path: Path) -> None:
    assert read_table(write(tmp_path, "#smiles,y\nCCO,1\n")).entities[0].name == "#smiles"
    assert list(read_table(write(tmp_path, "#,smiles\n1,CCO\n2,CC\n")).smiles) == ["CCO", "CC"]


def test_molecules_are_no_target() -> None:
    columns = {"smiles": ["CCO", "CCN"], "y": [1.0, 2.5]}
    for named in ({"targets": ["smiles"]}, {"weight": "smiles"}, {"split": "smiles"}):
        with pytest.raises(AmbiguousColumnError, match="'smiles'"):
            read_table(columns, **named)
    with pytest.raises(AmbiguousColumnError, match="'x'"):
        read_table({"x": ["CCO", "CCN"], "y": [1.0, 2.5]}, targets=["x"])
    with pytest.raises(AmbiguousColumnError, match="'smiles'"):
        read_table(columns, smiles="smiles", targets=["y", "smiles"])
    with pytest.raises(AmbiguousColumnError, match="a, y"):
        read_table({"a": ["x1", "x2"], "y": [1.0, 2.5]}, targets=["y"])


OPEN = {
    "a target that is not there": ("t.csv", "smiles,y\nC,1\n", {"targets": ["z"]}),
    "packed": ("t.csv.gz", gzip.compress(b"smiles,y\nC,1\n", mtime=0), {"targets": ["z"]}),
    "no SMILES": ("t.csv", "a,y\n1,1\n", {}),
    "lines": ("t.smi", "CCO x\n", {"targets": ["z"]}),
    "records": ("t.sdf", "x\n\n\n\nM  END\n$$$$\n", {"targets": ["z"]}),
    "two columns of a name": ("t.csv", "smiles,y,y\nC,1,2\n", {}),
    "JSON": ("t.csv", '{"a": 1}', {}),
    "a label in the last row": ("t.csv", "smiles,y\n" + "C,1\n" * 9 + "C,>1\n" * 12, {"targets": ["y"]}),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", OPEN)
def test_no_file_stays_open_where_one_is_refused(tmp_path: Path, case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    name, content, asked = OPEN[case]
    path = write(tmp_path, content, name)
    held = []
    monkeypatch.setattr("sys.unraisablehook", lambda found: held.append(found.exc_value))
    for read in [read_table] + [lambda *a, **k: list(iter_tables(*a, chunk_rows=2, **k))] * (case[:7] != "a label"):
        with warnings.catch_warnings():
            warnings.simplefilter("error", ResourceWarning)
            with pytest.raises(DataError):
                read(path, **asked)
            gc.collect()
    assert not held


def test_header_alone_and_one_row(tmp_path: Path) -> None:
    assert len(read_table(write(tmp_path, "smiles,y\n"), targets=["y"])) == 0
    assert [len(t) for t in iter_tables(write(tmp_path, "smiles,y\n"))] == [0]
    for header in ("smiles,y", "smiles,y\r\n", "\ufeffsmiles,y"):
        assert len(read_table(write(tmp_path, header), targets=["y"])) == 0
    assert read_table(write(tmp_path, "smiles,y\nC,1\n"), targets=["y"]).y.tolist() == [[1.0]]


def test_missing_files_and_permissions(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "training.csv")
    with pytest.raises(MissingFileError, match=r"'training\.csv'"):
        read_table(tmp_path / "trainin.csv")
    with pytest.raises(MissingFileError, match="nowhere"):
        read_table(tmp_path / "nowhere" / "x.csv")
    for name in ("bbbp", "bbbp@c1", "Esol"):  # a name alone is a file's, which is not there
        with pytest.raises(MissingFileError, match=f"'{name}'\n.*'dataset:{name}'"):
            read_table(name)
    with pytest.raises(MissingFileError) as error:
        read_table(str(tmp_path / "bbbp"))
    assert "dataset:" not in str(error.value), "that is a path"
    with pytest.raises(FormatError, match=tmp_path.name):
        read_table(tmp_path)
    with pytest.raises(FormatError, match=r"\['CCO'\]"):
        read_table("CCO")
    path = write(tmp_path, SMALL, "secret.csv")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: let the system say no itself
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "open", lambda *a, **k: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
            with pytest.raises(CannotReadError, match=r"secret\.csv"):
                read_table(path)
    else:
        with pytest.raises(CannotReadError, match=r"secret\.csv"):
            read_table(path)


def test_a_first_line_that_is_a_molecule_may_be_said_to_be_a_name(tmp_path: Path) -> None:
    path = write(tmp_path, "CCO,y\nCCN,2\n")
    assert list(read_table(path, smiles="CCO").smiles) == ["CCN"]


def test_a_target_is_no_feature_and_a_feature_comes_once() -> None:
    columns = {"smiles": ["C", "CC"], "y": [1.0, 2.5], "f": [1.0, 2.0]}
    with pytest.raises(AmbiguousColumnError, match="'y'"):
        read_table(columns, targets=["y:regression"], features=["f", "y"])
    with pytest.raises(AmbiguousColumnError, match="'f'"):
        read_table(columns, targets=["y"], features=["f", "F"])


def test_what_is_no_list_of_smiles() -> None:
    assert read_table(["CC", parse_smiles("CCO").mol, 5]).smiles.tolist() == ["CC", "CCO", "5"]
    with pytest.raises(ShapeError, match="2"):
        read_table(np.array([["CC", "CCO"]]))


def test_a_typographic_minus_is_named() -> None:
    with pytest.raises(LabelError, match=r"\u22121.5") as caught:
        read_table({"smiles": ["C"], "y": ["\u22121.5"]}, targets=["y"])
    assert "plain hyphen" in caught.value.hint


@pytest.mark.parametrize(
    "wrong",
    [1, None, "CCO", b"CCO", {"a": 1}, np.array(1.0), np.ones((2, 2)), iter([1, 2])],
    ids=lambda value: type(value).__name__,
)
def test_a_column_is_a_list_of_values(wrong: object) -> None:
    with pytest.raises(FormatError, match="'y'"):
        read_table({"smiles": ["CC", "CCO"], "y": wrong}, targets=["y"])
    with pytest.raises(FormatError, match="'smiles'"):
        read_table({"smiles": wrong})


@pytest.mark.parametrize(
    "option", [{"smiles": "nix"}, {"weight": "nix"}, {"id": "nix"}, {"features": ["nix"]}, {"unit": "nM"}]
)
def test_options_of_a_file_are_refused_for_a_table_that_is_read_already(option: dict) -> None:
    with pytest.raises(UnusedSettingError, match=next(iter(option))):
        read_table("builtin:chembl2321810", **option)
