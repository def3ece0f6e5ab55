"""A table in; one parquet file that a cell's process reads in a blink out, and back."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.base.paths import atomic_write
from molgraph.data.table import Entities, Table

KEY = b"molgraph"


def write_table(table: Table, path: Path) -> None:
    """Write a table whose entities are texts, once for all cells of a dataset.

    Raises:
        DataError: an entity column that is no text, or targets below the row level.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    odd = [e.name for e in table.entities if e.kind in ("graph", "geometry")]
    if odd or table.packed:
        what = f"column {odd[0]!r}" if odd else "a target of atoms or bonds"
        raise DataError(
            f"{what} cannot be handed to a benchmark's cells", hint="benchmarks take tables of text and rows"
        )
    columns: dict[str, Any] = {"id": table.ids, "status": table.status, "reason": table.reason}
    columns |= {f"entity:{e.name}": e.values for e in table.entities}
    if table.y is not None:
        columns |= {f"y:{t.name}": table.y[:, j] for j, t in enumerate(table.row_targets)}
    if table.features is not None:
        columns |= {f"feature:{name}": table.features[:, j] for j, name in enumerate(table.feature_names)}
    columns |= {} if table.weights is None else {"weight": table.weights}
    columns |= {} if table.split is None else {"split": table.split}
    about = {
        "entities": [[e.name, e.kind] for e in table.entities],
        "targets": [asdict(t) for t in table.row_targets],
        "features": list(table.feature_names),
    }
    arrays = [pa.array(v, pa.string() if v.dtype == object else None, from_pandas=False) for v in columns.values()]
    made = pa.table(arrays, names=list(columns)).replace_schema_metadata({KEY: json.dumps(about).encode()})
    with atomic_write(path) as file:
        pq.write_table(made, file)


def read_handed(path: Path) -> Table:
    """The table that ``write_table`` wrote; one that was damaged since raises ``DataError``."""
    import pyarrow as pa

    try:
        return _read(path)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise DataError(f"{path} is damaged: delete it and run the recipe again ({error})") from error


def _read(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    made = pq.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)  # far sooner than by name
    about = json.loads(made.schema.metadata[KEY])
    targets = tuple(target_of(t) for t in about["targets"])

    def text(name: str) -> np.ndarray:
        return np.array(made[name].to_pylist(), dtype=object)

    def numbers(names: list[str]) -> np.ndarray:
        return np.stack([made[n].to_numpy() for n in names], axis=1) if names else np.empty((len(made), 0))

    return Table(
        ids=text("id"),
        entities=tuple(Entities(name, kind, text(f"entity:{name}")) for name, kind in about["entities"]),
        status=text("status"),
        reason=text("reason"),
        targets=targets,
        y=numbers([f"y:{t.name}" for t in targets]),
        weights=made["weight"].to_numpy() if "weight" in made.column_names else None,
        features=numbers([f"feature:{n}" for n in about["features"]]) if about["features"] else None,
        feature_names=tuple(about["features"]),
        split=text("split") if "split" in made.column_names else None,
    )


def target_of(raw: dict[str, Any]) -> Target:
    """A target from the plain values that ``dataclasses.asdict`` gave, through JSON.

    Example:
        >>> target_of(json.loads(json.dumps(asdict(Target("y", "binary"))))) == Target("y", "binary")
        True
    """
    bounds = raw["bounds"]
    given = raw | {"classes": tuple(raw["classes"]), "bounds": None if bounds is None else tuple(bounds)}
    return Target(**given)
