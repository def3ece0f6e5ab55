"""Damaged files and files that would fill the memory: a sentence, or a row with a reason; never a traceback."""

from __future__ import annotations

import gzip
import io
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest
from rdkit import Chem

from molgraph.base.errors import DataError, FormatError, MolgraphError, TooLargeError
from molgraph.chem.molfile import MAX_LINE
from molgraph.data.read import iter_rows, read_table
from molgraph.data.reading import chunk as sizes
from molgraph.data.reading import delimited
from tests.data.chunked import iter_tables

BLOCK = "{}\n\n\n  1  0  0  0  0  0  0  0  0  0999 V2000\n    0.0000    0.0000    0.0000 C   0  0\nM  END\n"
BLOCK += "> <y>\n1\n\n$$$$\n"
N = 40_000  # rows of 300 characters: longer than the blocks of 4 MB that are read at once
PLAIN = {
    "csv": lambda: "smiles,y\n" + "".join(f"{'C' * (i % 9 + 1)},{i:0290d}\n" for i in range(N)),
    "smi": lambda: "".join(f"{'C' * (i % 9 + 1)} {i:0290d}\n" for i in range(N)),
    "sdf": lambda: "".join(BLOCK.format(i) for i in range(N // 80)),
}


def flipped(data: bytes, at: float) -> bytes:
    i = int(len(data) * at)
    return data[:i] + bytes([data[i] ^ 0x55]) + data[i + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: int(len(data) * 0.95)],
    "a byte of the stream": lambda data: flipped(data, 0.6),
    "the checksum": lambda data: data[:-6] + b"xx" + data[-4:],
    "a tail of something else": lambda data: data + b"and here ends the file",
    "a later member": lambda data: data + data[:10] + b"\xff" + data[11:],  # zlib.error, which is no OSError
    "zeroes in the middle": lambda data: data[: len(data) // 2] + bytes(500) + data[len(data) // 2 + 500 :],
}


@pytest.mark.parametrize("damage", DAMAGE)
@pytest.mark.parametrize("kind", PLAIN)
def test_a_damaged_gzip_file_gives_its_first_rows_and_a_sentence(tmp_path: Path, kind: str, damage: str) -> None:
    path = tmp_path / f"t.{kind}.gz"
    path.write_bytes(DAMAGE[damage](gzip.compress(PLAIN[kind]().encode(), 6, mtime=0)))
    read: list[int] = []
    with pytest.raises(FormatError, match=path.name) as caught:
        read.extend(map(len, iter_tables(path, chunk_rows=1000)))
    assert "copy or download it again" in caught.value.hint
    assert read or kind != "smi"  # Arrow reads a csv ahead; an SD file is looked through for its fields' names first


@pytest.mark.parametrize("where", ["first page", "last page", "footer", "end"])
def test_a_damaged_parquet_file_is_refused_in_a_sentence(tmp_path: Path, where: str) -> None:
    path, out = tmp_path / "t.parquet", io.BytesIO()
    pd.DataFrame({"smiles": [f"{'C' * (i % 50 + 1)}O{i % 7}" for i in range(3000)]}).to_parquet(out, index=False)
    data = bytearray(out.getvalue())
    at = {"first page": 60, "last page": len(data) - 3000, "footer": len(data) - 200, "end": len(data) - 7}[where]
    data[at : at + 3] = b"\xff\xff\xff"
    path.write_bytes(data)
    try:
        tables = list(iter_tables(path, chunk_rows=500))
    except DataError:
        return
    assert sum(map(len, tables)) == 3000


MEASURED = """
import resource, sys
from molgraph.data.read import iter_rows
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    for rows in iter_rows(sys.argv[1], chunk_rows=8192):
        table = rows.table
        print(len(table), table.status[0], table.reason[0], len(table.smiles[0]))
except Exception as error:
    print(type(error).__name__, error)
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no getrusage there")
@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("t.smi.gz", f"1 unreadable a line of more than {MAX_LINE:,} characters; the first 1,000 are shown 1000"),
        ("t.sdf.gz", f"1 unreadable a line of more than {MAX_LINE:,} characters 0"),
        ("t.csv.gz", "TooLargeError"),
        ("t.gz", "TooLargeError"),
    ],
)
def test_an_endless_line_costs_no_memory(tmp_path: Path, name: str, said: str) -> None:
    """80 MB in one line, which was 400 MB in memory."""
    path = tmp_path / name
    head = b"smiles,y\nC,1\n" if "csv" in name else b""
    with gzip.open(path, "wb", 1) as file:
        file.write(head)
        for _ in range(80):
            file.write(b"C" * (1 << 20))
    done = subprocess.run([sys.executable, "-c", MEASURED, str(path)], capture_output=True, text=True, check=True)
    first, *_, megabytes = done.stdout.splitlines()
    assert first.startswith(said) and int(megabytes) < 60


def test_rows_around_a_line_that_is_too_long_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "t.smi"
    path.write_text("CC a\n" + "C" * (MAX_LINE * 3 + 5) + " long\nCCC b\r\n" + "N" * (MAX_LINE - 4) + " x\nO c")
    table = read_table(path)
    assert [str(i) for i in table.ids] == ["a", "", "b", "x", "c"]
    assert table.smiles.tolist()[::2] == ["CC", "CCC", "O"] and len(table.smiles[3]) == MAX_LINE - 4
    assert table.status.tolist() == ["ok", "unreadable", "ok", "unreadable", "ok"]
    path = tmp_path / "t.sdf"
    long = BLOCK.format("long").replace("> <y>\n1\n", "> <y>\n1\n\n> <z>\n" + "z" * (MAX_LINE * 2) + "\n")
    path.write_text(BLOCK.format("a") + long + BLOCK.format("b"))
    table = read_table(path, targets=["y"])
    assert table.ids.tolist() == ["a", "long", "b"] and table.status.tolist() == ["ok", "unreadable", "ok"]
    assert table.y[:, 0].tolist() == [1, 1, 1]


def test_a_record_without_end_and_rows_without_end_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from molgraph.chem import molfile

    monkeypatch.setattr(molfile, "MAX_RECORD", 2000)
    monkeypatch.setattr(molfile, "MAX_LINES", 100)
    path = tmp_path / "t.sdf"
    for more in ("x\n" * 200, "y" * 90 + "\n", "\n" * 200):
        path.write_text(BLOCK.format("a") + BLOCK.format("b").replace("$$$$", more * 30 + "$$$$") + BLOCK.format("c"))
        table = read_table(path)
        assert table.ids.tolist() == ["a", "b", "c"] and table.status.tolist() == ["ok", "unreadable", "ok"]
        assert table.reason[1] == "a record of more than 2,000 characters or 100 lines"
    monkeypatch.setattr(sizes, "MAX_CHUNK_BYTES", 5000)
    path.write_text("".join(BLOCK.format(i).replace("1\n\n$", "z" * 90 + "\n\n$") for i in range(100)))
    (tmp_path / "t.csv").write_text("smiles,y\n" + f"{'C' * 90},1\n" * 100)
    (tmp_path / "t.smi").write_text(f"{'C' * 90}\n" * 100)
    monkeypatch.setattr(delimited, "PIECE_ROWS", 10)
    for name, options in (("t.sdf", {"id": "y"}), ("t.csv", {}), ("t.smi", {})):
        with pytest.raises(TooLargeError, match="5,000"):
            list(iter_tables(tmp_path / name, chunk_rows=90, **options))
        assert sum(map(len, iter_tables(tmp_path / name, chunk_rows=10, **options))) == 100


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-32", "cp037"])
@pytest.mark.parametrize("kind", PLAIN)
def test_other_encodings_are_read_refused_or_rows_with_reasons(tmp_path: Path, kind: str, encoding: str) -> None:
    path = tmp_path / f"t.{kind}"
    data = PLAIN[kind]()[:2000].encode(encoding)
    for content in (data, data[:-1], data[1:]):
        path.write_bytes(content)
        try:
            table = read_table(path)
        except MolgraphError:
            continue
        assert all(
            (status == "ok") == (reason == "") for status, reason in zip(table.status, table.reason, strict=True)
        )


def test_a_file_of_as_many_lines_as_are_read_at_once(tmp_path: Path) -> None:
    path = tmp_path / "t.smi"
    path.write_text("".join(f"C {i}\n" for i in range(20_000)))
    assert [len(table) for table in iter_tables(path, chunk_rows=8192)] == [8192, 8192, 3616]


def test_several_columns_without_a_name_are_kept(tmp_path: Path) -> None:
    """Excel writes them for empty columns on the right."""
    (tmp_path / "t.csv").write_text("smiles,y,,\nCCO,1,a,\nCCN,2\nCCC,3,,b\n")
    (rows,) = iter_rows(tmp_path / "t.csv", chunk_rows=9, keep_columns=True)
    assert rows.columns.column_names == ["smiles", "y", "column 3", "column 4"]
    assert rows.columns.column("column 3").to_pylist() == ["a", None, ""]
    assert rows.table.reason[1] == "the row has 2 cells, the header has 4"


def test_fields_with_the_name_of_the_structure_are_kept(tmp_path: Path) -> None:
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO"))
    fields = "> <smiles>\nNNN\n\n> <title>\nT1\n\n> <smiles_2>\nX\n\n> <y>\n1\n\n"
    (tmp_path / "t.sdf").write_text(f"{block}{fields}$$$$\n")
    (rows,) = iter_rows(tmp_path / "t.sdf", chunk_rows=9, keep_columns=True)
    found = {name: rows.columns.column(name)[0].as_py() for name in rows.columns.column_names}
    assert found == {
        "smiles": "CCO", "title": "", "smiles_2": "X", "y": "1", "smiles_3": "NNN", "title_2": "T1"
    }  # fmt: skip


def test_lines_and_records_that_are_not_utf8_are_rows_with_a_reason(tmp_path: Path) -> None:
    (tmp_path / "t.smi").write_bytes(b"CCO M\xfcller-1\nCCN plain\nCCC M\xc3\xbcller-2\n")
    table = read_table(tmp_path / "t.smi")
    assert table.ids.tolist() == ["M\N{REPLACEMENT CHARACTER}ller-1", "plain", "M\xfcller-2"]
    assert table.reason.tolist() == ["the row is not UTF-8 text (in column 'name')", "", ""]
    block = Chem.MolToMolBlock(Chem.MolFromSmiles("CCO")).encode()
    one = block + b"> <who>\n%b\n\n> <IC50 (\xb5M)>\n1\n\n> <y>\n2\n\n$$$$\n"
    (tmp_path / "t.sdf").write_bytes(one % b"Jos\xe9" + one % b"Ann")
    (rows,) = iter_rows(tmp_path / "t.sdf", chunk_rows=9, id="who")
    assert rows.table.reason.tolist() == ["the row is not UTF-8 text (in column 'who')", ""]
    assert read_table(tmp_path / "t.sdf", targets=["y"]).ok.all()  # a field that is not read does no harm
    with pytest.raises(FormatError, match=r"'IC50 \(.M\)'"):
        read_table(tmp_path / "t.sdf", targets=["IC50 (\N{REPLACEMENT CHARACTER}M)"])


@pytest.mark.parametrize("before", ["", "\n", "\r\n", "\n  \n\t\n", "sep=;\n", "\nsep=;\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_what_stands_before_the_header_is_no_row(tmp_path: Path, before: str, mark: str) -> None:
    (tmp_path / "t.csv").write_bytes(f"{mark}{before}smiles;y;z\nCCO;1;a\n\nCCN;2\nCCC;3;b\n".encode())
    (rows,) = iter_rows(tmp_path / "t.csv", chunk_rows=9, keep_columns=True)
    assert rows.table.ids.tolist() == ["0", "1", "2"] and rows.table.smiles.tolist() == ["CCO", "CCN", "CCC"]
    assert rows.table.reason.tolist() == ["", "the row has 2 cells, the header has 3", ""]
    assert rows.names == ("smiles", "y", "z") and rows.columns.column("z").to_pylist() == ["a", None, "b"]
