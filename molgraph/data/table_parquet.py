"""Write a table as one parquet file, and read it back as it was."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import FormatError, LabelError
from molgraph.base.paths import atomic_write
from molgraph.data.graph_values import value_of
from molgraph.data.table import Entities, Table
from molgraph.data.target_json import target_from_json

KEY, SHAPE = b"molgraph", ".shape"
OF_ARRAYS = ("graph", "geometry")  # kinds of entity that are no text


def write_table(table: Table, path: Path) -> None:
    """Write a table whole, with its entities, labels, weights and features; ``read_handed`` gives it back."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    if table.packed:
        raise LabelError(
            "a target of atoms or bonds cannot be handed to a benchmark's cells", hint="benchmarks score rows"
        )
    columns: dict[str, Any] = {"id": table.ids, "status": table.status, "reason": table.reason}
    arrays = {e.name: _arrays(e) for e in table.entities if e.kind in OF_ARRAYS}
    for e in table.entities:
        fields = {f":{field}": array for field, array in arrays[e.name].items()} if e.name in arrays else {"": e.values}
        columns |= {f"entity:{e.name}{field}": values for field, values in fields.items()}
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
        "arrays": {name: [f for f in fields if not f.endswith(SHAPE)] for name, fields in arrays.items()},
    }
    pa_columns = [
        v if isinstance(v, pa.Array) else pa.array(v, pa.string() if v.dtype == object else None, from_pandas=False)
        for v in columns.values()
    ]
    whole = pa.table(pa_columns, names=list(columns)).replace_schema_metadata({KEY: json.dumps(about).encode()})
    with atomic_write(path) as file:
        pq.write_table(whole, file)


def _arrays(column: Entities) -> dict[str, Any]:
    """The arrays of graphs or geometries as columns of lists, with columns of their shapes; null where one has none."""
    import pyarrow as pa

    held = [value.arrays() if hasattr(value, "arrays") else {} for value in column.values]
    out = {}
    for field in dict.fromkeys(name for arrays in held for name in arrays):
        values = [arrays.get(field) for arrays in held]
        kind = pa.from_numpy_dtype(np.result_type(*(a.dtype for a in values if a is not None)))
        out[field] = pa.array([None if a is None else a.ravel() for a in values], pa.list_(kind))
        out[field + SHAPE] = pa.array([None if a is None else a.shape for a in values], pa.list_(pa.int64()))
    return out


def read_handed(path: Path) -> Table:
    """The table that ``write_table`` wrote; one that was damaged since raises ``DataError``."""
    import pyarrow as pa

    try:
        return _read(path)
    except (OSError, ValueError, KeyError, TypeError, pa.ArrowException) as error:
        raise FormatError(f"{path} is damaged: delete it and run the recipe again ({error})") from error


def _read(path: Path) -> Table:
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pq.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)  # far sooner than by name
    about = json.loads(table.schema.metadata[KEY])
    targets = tuple(target_from_json(t) for t in about["targets"])

    def text(name: str) -> np.ndarray:
        return np.array(table[name].to_pylist(), dtype=object)

    def numbers(names: list[str]) -> np.ndarray:
        return np.stack([table[n].to_numpy() for n in names], axis=1) if names else np.empty((len(table), 0))

    def objects(name: str, kind: str) -> np.ndarray:
        fields = {f: table[f"entity:{name}:{f}"].to_numpy() for f in about["arrays"][name]}
        shapes = {f: table[f"entity:{name}:{f}{SHAPE}"].to_numpy() for f in fields}
        out = np.empty(len(table), dtype=object)
        for i in range(len(table)):
            out[i] = value_of(kind, {f: a[i].reshape(shapes[f][i]) for f, a in fields.items() if a[i] is not None})
        return out

    return Table(
        ids=text("id"),
        entities=tuple(
            Entities(name, kind, objects(name, kind) if kind in OF_ARRAYS else text(f"entity:{name}"))
            for name, kind in about["entities"]
        ),
        status=text("status"),
        reason=text("reason"),
        targets=targets,
        y=numbers([f"y:{t.name}" for t in targets]),
        weights=table["weight"].to_numpy() if "weight" in table.column_names else None,
        features=numbers([f"feature:{n}" for n in about["features"]]) if about["features"] else None,
        feature_names=tuple(about["features"]),
        split=text("split") if "split" in table.column_names else None,
    )
