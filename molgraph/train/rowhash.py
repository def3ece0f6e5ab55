"""Hash the rows that a prediction consumes, so that a run that goes on knows whether the rows before are the same."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b

import numpy as np

from molgraph.data.columns import as_text
from molgraph.data.content import entity_texts
from molgraph.data.table_builder import Rows


class RowHash:
    """A running hash of ids, molecules, descriptors and kept columns, chunk after chunk.

    Example:
        >>> from molgraph.data.read import iter_rows
        >>> one, other = RowHash(), RowHash()
        >>> for rows in iter_rows(["C", "CC"], chunk_rows=1):
        ...     one.update(rows)
        >>> one.hexdigest() == other.hexdigest()
        False
    """

    def __init__(self) -> None:
        self._state = blake2b(digest_size=16)

    def update(self, rows: Rows) -> None:
        """Take in the next rows."""
        table = rows.table
        self._feed(rows.names)
        for values in (table.ids, *(entity_texts(e) for e in table.entities), table.status, table.reason):
            self._feed(values)
        if table.features is not None:
            self._state.update(np.ascontiguousarray(table.features).tobytes())
        for name in rows.columns.column_names:
            self._feed(as_text(rows.columns[name]))

    def hexdigest(self) -> str:
        """The hash of all rows so far."""
        return self._state.hexdigest()

    def _feed(self, texts: Sequence[str] | np.ndarray) -> None:
        data = "\0".join(map(str, texts)).encode("utf-8", "surrogatepass")
        self._state.update(f"{len(texts)} {len(data)}\0".encode() + data)
