"""Define ``Reader``, the base class of file format readers, which yields rows in chunks of Arrow columns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.errors import AmbiguousColumnError, TooLargeError
from molgraph.data.reading.source import is_torn, shown

SAMPLE_ROWS = 200  # what columns are found by
#: columns beside a source's own: why a row is no sound row, else null; a structure as an SD file has it
REASON, MOLBLOCK = "\0reason", "\0molblock"
GEOMETRY = "geometry"  # the column of a file's structures in space, where it has no field of that name
MAX_CHUNK_BYTES = 1 << 30


@dataclass(frozen=True)
class Chunk:
    """Some rows of a source."""

    columns: pa.Table  # the columns that were asked for, by name; text as it stands in the file
    start: int  # number of the first row, from 0
    # object array of why a row's molecule could not be read, or None where all could as far as is known
    reasons: np.ndarray | None = None
    # bool array of the rows whose cells may stand in the wrong columns, or None where there are none
    torn: np.ndarray | None = None

    def cells(self, name: str) -> pa.ChunkedArray:
        """A column's cells as far as they can be believed: those of torn rows are missing."""
        column = self.columns[name]
        return column if self.torn is None else pc.if_else(pa.array(self.torn), pa.scalar(None, column.type), column)

    def __len__(self) -> int:
        return self.columns.num_rows


class Reader(ABC):
    """The base class of readers: one opened or openable source."""

    name: str  # for messages
    names: list[str]  # of the columns, in the order of the source
    smiles: str | None = None  # the column that the format itself says holds SMILES
    id: str | None = None  # the column that the format itself says holds ids
    geometry: str | None = None  # the column of atoms in space that the format itself has, beside its ``names``
    rereadable = True  # whether chunks may be called more than once

    @abstractmethod
    def sample(self) -> pa.Table:
        """The first rows, all columns."""

    @abstractmethod
    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        """All rows of some columns, ``rows`` at a time (None: all at once)."""


class MemoryReader(Reader):
    """The base class of readers of what is in memory: ``n_rows`` rows, and a table of some of them."""

    n_rows: int

    @abstractmethod
    def table(self, names: list[str], rows: slice) -> pa.Table:
        """Some columns and rows."""

    def sample(self) -> pa.Table:
        return self.table(self.names, slice(0, min(self.n_rows, SAMPLE_ROWS)))

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        step = rows or max(self.n_rows, 1)
        for start in range(0, self.n_rows, step):
            yield Chunk(self.table(columns, slice(start, min(start + step, self.n_rows))), start)


def recut(pieces: Iterator[pa.Table], rows: int | None) -> Iterator[Chunk]:
    """Cut a stream of tables at multiples of ``rows``, so that chunk edges depend on row numbers alone.

    Raises:
        TooLargeError: ``rows`` rows hold more text than any table of molecules does.

    Example:
        >>> parts = [pa.table({"x": [1, 2, 3]}), pa.table({"x": [4, 5]})]
        >>> [(c.start, c.columns["x"].to_pylist()) for c in recut(iter(parts), 2)]
        [(0, [1, 2]), (2, [3, 4]), (4, [5])]
    """
    parts, n_rows, n_bytes, start = list[pa.Table](), 0, 0, 0
    for piece in pieces:
        parts.append(piece)
        n_rows, n_bytes = n_rows + piece.num_rows, n_bytes + piece.nbytes
        if rows is None:
            continue
        if n_rows < rows:
            check_size(n_bytes, start, n_rows)
            continue
        joined, at = pa.concat_tables(parts), 0
        while n_rows - at >= rows:
            yield chunk_of(joined.slice(at, rows), start)
            start, at = start + rows, at + rows
        parts, n_rows = [joined.slice(at)], n_rows - at
        n_bytes = parts[0].nbytes
    if parts and (n_rows or start == 0):
        yield chunk_of(pa.concat_tables(parts), start)


def check_size(n_bytes: int, start: int, n_rows: int) -> None:
    """Refuse rows that would fill the memory: a chunk holds at most ``MAX_CHUNK_BYTES``."""
    if n_bytes > MAX_CHUNK_BYTES:
        words = f"rows {start + 1} to {start + n_rows} hold more than {MAX_CHUNK_BYTES:,} bytes"
        raise TooLargeError(words, hint="look for cells or lines that are far too long")


def check_unique(names: list[str], source: str) -> None:
    """Raise ``AmbiguousColumnError`` where two columns have one name."""
    double = sorted(name for name, n in Counter(names).items() if n > 1)
    if double:
        words = f"{source} has two columns named {', '.join(map(repr, double))}"
        raise AmbiguousColumnError(words, hint="rename or delete one of them")


def free_name(name: str, names: Container[str]) -> str:
    """The name with the first number behind it that is free: ``name_2``, ``name_3``, ..."""
    return next(numbered for n in count(2) if (numbered := f"{name}_{n}") not in names)


def chunk_of(table: pa.Table, start: int) -> Chunk:
    """A table as a chunk: its column ``REASON`` becomes the reasons, and the rows that have one are torn."""
    if REASON not in table.column_names:
        return Chunk(table, start)
    reasons, table = table[REASON], table.drop_columns([REASON])
    if reasons.null_count == len(reasons):
        return Chunk(table, start)
    texts = pc.fill_null(reasons, "").to_numpy(zero_copy_only=False).astype(object)
    return Chunk(table, start, texts, texts != "")


def table_of(columns: Mapping[str, Sequence[str | None]], reasons: Sequence[str | None]) -> pa.Table:
    """A table of texts with a column ``REASON``: marked cells can be printed, and give their rows a reason."""
    columns = dict(columns)
    for name, cells in columns.items():
        if is_torn("".join(filter(None, cells))):
            torn = f"the row is not UTF-8 text (in column {name.strip()!r})"
            reasons = [
                reason or (torn if is_torn(cell or "") else None) for reason, cell in zip(reasons, cells, strict=True)
            ]
            columns[name] = [cell and shown(cell) for cell in cells]
    return pa.table({name: pa.array(cells, pa.string()) for name, cells in {**columns, REASON: reasons}.items()})


def as_text(column: pa.ChunkedArray) -> np.ndarray:
    """A column as an object array of text, verbatim; a missing cell is empty."""
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if not pa.types.is_string(column.type):
        try:
            column = pc.cast(column, pa.string())
        except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
            texts = (None if value is None else text_of(value) for value in column.to_pylist())
            column = pa.chunked_array([pa.array(texts, pa.string())])
    return pc.fill_null(column, "").to_numpy(zero_copy_only=False).astype(object, copy=False)


def text_of(value: Any) -> str:
    r"""A cell as text; bytes that are UTF-8 are that text, whatever stands in the rows beside it.

    Example:
        >>> [text_of(value) for value in (b"CCO", b"CC\xff", [1, None])]
        ['CCO', "b'CC\\xff'", '[1, None]']
    """
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            return value.decode()
    try:
        return str(value)
    except ValueError:  # a whole number of more digits than Python writes
        return hex(value)
