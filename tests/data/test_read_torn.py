"""Rows of delimited text that are not sound: each stays a row in its place, with a reason, however the file is cut."""

from __future__ import annotations

import csv
import gzip
import io
from pathlib import Path
from random import Random

import numpy as np
import pandas as pd
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import molgraph
from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import CellError, FormatError
from molgraph.data.audit import audit
from molgraph.data.read import read_table
from molgraph.data.table import Table
from molgraph.train.stream import predict_stream
from tests.data.chunked import iter_tables

ODD = "smiles,y,id,w\nCCO,1,a,1\nCC,2\nCCN,3,007,1\nCCC,4,b,1,x\nC,5,Mül,1\nCl,6,d,2\n".replace("Mül", "M\udcfcl")


def write(folder: Path, content: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8", "surrogateescape"))
    return path


def test_odd_rows_are_rows_with_a_reason(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, ODD), targets=["y"], weight="w")
    assert list(table.smiles) == ["CCO", "CC", "CCN", "CCC", "C", "Cl"]
    assert list(table.ids) == ["a", "", "007", "b", "M\ufffdl", "d"]
    assert list(table.status) == ["ok", "unreadable", "ok", "unreadable", "unreadable", "ok"]
    assert list(table.reason) == [
        "",
        "the row has 2 cells, the header has 4",
        "",
        "the row has 5 cells, the header has 4",
        "the row is not UTF-8 text (in column 'id')",
        "",
    ]
    np.testing.assert_equal(table.y[:, 0], [1, np.nan, 3, np.nan, np.nan, 6])
    assert table.weights.tolist() == [1, 0, 1, 0, 0, 2]


def test_on_error_drops_them_or_stops_at_the_first(tmp_path: Path) -> None:
    path = write(tmp_path, ODD)
    assert list(read_table(path, on_error="drop").ids) == ["a", "007", "d"]
    with pytest.raises(CellError, match=r"row 2: .* 2 .* 4"):
        read_table(path, on_error="stop")


def test_only_the_columns_that_are_read_are_judged(tmp_path: Path) -> None:
    path = write(tmp_path, b"smiles,y,note\nCC,1,caf\xe9\nCCC,2,x\nCCO,3,y\n")
    assert read_table(path, targets=["y"]).ok.all()
    assert list(read_table(path, id="note").status) == ["unreadable", "ok", "ok"]


def test_cells_in_the_wrong_column_are_not_believed(tmp_path: Path) -> None:
    """A comma too many shifts text into numbers, classes and split words: none of it counts."""
    path = write(tmp_path, "smiles,name,y,c,part,f\nC,a,1,u,train,1\nCC,b, b2,2,v,test,5\nCCC,c,3,w,test,6\n")
    table = read_table(path, targets=["y", "c:multiclass"], split="part", features=["f"])
    assert table.targets == (Target("y"), Target("c", "multiclass", classes=("u", "w")))
    assert list(table.split) == ["train", "", "test"] and list(table.status) == ["ok", "unreadable", "ok"]
    assert table.reason[1] == "the row has 7 cells, the header has 6"


@pytest.mark.parametrize(
    ("content", "noun"),
    [
        ("smiles,y\nC,1,2\nC,1,2\nC,1\n", "row 1 has 3 .* 2"),
        ("smiles,y\n" + "C;1\n" * 50, "row 1 has 1 .* 2"),
        (b"smiles,name\n" + b"C,\xe9\n" * 30, "UTF-8 .*row 1"),
        ('smiles,x,y\nC,1,2\nC,"1,2\nCC,1,3\n', "row 2 .*several lines"),
        ('smiles,x,y\nC,1,2\nC,1,2\nC,"1,2\n' + "CC,1,3\n" * 9 + 'C,"1",1,9\n', "row 3 .*several lines"),
        ('smiles,y\nC,1\nCC\nC,"1\nCC,2\n', "row 3 opens"),
        (b'smiles,y,n\rCCO,1,"x\rCCN,2,y\rCCC,3,z\r', "row 1 opens"),
        (b'smiles,x,y\rC,1,2\rC,"1,2\rCC,1,3\r', "row 2 .*several lines"),
    ],
)
def test_a_file_that_is_mostly_unsound_or_swallows_rows_is_refused(tmp_path: Path, content, noun: str) -> None:
    with pytest.raises(FormatError, match=noun) as caught:
        read_table(write(tmp_path, content), smiles="smiles")
    assert caught.value.hint


def test_a_quoted_end_of_line_before_an_odd_last_row_is_no_open_quote(tmp_path: Path) -> None:
    table = read_table(write(tmp_path, 'smiles,id\nC,"a\nb"\nCC\n'))
    assert list(table.ids) == ["a\nb", ""] and list(table.status) == ["ok", "unreadable"]
    assert list(read_table(write(tmp_path, b'smiles,id\rC,"a\rb"\r')).ids) == ["a\rb"]


def test_odd_rows_alone_in_a_block_and_at_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("molgraph.data.reading.delimited.PIECE_ROWS", 4)
    lines = (
        [f"CC,{i}" for i in range(300)] + [f"C,{i},x" for i in range(300, 700)] + [f"C,{i}" for i in range(700, 710)]
    )
    lines += ["C"] * 40
    path = write(tmp_path, "smiles,id\n" + "\n".join(lines))
    table = read_table(path)
    assert list(table.ids) == [line.split(",")[1] if "," in line else "" for line in lines]
    assert (table.status == "ok").tolist() == [line.count(",") == 1 for line in lines]
    for rows in (1, 64, 333):
        joined = pd.concat([t.to_frame() for t in iter_tables(path, chunk_rows=rows)], ignore_index=True)
        pd.testing.assert_frame_equal(joined, table.to_frame())


