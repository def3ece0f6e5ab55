"""Read a source chunk by chunk, as streamed prediction does."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from molgraph.data.read import iter_rows
from molgraph.data.table import Table


def iter_tables(source: Any, *, chunk_rows: int = 10_000, **options: Any) -> Iterator[Table]:
    """The tables of a source, ``chunk_rows`` rows each."""
    return (rows.table for rows in iter_rows(source, chunk_rows=chunk_rows, **options))
