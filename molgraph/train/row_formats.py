"""Choose how predictions are written by a file's ending; among the formats is an Excel workbook."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import IO, Any

import numpy as np
import pyarrow as pa

from molgraph.base.errors import UnknownNameError, UnsupportedError
from molgraph.base.workbook import write_workbook
from molgraph.train.rowformat import Delimited, Numbers, Output, Parquet, RowFormat, SDRecords, arrow_array


class WorkbookRows(Parquet):
    """A workbook of one sheet; a chunk is an Arrow stream.

    Predicted numbers are numbers. Texts are texts, but a kept column in which all cells are numbers as a spreadsheet
    writes them becomes numbers again.
    """

    def join(self, chunks: Iterator[IO[bytes]], file: IO[bytes]) -> None:
        tables = [pa.ipc.open_stream(chunk).read_all() for chunk in chunks]
        names = tables[0].column_names
        rows = chain.from_iterable(zip(*columns, strict=True) for columns in map(_columns, [pa.concat_tables(tables)]))
        write_workbook(file, names, rows)


class PackedBits(Parquet):
    """Parquet whose predicted numbers, each -1 or 1, are one column ``bits`` of bytes; null where there are none.

    The first of eight numbers is the highest bit of a byte, set where it is 1.
    """

    def chunk(self, output: Output, first: bool) -> bytes:
        numbers = {name: v for name, v in output.columns.items() if isinstance(v, np.ndarray) and v.dtype != object}
        x = np.stack([*numbers.values()], axis=1) if numbers else np.zeros((0, 1))
        there = np.asarray(~np.isnan(x).any(axis=1))
        if output.level != "row" or x.shape[1] % 8 or not (np.abs(x[there]) == 1).all():
            words = ".bits holds binary codes, of a multiple of 8 numbers that are -1 or 1"
            raise UnsupportedError(words, hint="molgraph embed MODEL DATA --code 256 --code-by binary -o library.bits")
        codes = [row.tobytes() if ok else None for row, ok in zip(np.packbits(x > 0, axis=1), there, strict=True)]
        arrays = {name: arrow_array(v) for name, v in output.columns.items() if name not in numbers}
        arrays["bits"] = pa.array(codes, pa.binary(x.shape[1] // 8))
        batch = pa.record_batch([*arrays.values()], names=[*arrays])
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return sink.getvalue().to_pybytes()


def row_format(path: str) -> RowFormat:
    """The format that a file's name asks for; ``-`` is csv, and an unknown ending an ``UnknownNameError``."""
    name = Path(path).name.lower()
    if name == "-" or "." not in name:
        return Delimited(",", False)
    known: dict[str, RowFormat] = {".parquet": Parquet(), ".npy": Numbers(), ".xlsx": WorkbookRows()}
    known[".bits"] = PackedBits()
    for end, compressed in (("", False), (".gz", True)):
        known |= {f".csv{end}": Delimited(",", compressed), f".tsv{end}": Delimited("\t", compressed)}
        known[f".sdf{end}"] = SDRecords(compressed)
    for suffix, file_format in known.items():
        if name.endswith(suffix):
            return file_format
    words = f"cannot write {Path(path).name!r}: unknown ending"
    raise UnknownNameError(words, hint="known: " + ", ".join(sorted(known)))


def _columns(table: pa.Table) -> list[list[Any]]:
    """The cells of each column."""
    out, ours = [], {"id", "status", "reason"}
    for name in table.column_names:
        values = table[name].to_pylist()
        if pa.types.is_float32(table[name].type):
            values = [None if v is None else float(str(np.float32(v))) for v in values]
        elif pa.types.is_string(table[name].type):
            numbers = None if name in ours else _numbers(values)
            values = numbers or [v or None for v in values]
        else:
            values = [v if isinstance(v, int | float) or v is None else _listed(v) for v in values]
        out.append(values)
    return out


def _listed(value: Any) -> str:
    """Values of atoms as JSON, and anything else as text."""
    short = [None if v is None else float(str(np.float32(v))) for v in value] if isinstance(value, list) else None
    return str(value) if short is None else json.dumps(short)


def _numbers(texts: list[str | None]) -> list[int | float | None] | None:
    """Texts as numbers, where each is one as Python writes it; None where one is not, or all are empty.

    Example:
        >>> _numbers(["1", "", "2.5"]), _numbers(["007"]), _numbers(["1e400"])
        ([1, None, 2.5], None, None)
    """
    out: list[int | float | None] = []
    for text in texts:
        number: int | float | None = None
        if text:
            try:
                number = int(text) if len(text) < 16 and text.lstrip("-").isdigit() else float(text)
            except ValueError:
                return None
            if str(number) != text:
                return None
        out.append(number)
    return out if any(v is not None for v in out) else None
