"""Write and read what a generator's cell drew, and choose the training molecules that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from molgraph.base.errors import DataError
from molgraph.base.seeds import generator
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.store import sha256
from molgraph.evaluate.generation.judge import Draws


def given_molecules(train: Table, most: int | None) -> Table:
    """The training rows that all generators learn from, whatever their seeds: all, or so many drawn, in their order."""
    if most is None or len(train) <= most:
        return train
    return train.take(np.sort(generator(0, "given").choice(len(train), most, replace=False)))


def write_draws(path: Path, drawn: Mapping[str, Sequence[str]]) -> None:
    """Write the columns ``smiles`` and, where a generator has a check to leave out, ``unchecked``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with path.open("wb") as file:  # by its name, pyarrow opens none that is not UTF-8
        pq.write_table(pa.table({name: pa.array(list(texts), pa.string()) for name, texts in drawn.items()}), file)


def read_draws(path: Path, stated: str) -> Draws:
    """Read a cell's draws.

    Raises:
        DataError: the file is damaged, or its sha256 is not the one that the manifest states.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    again = "delete its folder and run the recipe again"
    try:
        content = path.read_bytes()
        table = pq.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        columns = {name: table[name].to_pylist() for name in table.column_names}
        drawn = Draws(columns["smiles"], columns.get("unchecked"))
    except (OSError, KeyError, pa.ArrowException) as error:
        raise DataError(f"{path} is damaged: {error}", hint=again) from error
    if (found := sha256(content)) != stated:
        raise DataError(f"draws were changed: {path} has sha256 {found}, the manifest {stated}", hint=again)
    return drawn
