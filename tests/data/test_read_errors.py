"""Files that cannot be read as asked: one clear sentence each, and what to do next."""

from __future__ import annotations

import bz2
import gzip
import os
import pickle
from pathlib import Path

import pytest

from molgraph.base.errors import DataError, StorageError
from molgraph.data.read import iter_tables, read_table

SMALL = "smiles,y,id\nCCO,1.5,007\nCCN,,NA\n,2.5,x\n"


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "is empty"),
        ("\n\n  \n", "is empty"),
        ("smiles,y,y\nC,1,2\n", "two columns named 'y'"),
        ("smiles,y, y\nC,1,2\n", "two columns named 'y'"),
        ("smiles,y\nC,1\nCC,2,3\n", "row 2 has 3 cells, the header has 2"),
        ("smiles,y\nC,1\nCC\n", "row 2 has 1 cells, the header has 2"),
        ('smiles,y\nC,"1\nCC,2\n', "opens a quote that is never closed"),
        (b"smiles,y\nC,1\nC,2\xff\n", "not UTF-8 text in row 2"),
        ("name,value\nabc,1\nxyz,2\n", "no column holds SMILES"),
        ("a,b,y\nCCO,CCN,1\nCCC,CCCC,2\n", "several columns hold SMILES: 'a', 'b'"),
        (gzip.compress(b"smiles\n" + b"CCO\n" * 5000)[:40], "cannot be read to its end"),
        (bz2.compress(b"smiles\nC\n"), "packed with bzip2"),
        (pickle.dumps({"smiles": ["C"]}), "is a pickle"),
        ('{"smiles": ["C"]}', "is JSON"),
        (b"PAR1 and then nothing of the kind", "cannot be read to its end"),
    ],
)
def test_clear_errors(tmp_path: Path, content: str | bytes, words: str) -> None:
    with pytest.raises(DataError, match=words.replace("(", r"\(")) as caught:
        read_table(write(tmp_path, content))
    assert caught.value.hint


def test_header_alone_and_one_row(tmp_path: Path) -> None:
    assert len(read_table(write(tmp_path, "smiles,y\n"), targets=["y"])) == 0
    assert [len(t) for t in iter_tables(write(tmp_path, "smiles,y\n"))] == [0]
    assert read_table(write(tmp_path, "smiles,y\nC,1\n"), targets=["y"]).y.tolist() == [[1.0]]


def test_missing_files_and_permissions(tmp_path: Path) -> None:
    write(tmp_path, SMALL, "training.csv")
    with pytest.raises(StorageError, match=r"did you mean 'training\.csv'"):
        read_table(tmp_path / "trainin.csv")
    with pytest.raises(StorageError, match="no folder"):
        read_table(tmp_path / "nowhere" / "x.csv")
    with pytest.raises(DataError, match="is a folder"):
        read_table(tmp_path)
    with pytest.raises(DataError, match=r"give a list: \['CCO'\]"):
        read_table("CCO")
    path = write(tmp_path, SMALL, "secret.csv")
    path.chmod(0)
    if os.access(path, os.R_OK):  # root reads everything: let the system say no itself
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Path, "open", lambda *a, **k: (_ for _ in ()).throw(PermissionError(13, "Permission denied")))
            with pytest.raises(StorageError, match="no permission"):
                read_table(path)
    else:
        with pytest.raises(StorageError, match="no permission"):
            read_table(path)
