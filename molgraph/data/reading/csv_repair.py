"""Recover malformed CSV rows and invalid UTF-8, keeping the order of rows."""

from __future__ import annotations

import codecs
import csv
import io
import time
import weakref
from collections import deque
from collections.abc import Sequence
from typing import BinaryIO, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv

from molgraph.base.printable import count
from molgraph.data.reading.chunk import REASON

_MARK = "\U0010ffff"  # no character of any text: stands for bytes that are not UTF-8 until their row is known
LINE = 1 << 20  # bytes: a piece of so many without an end of line belongs to no row that could be read
MARKED = "molgraph.marked"  # how ``bytes.decode`` and open files are told to mark what is not text
codecs.register_error(MARKED, lambda error: (_MARK, error.end))  # type: ignore[attr-defined]


def decode(data: bytes) -> str:
    """UTF-8 text; what is none is marked (see ``is_torn``), in the way of ``Utf8Sanitiser``."""
    return data.decode("utf-8", MARKED)


def is_torn(text: str) -> bool:
    """Whether ``decode`` found bytes in it that are not UTF-8."""
    return _MARK in text


def shown(text: str) -> str:
    """Marked text as it may be printed."""
    return text.replace(_MARK, "\N{REPLACEMENT CHARACTER}")


def ragged(n_cells: int, width: int, row: str = "the row") -> str:
    """The reason of a row that has another number of cells than the header."""
    return f"{row} has {count(n_cells, 'cell')}, the header has {width}"


class Utf8Sanitiser(io.RawIOBase):
    """Passes bytes on with those marked that are not UTF-8, where they should be, and remembers the last few.

    The bytes end before a piece without an end of line, and ``endless`` tells it: Arrow's own refusal of a row that is
    longer than a block may leave a thread of its pool waiting for itself, and the process at its end for that thread.
    ``wait`` returns once Arrow holds no buffer: a thread of its pool that frees one while the interpreter shuts down
    aborts the process.
    """

    def __init__(self, stream: BinaryIO, utf8: bool = True) -> None:
        self._stream, self._utf8, self._decoder = stream, utf8, codecs.getincrementaldecoder("utf-8")(MARKED)
        self.end, self.torn, self.endless = b"", False, False
        self._lent: list[weakref.ref[memoryview]] = []

    def readable(self) -> bool:
        return True

    def read(self, n: int = -1) -> memoryview:
        piece = b"" if self.endless else self._stream.read(n)
        if len(piece) >= LINE and b"\n" not in piece and b"\r" not in piece:
            self.endless, piece = True, b""
        if self._utf8 and not (piece.isascii() and self._decoder.getstate() == (b"", 0)):
            text = self._decoder.decode(piece, final=not piece)
            while piece and not text:  # the piece is the beginning of a character
                piece = self._stream.read(1)
                text = self._decoder.decode(piece, final=not piece)
            self.torn |= is_torn(text)
            piece = text.encode()
        self.end = (self.end + piece[-8:])[-8:]
        view = memoryview(piece)
        self._lent = [ref for ref in self._lent if ref() is not None] + [weakref.ref(view)]
        return view

    def wait(self, seconds: float = 1.0) -> None:
        """Wait until Arrow holds no block, a second at most."""
        until = time.monotonic() + seconds
        while any(ref() is not None for ref in self._lent) and time.monotonic() < until:
            time.sleep(1e-4)


class MalformedRows:
    """Takes the rows that Arrow leaves out, as its handler of invalid rows, and puts them back between the others.

    Args:
        header: names of all columns, as Arrow knows them.
        delimiter: between cells.
        skipped: number of lines before the header.
    """

    def __init__(self, header: Sequence[str], delimiter: str, skipped: int = 0) -> None:
        self._header, self._delimiter, self._skipped = list(header), delimiter, skipped
        self._waiting: deque[tuple[int, list[str], str]] = deque()  # number from 0, cells, and why it is left out
        self.rows = 0  # given out so far
        self.last_is_torn = False
        self.over_lines: int | None = None

    def __call__(self, row: pacsv.InvalidRow) -> Literal["skip", "error"]:
        at = row.number - 2 - self._skipped  # the header is Arrow's first row
        if "\n" in row.text or "\r" in row.text:  # more likely a quote that swallows rows than a row
            self.over_lines = at
            return "error"
        cells = next(csv.reader([row.text], delimiter=self._delimiter))
        self._waiting.append((at, cells, ragged(row.actual_columns, row.expected_columns)))
        return "skip"

    def merge(self, good: pa.Table, torn_bytes: bool) -> pa.Table:
        """The next rows that Arrow gave, those between them, and a column of reasons; null where a row is sound."""
        n, names = good.num_rows, good.column_names
        places, rows, reasons = list[int](), list[list[str]](), list[str]()
        while self._waiting and self._waiting[0][0] - self.rows - len(places) <= n:
            place, cells, reason = self._waiting.popleft()
            places.append(place - self.rows)
            rows.append(cells)
            reasons.append(reason)
        good = good.append_column(REASON, pa.nulls(n, pa.string()))
        if places:
            at = [self._header.index(name) for name in names]
            columns = [*([row[j] if j < len(row) else None for row in rows] for j in at), reasons]
            bad = pa.table([pa.array(values, pa.string()) for values in columns], names=[*names, REASON])
            order = np.insert(np.arange(n), np.array(places) - np.arange(len(places)), np.arange(n, n + len(places)))
            good = pa.concat_tables([good, bad]).take(order)
        if good.num_rows:
            self.last_is_torn = bool(places) and places[-1] == good.num_rows - 1
        self.rows += good.num_rows
        return tell_marked(good, names) if torn_bytes else good


def tell_marked(table: pa.Table, names: Sequence[str]) -> pa.Table:
    """The table with readable text for marked cells, and a reason in their rows."""
    for name in names:
        j = table.column_names.index(name)
        marked = pc.fill_null(pc.match_substring(table.column(j), _MARK), False)
        if not pc.any(marked).as_py():
            continue
        table = table.set_column(j, name, pc.replace_substring(table.column(j), _MARK, "\N{REPLACEMENT CHARACTER}"))
        reason = f"the row is not UTF-8 text (in column {name.strip()!r})"
        reasons = pc.coalesce(table[REASON], pc.if_else(marked, reason, pa.scalar(None, pa.string())))
        table = table.set_column(len(names), REASON, reasons)
    return table
