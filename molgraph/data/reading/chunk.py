"""Cut the rows of any source into chunks of Arrow columns at fixed row numbers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.errors import TooLargeError

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


class Reader(Protocol):
    """One opened or openable source."""

    name: str  # for messages
    names: list[str]  # of the columns, in the order of the source
    smiles: str | None  # the column that the format itself says holds SMILES
    id: str | None  # the column that the format itself says holds ids
    geometry: str | None  # the column of atoms in space that the format itself has, beside its ``names``
    rereadable: bool  # whether chunks may be called more than once

    def sample(self) -> pa.Table:
        """The first rows, all columns."""
        ...

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        """All rows of some columns, ``rows`` at a time (None: all at once)."""
        ...


def recut(pieces: Iterator[pa.Table], rows: int | None) -> Iterator[Chunk]:
    """Cut a stream of tables at multiples of ``rows``, so that chunk edges depend on row numbers alone.

    A column ``REASON`` of the tables becomes the chunks' reasons, and its rows are torn.

    Raises:
        TooLargeError: ``rows`` rows hold more text than any table of molecules does.

    Example:
        >>> parts = [pa.table({"x": [1, 2, 3]}), pa.table({"x": [4, 5]})]
        >>> [(c.start, c.columns["x"].to_pylist()) for c in recut(iter(parts), 2)]
        [(0, [1, 2]), (2, [3, 4]), (4, [5])]
    """
    held: list[pa.Table] = []
    n_held, start = 0, 0
    for piece in pieces:
        held.append(piece)
        n_held += piece.num_rows
        if rows is None:
            continue
        if n_held < rows:
            check_size(sum(part.nbytes for part in held), start, n_held)
            continue
        joined, at = pa.concat_tables(held), 0
        while n_held - at >= rows:
            yield _chunk(joined.slice(at, rows), start)
            start, at = start + rows, at + rows
        held, n_held = [joined.slice(at)], n_held - at
    if held and (n_held or start == 0):
        yield _chunk(pa.concat_tables(held), start)


def check_size(n_bytes: int, start: int, n_rows: int) -> None:
    """Refuse rows that would fill the memory: a chunk holds at most ``MAX_CHUNK_BYTES``."""
    if n_bytes > MAX_CHUNK_BYTES:
        raise TooLargeError(
            f"rows {start + 1} to {start + n_rows} hold more than {MAX_CHUNK_BYTES:,} bytes",
            hint="look for cells or lines that are far too long",
        )


def _chunk(rows: pa.Table, start: int) -> Chunk:
    if REASON not in rows.column_names:
        return Chunk(rows, start)
    told = rows[REASON]
    rows = rows.drop_columns([REASON])
    if told.null_count == len(told):
        return Chunk(rows, start)
    reasons = pc.fill_null(told, "").to_numpy(zero_copy_only=False).astype(object)
    return Chunk(rows, start, reasons, reasons != "")
