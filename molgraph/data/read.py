"""Files, frames and lists in; tables of rows out."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError, nearest
from molgraph.data.sources import builtin
from molgraph.data.table import Table, make_table


def read_table(
    source: Any,
    *,
    smiles: str | None = None,
    targets: Any = None,
    id: str | None = None,
    weight: str | None = None,
    features: tuple[str, ...] = (),
    split: str | None = None,
    on_error: str = "keep",
) -> Table:
    """Read a whole table."""
    if isinstance(source, str) and source.startswith("builtin:"):
        return builtin.load(source[8:])
    if isinstance(source, pd.DataFrame):
        frame = source
    else:
        frame = pd.read_csv(source, dtype=str, keep_default_na=False)
    column = smiles or next(c for c in frame.columns if c.lower() in ("smiles", "canonical_smiles", "mol"))
    asked = tuple(targets or ())
    for name in asked:
        if name not in frame.columns:
            raise DataError(f"no column {name!r}", hint=nearest(name, list(frame.columns)))
    y = np.column_stack([pd.to_numeric(frame[n], errors="coerce") for n in asked]) if asked else None
    kinds = []
    for j, name in enumerate(asked):
        values = y[:, j][np.isfinite(y[:, j])]
        kinds.append(Target(name, "binary" if np.isin(values, (0, 1)).all() else "regression"))
    return make_table(
        list(frame[column]),
        ids=list(frame[id]) if id else None,
        targets=tuple(kinds),
        y=y,
        weights=None if weight is None else frame[weight].astype(float).to_numpy(),
        features=frame[list(features)].astype(float).to_numpy() if features else None,
        feature_names=tuple(features),
        split=frame[split].to_numpy(dtype=object) if split else None,
    )


def iter_tables(source: Any, *, chunk_rows: int = 10_000, **columns: Any) -> Iterator[Table]:
    """Read a table chunk by chunk."""
    table = read_table(source, **columns)
    for start in range(0, len(table), chunk_rows):
        yield table.take(np.arange(start, min(start + chunk_rows, len(table))))
