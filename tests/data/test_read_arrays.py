"""Columns of rarer types are read as their values: Arrow's views, bytes, other byte orders, halves of characters."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from molgraph.data.read import iter_rows, read_table
from molgraph.data.table import make_table

TEXTS = ["CCO", None, "CC"]
PLAIN = pa.array(TEXTS)
COLUMNS = {
    "string_view": PLAIN.cast(pa.string_view()),
    "binary_view": PLAIN.cast(pa.binary()).cast(pa.binary_view()),
    "large_string": PLAIN.cast(pa.large_string()),
    "large_binary": PLAIN.cast(pa.large_binary()),
    "dictionary": PLAIN.dictionary_encode(),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_text_of_any_arrow_type_is_that_text_and_its_rows_can_be_taken(kind: str, tmp_path: Path) -> None:
    columns = {"smiles": COLUMNS[kind], "id": COLUMNS[kind]}
    columns["list"] = pa.array([["a"], None, []], pa.list_(pa.string()))
    columns["struct"] = pa.array([{"a": "x"}, None, {"a": None}], pa.struct([("a", pa.string())]))
    pq.write_table(pa.table(columns), tmp_path / "v.parquet")
    table = read_table(tmp_path / "v.parquet")
    assert table.smiles.tolist() == table.ids.tolist() == ["CCO", "", "CC"]
    (rows,) = iter_rows(tmp_path / "v.parquet", chunk_rows=9, keep_columns=True)
    taken = rows.columns.take(pa.array([2, 1]))
    assert taken["list"].to_pylist() == [[], None] and taken["struct"].to_pylist() == [{"a": None}, None]


def test_bytes_that_are_no_text_are_one_row_alone(tmp_path: Path) -> None:
    raw = [b"CCO", b"CC\xff", b"CCC", None, "CÖ".encode()]
    pq.write_table(pa.table({"smiles": raw, "id": [b"a", b"b", b"\xff", b"d", b"e"]}), tmp_path / "b.parquet")
    for source in (tmp_path / "b.parquet", pd.read_parquet(tmp_path / "b.parquet")):
        table = read_table(source, on_error="keep")
        assert table.smiles.tolist() == ["CCO", "b'CC\\xff'", "CCC", "", "CÖ"]
        assert table.ids.tolist() == ["a", "b", "b'\\xff'", "d", "e"]


@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">u8", np.longdouble, np.float16, "<i2", bool], ids=str)
def test_numbers_of_any_byte_order_and_width(dtype: object) -> None:
    y = np.array([0, 1, 1]).astype(dtype)
    smiles = ["CCO", "CC", "CCC"]
    for source in ({"smiles": smiles, "y": y}, pd.DataFrame({"smiles": smiles, "y": y})):
        assert read_table(source, targets=["y:regression"]).y[:, 0].tolist() == [0, 1, 1]


def test_half_a_character_is_written_out_wherever_it_stands() -> None:
    table = make_table(["\ud800", "CC"], ids=["\udc80", "b"])
    frame = table.to_frame()
    frame.to_csv(io.StringIO())
    assert frame["smiles"].tolist() == ["\\ud800", "CC"] and frame["id"].tolist() == ["\\udc80", "b"]
    assert read_table({"smiles": ["CC"], "\ud800": [1]}, targets=["\\ud800:regression"]).to_frame()["\\ud800"][0] == 1
