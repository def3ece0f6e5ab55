"""Write and read what a generator's cell drew, and choose the training molecules that it is given."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from molgraph.base.seeds import generator
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.store import read_stored
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
    """Read a cell's draws, whose sha256 its manifest states."""
    texts = {name: column.to_pylist() for name, column in read_stored(path, stated).items()}
    return Draws(texts["smiles"], texts.get("unchecked"))
