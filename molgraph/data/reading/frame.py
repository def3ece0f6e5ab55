"""Read tables from memory: a pandas DataFrame, a dict of columns, or a list of SMILES or RDKit molecules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from molgraph.base.errors import EmptyError, FormatError, ShapeError
from molgraph.base.printable import encodable
from molgraph.chem.complexes import Structure, write_structure
from molgraph.chem.smiles import is_mol, write_smiles
from molgraph.chem.xyz import write_frame
from molgraph.data.featurize_geometry import read_geometry
from molgraph.data.graph_values import Geometry
from molgraph.data.reading.chunk import MemoryReader, check_unique, text_of


class FrameReader(MemoryReader):
    """Columns that are already in memory.

    Raises:
        FormatError: what is no table. ShapeError: columns of different lengths, or an array of several dimensions.
    """

    name = "the table"

    def __init__(self, source: Any) -> None:
        if isinstance(source, pd.DataFrame):
            columns = [(name, source.iloc[:, j]) for j, name in enumerate(source.columns)]
        elif isinstance(source, Mapping):
            sizes = {name: _length(name, values) for name, values in source.items()}
            if len(set(sizes.values())) > 1:
                raise ShapeError("columns of different lengths", hint=", ".join(f"{k}: {v}" for k, v in sizes.items()))
            columns = [(name, _series(values)) for name, values in source.items()]
        elif isinstance(source, Sequence | np.ndarray | pd.Series | pd.Index) and not isinstance(source, bytes):
            if (dimensions := getattr(source, "ndim", 1)) != 1:
                words = f"an array of {dimensions} dimensions is no list of SMILES"
                raise ShapeError(words, hint="give one column of it")
            columns, self.smiles = [("smiles", _series(source))], "smiles"
        else:
            hint = "give a path, '-' for standard input, a pandas frame, a dict of columns or a list of SMILES"
            raise FormatError(f"cannot read a table from {type(source).__name__}", hint=hint)
        self.names = [encodable(str(name)) for name, _ in columns]
        check_unique(self.names, self.name)
        if not columns:
            raise EmptyError("the table has no columns", hint="it needs a column of SMILES")
        self._columns = dict(zip(self.names, (values for _, values in columns), strict=True))
        self.n_rows = len(columns[0][1])

    def table(self, names: list[str], rows: slice) -> pa.Table:
        return pa.table({name: _to_arrow(self._columns[name].iloc[rows]) for name in names})


def _length(name: Any, values: Any) -> int:
    """Of a column; one value, a text, a generator or an array of two dimensions is none."""
    if hasattr(values, "__len__") and not isinstance(values, (str, bytes, Mapping)) and getattr(values, "ndim", 1) == 1:
        return len(values)
    hint = "give a list, a Series or an array of one dimension, with a value for each row"
    raise FormatError(f"column {name!r} is of type {type(values).__name__}, not a list of values", hint=hint)


def _series(values: Any) -> pd.Series:
    """A numeric array as it is, anything else as objects, so that pandas changes no text."""
    if isinstance(values, (np.ndarray, pd.Series)) and values.dtype.kind in "iufb":
        return pd.Series(np.asarray(values))
    values = list(values)
    if values and all(isinstance(v, (int, float, np.number)) for v in values):
        return pd.Series(values)
    return pd.Series(values, dtype=object)


def _to_arrow(values: pd.Series) -> pa.Array:
    if values.dtype.kind in "iufb" and isinstance(values.dtype, np.dtype):
        numbers = values.to_numpy()
        if numbers.dtype.itemsize > 8:
            numbers = numbers.astype(np.float64)  # Arrow has no longer ones
        return pa.array(numbers.astype(numbers.dtype.newbyteorder("="), copy=False), from_pandas=True)
    texts = [None if missing else encodable(_text(v)) for v, missing in zip(values, pd.isna(values), strict=True)]
    return pa.array(texts, pa.string())


def _text(value: Any) -> str:
    """A cell as text; RDKit's molecules as SMILES."""
    if isinstance(value, Geometry):
        geometry, reason = read_geometry(value)
        if reason:
            return f"no geometry: {reason}"
        if geometry.residue is not None:
            return write_structure(Structure(**geometry.arrays()))
        return write_frame(geometry.numbers, geometry.positions, geometry.forces)
    if is_mol(value):
        return write_smiles(value).smiles
    return text_of(value.tolist() if isinstance(value, np.ndarray) else value)  # whose text has all digits
