"""Hold measured molecules with their fingerprints in memory, and find those that are nearest to a query."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from molgraph.base.errors import CellError, TooLargeError
from molgraph.chem.fingerprints import morgan
from molgraph.chem.tanimoto import BitTable
from molgraph.data.read import read_source
from molgraph.data.reading.cells import Reading
from molgraph.data.reading.chunk import as_text

BITS, MOST = 2048, 200_000  # rows, each of a kilobyte or two


class Measured:
    """A table of measured molecules, compared by Tanimoto similarity as ``molgraph nearest`` does.

    Args:
        source: a file, ``dataset:NAME`` or ``builtin:NAME``.
        wanted: columns whose values are shown, as far as the table has them; ``log10_x`` stands for ``x`` too.

    Raises:
        TooLargeError: more than 200,000 rows. DataError, StorageError: it cannot be read.

    Example:
        >>> found = Measured("builtin:chembl2321810", ["pIC50"]).nearest("CCO", 1)
        >>> len(found["rows"]), sorted(found["rows"][0])
        (1, ['id', 'rank', 'similarity', 'smiles', 'values'])
    """

    def __init__(self, source: Any, wanted: Iterable[str] = ()) -> None:
        rows = read_source(source, Reading(), keep_columns=True)
        table = rows.table
        if len(table) > MOST:
            words = f"{len(table):,} measured molecules, {MOST:,} at most are held"
            raise TooLargeError(words, hint="give the most important ones")
        table.check_one_molecule("the search for measured molecules")
        prints = morgan([text if isinstance(text, str) else "" for text in table.smiles], 2, BITS)
        kept = np.flatnonzero(table.ok & prints.ok)
        self.ids, self.smiles = table.ids[kept], table.smiles[kept]
        self.bits = BitTable(prints.x[kept])
        names = [*dict.fromkeys(name for column in wanted for name in (column, column.removeprefix("log10_")))]
        self.values: dict[str, list[str]] = {}
        for name in names:
            if name in rows.columns.column_names:
                texts = as_text(rows.columns[name])
                self.values[name] = [str(texts[row] or "") for row in kept]
            elif table.y is not None and name in [t.name for t in table.row_targets]:
                y = table.with_targets([name]).y
                assert y is not None
                self.values[name] = ["" if np.isnan(y[row, 0]) else f"{y[row, 0]:g}" for row in kept]

    def nearest(self, smiles: str, k: int) -> dict[str, Any]:
        """The k most similar molecules, the nearest first: rank, id, smiles, similarity, values by column.

        Raises:
            CellError: a molecule that cannot be read.
        """
        prints = morgan([smiles], 2, BITS)
        if not prints.ok[0]:
            raise CellError(f"{smiles!r} has no fingerprint: {prints.reasons[0]}", hint="correct the molecule")
        similarity = BitTable(prints.x, like=self.bits).similarity(self.bits)[0]
        best = np.argsort(-similarity, kind="stable")[:k]
        rows = [
            {
                "rank": rank,
                "id": str(self.ids[row]),
                "smiles": str(self.smiles[row]),
                "similarity": round(float(similarity[row]), 4),
                "values": {name: texts[row] for name, texts in self.values.items()},
            }
            for rank, row in enumerate(best.tolist(), 1)
        ]
        return {"columns": [*self.values], "rows": rows}
