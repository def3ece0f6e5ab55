"""Read delimited text (csv, tsv, semicolons, bars) in chunks of text columns, in constant memory.

A row with another number of cells than the header, or with bytes that are no text, stays a row, with a reason.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice

import pyarrow as pa

from molgraph.base.errors import EmptyError, FormatError, TooLargeError
from molgraph.base.printable import count
from molgraph.data.reading.chunk import SAMPLE_ROWS, Chunk, Reader, check_unique, recut, table_of
from molgraph.data.reading.names import is_smiles_name
from molgraph.data.reading.source import SourceFile, is_torn, shown

MOST = 1 << 22  # characters of a row
PIECE_ROWS, PIECE_CELLS = 1_000, 500_000  # that are held as Python's texts, at most
_LEAST = 3  # lines of the sample: the header, a row, and one that may be cut
DELIMITERS = {",": "comma", "\t": "tab", ";": "semicolon", "|": "bar"}
#: Blank lines, and the line with which Excel is told the delimiter.
_BEFORE_HEADER = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*(?:sep=([,;\t|])(?:\r\n|\n|\r))?")


class DelimitedReader(Reader):
    """A file of delimited text with a header line."""

    def __init__(self, source: SourceFile) -> None:
        self._source = source
        self.name, self.rereadable = source.name, source.rereadable
        self.delimiter, lines = self._look()
        while len(lines) < _LEAST and not source.whole and len(source.sample) < MOST:
            source.look_further(min(8 * len(source.sample), MOST))
            self.delimiter, lines = self._look()
        if len(lines) == 1 and not source.whole:
            words = f"{self.name} has a header of more than {MOST:,} bytes"
            raise TooLargeError(words, hint="save it as parquet, or transposed")
        if not source.whole and len(lines) <= SAMPLE_ROWS:
            lines = lines[:-1] or lines  # the sample stops within its last row
        self._header = lines[0] if lines else []
        if any(map(is_torn, self._header)):
            raise self._not_utf8(f": its header reads {shown(self.delimiter.join(self._header))[:200]!r}")
        self._first = lines[1:]
        self._check_comment()
        if not any(map(str.strip, self._header)):
            raise EmptyError(f"{self.name} is empty", hint="it needs a header line with a column of SMILES")
        self.names = [cell.strip() or f"column {j + 1}" for j, cell in enumerate(self._header)]
        check_unique(self.names, self.name)
        self._check_first()

    def _look(self) -> tuple[str, list[list[str]]]:
        """The delimiter and the first rows of the sample, whose last may be cut."""
        text = self._source.text
        before = _BEFORE_HEADER.match(text)
        assert before is not None
        self._skip, text = len(before[0].splitlines()), text[before.end() :]
        delimiter = before[1] or find_delimiter(text, self._source.suffix)
        return delimiter, _first_rows(text, delimiter)

    def _check_comment(self) -> None:
        """Refuse a first line that is a remark: one with a # before a line of column names, or before wider rows."""
        head = self._header
        if not head or not head[0].lstrip().startswith("#") or any(map(is_smiles_name, head)):
            return
        named = any(is_smiles_name(cell) for row in self._first[:20] for cell in row)
        wider = 2 * sum(len(row) > len(head) for row in self._first) > len(self._first)
        split = len(head) == 1 and any(mark in cell for row in self._first[:1] for cell in row for mark in DELIMITERS)
        if named or wider or split:
            words = f"{self.name}: the first line is a comment ({head[0].strip()[:60]}), not a header"
            hint = "delete the lines before the line of column names, for example: grep -v '^#' IN > OUT"
            raise FormatError(words, hint=hint)

    def _check_first(self) -> None:
        """Refuse a file most of whose first rows are not sound: then it is not the rows that are wrong."""
        ragged = [len(row) != len(self.names) for row in self._first]
        torn = [any(map(is_torn, row)) for row in self._first]
        if 2 * sum(ragged) > len(ragged):
            n = ragged.index(True)
            words = f"{self.name}: {self._ragged(self._first[n], f'row {n + 1}')}; most of the first rows are like that"
            hint = f"the delimiter was taken to be a {DELIMITERS[self.delimiter]}; quote cells that hold one"
            raise FormatError(words, hint=hint)
        if 2 * sum(torn) > len(torn):
            raise self._not_utf8(f" in row {torn.index(True) + 1} and others")

    def sample(self) -> pa.Table:
        width = len(self.names)
        rows = [row for row in self._first if len(row) == width and not any(map(is_torn, row))]
        return pa.table({name: pa.array([row[j] for row in rows], pa.string()) for j, name in enumerate(self.names)})

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        return recut(self._pieces(columns), rows)

    def _pieces(self, columns: list[str]) -> Iterator[pa.Table]:
        """The rows in pieces, with a column of reasons as the last."""
        width, n_rows, rows, line = len(self.names), 0, list[list[str]](), ""

        def lines() -> Iterator[str]:
            nonlocal line
            for line in islice(self._source.lines(MOST, newline=""), self._skip, None):
                if len(line) == MOST:
                    raise csv.Error
                yield line

        csv.field_size_limit(MOST)
        reader = csv.reader(lines(), delimiter=self.delimiter)
        try:
            next(reader, None)  # the header
            while piece := list(islice(reader, max(1, min(PIECE_ROWS, PIECE_CELLS // width)))):
                # an empty line is a row where there is one column
                rows = [row for row in piece if row] if width > 1 else [row or [""] for row in piece]
                yield self._table(rows, columns, n_rows)
                n_rows += len(rows)
        except csv.Error:
            words = f"{self.name} has a row of more than {MOST} bytes"
            raise TooLargeError(words, hint="look for a quote that is never closed") from None
        if rows and len(rows[-1]) == width and re.search(r"[\r\n]", rows[-1][-1]) and line.rstrip("\r\n")[-1:] != '"':
            words = f"{self.name}: row {n_rows} opens a quote that is never closed"
            raise FormatError(words, hint='close it, or write " as ""')
        yield self._table([], columns, n_rows)

    def _table(self, rows: list[list[str]], columns: list[str], start: int) -> pa.Table:
        width, place = len(self.names), {name: j for j, name in enumerate(self.names)}
        reasons = [None if len(row) == width else self._reason(row, start + i) for i, row in enumerate(rows)]
        if any(reasons):
            rows = [[*row, *[None] * (width - len(row))] for row in rows]  # type: ignore[list-item]
        wanted = {name: place[name] for name in columns}
        return table_of({name: [row[j] for row in rows] for name, j in wanted.items()}, reasons)

    def _reason(self, row: list[str], number: int) -> str:
        """Why a row is none; one over several lines is refused: more likely a quote that swallows rows than a row."""
        if any(re.search(r"\n.|\r[^\n]", cell, re.DOTALL) for cell in row):
            words = f"row {number + 1} goes over several lines and has not the header's {len(self.names)} cells"
            hint = 'look for a quote that is never closed; write " as "" within a quoted cell'
            raise FormatError(f"{self.name}: {words}", hint=hint)
        return self._ragged(row)

    def _ragged(self, row: list[str], name: str = "the row") -> str:
        """The reason of a row that has another number of cells than the header."""
        return f"{name} has {count(len(row), 'cell')}, the header has {len(self.names)}"

    def _not_utf8(self, where: str) -> FormatError:
        hint = "convert it, for example: iconv -f WINDOWS-1252 -t UTF-8 IN > OUT; Excel saves it as CSV UTF-8"
        return FormatError(f"{self.name} is not UTF-8 text{where}", hint=hint)


def _first_rows(text: str, delimiter: str, limit: int = SAMPLE_ROWS + 1) -> list[list[str]]:
    """The first complete rows, blank lines left out."""
    csv.field_size_limit(1 << 24)
    rows = filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=delimiter))
    out: list[list[str]] = []
    with suppress(csv.Error):  # the sample may stop within a row
        for row in islice(rows, limit):
            out.append(row)
    return out


def find_delimiter(text: str, suffix: str = "") -> str:
    """The delimiter whose cells a row are most alike over the first rows; a comma where there is one column.

    Example:
        >>> find_delimiter("smiles;y\\nCCO;5,48\\nCCN;6,01\\n")
        ';'
    """
    usual = {".tsv": "\t", ".tab": "\t"}.get(suffix, ",")

    def score(delimiter: str) -> tuple[float, float]:
        rows = _first_rows(text, delimiter, 50)
        if not rows or len(rows[0]) < 2:
            return 0.0, 0.0
        width, body = len(rows[0]), rows[1:-1] or rows[1:] or rows  # the sample may stop within its last row
        alike = sum(len(row) == width for row in body) / len(body)
        return round(alike, 1), width + 0.5 * (delimiter == usual)

    return max((usual, *DELIMITERS), key=score)
