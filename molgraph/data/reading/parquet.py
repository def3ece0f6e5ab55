"""Read parquet files in chunks; standard input and gzip, which cannot be seeked, are held in memory."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from molgraph.data.reading.chunk import SAMPLE_ROWS, Chunk, Reader, check_unique, recut
from molgraph.data.reading.source import DAMAGED, SourceFile, broken

PIECE_ROWS = 10_000
_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


class ParquetReader(Reader):
    """A parquet file."""

    def __init__(self, source: SourceFile) -> None:
        self.name = source.name
        with self._explained():
            if source.rereadable and Path(source.path).suffix.lower() not in (".gz", ".gzip"):
                file = pa.OSFile(os.fsencode(source.path))  # a text would have to be UTF-8
            else:
                with source.stream() as stream:
                    file = pa.BufferReader(stream.read())
            self._file = pq.ParquetFile(file)
        self.names = list(self._file.schema_arrow.names)
        check_unique(self.names, self.name)

    def sample(self) -> pa.Table:
        with self._explained():
            batches = [*islice(self._file.iter_batches(SAMPLE_ROWS), 1)]
        return without_views(pa.Table.from_batches(batches, self._file.schema_arrow))

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        with self._explained():
            batches = self._file.iter_batches(min(rows or PIECE_ROWS, PIECE_ROWS), columns=columns)
            yield from recut((without_views(pa.Table.from_batches([b]).select(columns)) for b in batches), rows)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Failures of a damaged file in a sentence."""
        try:
            yield
        except (pa.ArrowException, *DAMAGED) as error:
            raise broken(self.name, error) from None


def without_views(table: pa.Table) -> pa.Table:
    """The table with columns of plain text and bytes in place of views, which Arrow cannot take rows of.

    Example:
        >>> views = pa.table({"x": pa.array(["CCO"]).cast(pa.string_view()), "y": [1]})
        >>> without_views(views).schema.types
        [DataType(string), DataType(int64)]
    """
    return table.cast(pa.schema([field.with_type(_PLAIN.get(field.type, field.type)) for field in table.schema]))
