"""Read a file of packed geometries (npz) as a table with computed values."""

from __future__ import annotations

import zipfile
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.data.graph_values import Geometry
from molgraph.data.table import OK, Entities, Table


def read_npz(path: Path, targets: tuple[Target, ...], columns: Mapping[str, str]) -> Table:
    """Molecules packed one after another: ``N`` atoms of each, ``Z`` and ``R`` of all, a value of each a key.

    Args:
        path: a numpy archive; arrays of objects are refused, since they are pickles.
        targets: what is read.
        columns: target -> its key, where the two differ.

    Returns:
        A table with a column of geometries, and one of SMILES where the file has them.
    """
    try:
        with np.load(path, allow_pickle=False) as stored:
            values = {key: stored[key] for key in stored.files}
    except (ValueError, OSError, EOFError, KeyError, zipfile.BadZipFile) as error:
        raise DataError(f"{path.name} cannot be read: {error}", hint="copy or download it again") from None
    keys = [columns.get(t.name, t.name) for t in targets]
    if lacking := [key for key in ("N", "Z", "R", *keys) if key not in values]:
        raise DataError(f"{path.name} has no {lacking[0]!r}", hint=f"it has: {', '.join(values)}")
    ends = np.cumsum(values["N"].astype(np.int64))
    n = len(ends)
    if n == 0 or not ends[-1] == len(values["Z"]) == len(values["R"]):
        raise DataError(f"{path.name}: atoms of Z and R are not as many as N says")
    geometries = np.empty(n, dtype=object)
    cuts = zip(np.split(values["Z"], ends[:-1]), np.split(values["R"], ends[:-1]), strict=True)
    geometries[:] = [Geometry(z.astype(np.uint8), r.astype(np.float32)) for z, r in cuts]
    entities: tuple[Entities, ...] = (Entities("geometry", "geometry", geometries),)
    if "smiles" in values:
        entities = (Entities("smiles", "molecule", values["smiles"].astype(object)), *entities)
    ids = np.array([str(i) for i in range(n)], dtype=object)
    y = np.column_stack([values[key].astype(np.float64) for key in keys])
    return Table(ids, entities, np.full(n, OK, dtype=object), np.full(n, "", dtype=object), targets, y)