cell = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n\U0010ffff"), max_size=8)
smiles = st.sampled_from(["CCO", "c1ccccc1", "[Na+].[Cl-]"])
odd_rows = st.one_of(
    st.tuples(st.just("short"), st.lists(cell.filter(lambda t: t != ""), min_size=1, max_size=2)),
    st.tuples(st.just("long"), st.lists(cell, min_size=4, max_size=6)),
    st.tuples(st.just("bytes"), st.tuples(smiles, cell, cell.map(lambda t: t + "\udcff\udce9")).map(list)),
)


@settings(max_examples=80, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    odd=st.lists(odd_rows, max_size=12),
    sound=st.lists(st.tuples(smiles, cell, cell), max_size=12),
    order=st.randoms(use_true_random=False),
    end=st.sampled_from(["\n", "\r\n"]),
    packed=st.booleans(),
    delimiter=st.sampled_from([",", "\t", ";"]),
    chunk_rows=st.integers(1, 7),
    piece=st.sampled_from([2, 1000]),
)
def test_rows_in_are_rows_out(tmp_path, odd, sound, order: Random, end, packed, delimiter, chunk_rows, piece) -> None:
    sound = [*sound, *[("CC", "fill", "x")] * (len(odd) + 1)]  # most rows are sound
    rows = [("ok", list(row)) for row in sound] + odd
    order.shuffle(rows)
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
    writer.writerows([["smiles", "name", "part"], *(row for _, row in rows)])
    content = text.getvalue().encode("utf-8", "surrogateescape")
    path = write(tmp_path, gzip.compress(content) if packed else content)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("molgraph.data.reading.delimited.PIECE_ROWS", piece)
        table = read_table(path, smiles="smiles", id="name", split="part")
        chunks = list(iter_tables(path, chunk_rows=chunk_rows, smiles="smiles", id="name", split="part"))
    assert len(table) == len(rows)
    padded = [
        [c.encode("utf-8", "surrogateescape").decode("utf-8", "replace") for c in [*row, "", ""]] for _, row in rows
    ]
    assert list(table.ids) == [row[1] for row in padded] and list(table.smiles) == [row[0] for row in padded]
    assert (table.status == "ok").tolist() == [kind == "ok" for kind, _ in rows]
    for (kind, row), reason in zip(rows, table.reason, strict=True):
        cells = f"the row has {len(row)} cell{'s' * (len(row) > 1)}, the header has 3"
        assert reason == {"ok": "", "bytes": "the row is not UTF-8 text (in column 'part')"}.get(kind, cells)
    assert [len(c) for c in chunks[:-1]] == [chunk_rows] * (len(chunks) - 1)
    joined = pd.concat([c.to_frame() for c in chunks], ignore_index=True)
    pd.testing.assert_frame_equal(joined, table.to_frame(), check_dtype=False)


def test_a_training_run_and_a_stream_carry_them_through(tmp_path: Path) -> None:
    rows = [f"{'C' * (i % 9 + 1)},{i},{i % 5}" for i in range(30)]
    rows[4], rows[20] = "CC,4", "CCC,20,1,2"
    path = write(tmp_path, "smiles,id,y\n" + "\n".join(rows) + "\nCO,caf\udce9,3\n")
    result = molgraph.train(path, targets=["y"], model="mean", split="random")
    assert len(result.table) == 31 and audit(result.table).to_frame() is not None
    done = molgraph.predict_file(result.model, path, tmp_path / "out.csv", id="id")
    lines = (tmp_path / "out.csv").read_text().splitlines()
    assert (done.rows, done.failed, len(lines)) == (31, 3, 32)
    assert lines[5] == '4,CC,,,,,,,unreadable,"the row has 2 cells, the header has 3"'
    assert lines[31] == "caf\ufffd,CO,,,,,,,unreadable,the row is not UTF-8 text (in column 'id')"


def test_a_stream_that_was_stopped_goes_on_to_the_same_bytes(tmp_path: Path) -> None:
    rows = [f"{'C' * (i % 9 + 1)},{i:03d}" + ["", ",x", "\udcff", ""][i % 4] for i in range(60)]
    path = write(tmp_path, "smiles,id\n" + "\n".join(rows) + "\nCO\n")

    class Stops:
        calls = 0

        def __init__(self, after: int) -> None:
            self.after = after

        def predict(self, table: Table) -> Prediction:
            self.calls += 1
            if self.calls > self.after:
                raise KeyboardInterrupt
            value = np.where(table.ok, [float(len(s)) for s in table.smiles], np.nan)[:, None]
            return Prediction(table.ids, (Target("y"),), value, table.status, table.reason, inputs=table.smiles)

    options = {"chunk_rows": 7, "model_hash": "m", "id": "id"}
    whole = predict_stream(Stops(99), path, tmp_path / "whole.csv", **options)
    assert (whole.rows, whole.failed) == (61, 31)
    for after in (1, 4):
        out = tmp_path / f"{after}.csv"
        with pytest.raises(KeyboardInterrupt):
            predict_stream(Stops(after), path, out, **options)
        assert predict_stream(Stops(99), path, out, **options).resumed == 7 * after
        assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
