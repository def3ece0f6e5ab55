"""Delimited text (csv, tsv, semicolons, bars) in; chunks of text columns out, in constant memory."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.csv as pacsv

from molgraph.base.errors import DataError
from molgraph.data.chunks import SAMPLE_ROWS, Chunk, recut
from molgraph.data.opening import Opened, broken, open_bytes

BLOCK_BYTES = 1 << 22  # also the longest row that is read
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}


class DelimitedReader:
    """A file of delimited text with a header line.

    Args:
        source: a path, or ``-``.
        opened: that source already opened, whose sample says what stands in it.
    """

    smiles: str | None = None
    id: str | None = None

    def __init__(self, source: str | Path, opened: Opened) -> None:
        self._source = source
        self._opened: Opened | None = opened
        self.name, self.rereadable = opened.name, str(source) != "-"
        self._encoding = _encoding(opened)
        text = opened.sample.decode(self._encoding, errors="replace").removeprefix("\ufeff")
        self.delimiter = find_delimiter(text, opened.suffix)
        self._lines = _rows(text, self.delimiter)
        self._header = self._lines[0] if self._lines else []
        self.names = _header_names(self._header, self.name, self.delimiter)

    def sample(self) -> pa.Table:
        width = len(self.names)
        rows = [row for row in self._lines[1 : SAMPLE_ROWS + 1] if len(row) == width]
        return pa.table({name: pa.array([row[j] for row in rows], pa.string()) for j, name in enumerate(self.names)})

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        return recut(self._pieces(columns), rows)

    def _pieces(self, columns: list[str]) -> Iterator[pa.Table]:
        opened, self._opened = self._opened, None
        opened = opened or open_bytes(self._source)
        raw = [self._header[self.names.index(name)] for name in columns]
        last = self._header[-1]  # an unclosed quote shows in the last column
        wanted = [*raw, last] if last not in raw else raw
        tail = _Tail(opened.stream)
        try:
            reader = pacsv.open_csv(
                tail,
                read_options=pacsv.ReadOptions(use_threads=False, block_size=BLOCK_BYTES, encoding=self._encoding),
                parse_options=pacsv.ParseOptions(
                    delimiter=self.delimiter,
                    newlines_in_values=True,
                    ignore_empty_lines=len(self.names) > 1,  # in a file of one column an empty line is a row
                ),
                convert_options=pacsv.ConvertOptions(
                    include_columns=wanted, column_types=dict.fromkeys(wanted, pa.string()), strings_can_be_null=False
                ),
            )
            n, end = 0, ""
            for batch in reader:
                if batch.num_rows:
                    n, end = n + batch.num_rows, batch.column(wanted.index(last))[-1].as_py()
                yield pa.Table.from_batches([batch]).select(raw).rename_columns(columns)
        except pa.ArrowInvalid as error:
            if "Empty CSV file" in str(error):  # a header alone, without an end of line
                return
            raise self._explain(str(error)) from None
        except (EOFError, OSError) as error:
            raise broken(self.name, error) from None
        finally:
            opened.stream.close()
        if "\n" in end and not tail.end.rstrip(b"\r\n").endswith(b'"'):
            raise DataError(
                f"{self.name}: row {n} opens a quote that is never closed", hint='close it, or write " as ""'
            )

    def _explain(self, text: str) -> DataError:
        """Arrow's message in our words; its rows count the header as the first."""
        if found := re.search(r"(?:Row #(\d+): )?Expected (\d+) columns, got (\d+)", text):
            row = f"row {int(found[1]) - 1}" if found[1] else "a row"
            return DataError(
                f"{self.name}: {row} has {found[3]} cells, the header has {found[2]}",
                hint=f"the delimiter was taken to be a {DELIMITERS[self.delimiter]}; quote cells that hold one",
            )
        if "invalid UTF8" in text:
            row = found[1] if (found := re.search(r"Row #(\d+)", text)) else ""
            where = f" in row {int(row) - 1}" if row else ""
            return DataError(
                f"{self.name} is not UTF-8 text{where}",
                hint="convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT",
            )
        if "straddling" in text:
            return DataError(
                f"{self.name} has a row of more than {BLOCK_BYTES} bytes", hint="look for a quote that is never closed"
            )
        return DataError(f"{self.name} cannot be read: {' '.join(text.split())[:300]}")


class _Tail(io.RawIOBase):
    """Passes bytes on and remembers the last few."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream, self.end = stream, b""

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> bytes:
        piece = self._stream.read(n)
        self.end = (self.end + piece[-8:])[-8:]
        return piece


def _encoding(opened: Opened) -> str:
    if opened.sample[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "utf-16"
    return "utf-8"


def _rows(text: str, delimiter: str, limit: int = SAMPLE_ROWS + 1) -> list[list[str]]:
    """The first complete rows, blank lines left out."""
    csv.field_size_limit(1 << 24)
    out: list[list[str]] = []
    try:
        for row in csv.reader(io.StringIO(text, newline=""), delimiter=delimiter):
            if row:
                out.append(row)
            if len(out) >= limit:
                break
    except csv.Error:
        pass  # the sample may stop within a row; Arrow reads the file itself
    return out


def find_delimiter(text: str, suffix: str = "") -> str:
    """The delimiter whose cells a row are most alike over the first rows; a comma where there is one column.

    Example:
        >>> find_delimiter("smiles;y\\nCCO;5,48\\nCCN;6,01\\n")
        ';'
    """
    usual = {".tsv": "\t", ".tab": "\t"}.get(suffix, ",")
    best, best_score = usual, (0.0, 0.0, False)
    for delimiter in DELIMITERS:
        rows = _rows(text, delimiter, 50)
        if not rows or len(rows[0]) < 2:
            continue
        width = len(rows[0])
        body = rows[1:-1] or rows[1:] or rows  # the sample may stop within its last row
        alike = sum(len(row) == width for row in body) / len(body)
        score = (round(alike, 1), width + 0.5 * (delimiter == usual), delimiter == usual)
        if score > best_score:
            best, best_score = delimiter, score
    return best


def _header_names(header: list[str], name: str, delimiter: str) -> list[str]:
    """Column names without stray blanks; unnamed columns get a number."""
    if not any(cell.strip() for cell in header):
        raise DataError(f"{name} is empty", hint="it needs a header line with a column of SMILES")
    names = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(header)]
    check_unique(names, name)
    return names


def check_unique(names: list[str], source: str) -> None:
    """Raise ``DataError`` where two columns have one name."""
    double = sorted({n for n in names if names.count(n) > 1})
    if double:
        raise DataError(
            f"{source} has two columns named {', '.join(map(repr, double))}", hint="rename or delete one of them"
        )
