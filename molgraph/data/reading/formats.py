"""Choose the reader of a source: a file, standard input, a frame or a list."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from molgraph.base.errors import EmptyError, FormatError, ShapeError, StorageError
from molgraph.base.workbook import is_workbook
from molgraph.chem.complexes import Structure, write_structure
from molgraph.chem.smiles import is_mol, parse_smiles, write_smiles
from molgraph.chem.xyz import write_frame
from molgraph.data.featurize_geometry import read_geometry
from molgraph.data.graph_values import Geometry
from molgraph.data.reading.chunk import SAMPLE_ROWS, Chunk, Reader, recut
from molgraph.data.reading.columns import encodable, is_smiles_name, text_of
from molgraph.data.reading.delimited import DelimitedReader, check_unique
from molgraph.data.reading.npz import NpzReader
from molgraph.data.reading.smi_sdf import RecordReader, SmilesReader
from molgraph.data.reading.source import DAMAGED, Opened, broken
from molgraph.data.reading.xlsx import WorkbookReader
from molgraph.data.reading.xyz import XyzReader

PIECE_ROWS = 10_000
RECORDS = (".sdf", ".sd", ".mol")
LINES = (".smi", ".smiles", ".ism", ".cxsmiles")
FRAMES = (".xyz", ".extxyz")
_ATOM = re.compile(r"\s*([A-Z][a-z]?|\d+)(\s+-?\d+(\.\d*)?([eE][+-]?\d+)?){3}")
ARRAYS = ".npz"
ENDINGS = (*RECORDS, *LINES, *FRAMES, ARRAYS, ".csv", ".tsv", ".txt", ".parquet", ".xlsx", ".gz")
_PLAIN = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


def names_file(text: str) -> bool:
    """Whether a text means a file, standard input or a named table rather than a molecule.

    Example:
        >>> [names_file(text) for text in ("new.csv", "-", "builtin:lipo", "CCO", "[Na+].[Cl-]")]
        [True, True, True, False, False]
    """
    if text == "-" or text.startswith(("builtin:", "dataset:")):
        return True
    try:
        return Path(text).exists() or is_workbook(text) or Path(text).suffix.lower() in ENDINGS
    except (OSError, ValueError):
        return False


def reader_for(source: Any) -> Reader:
    """Choose a reader: by content, and by the file's name where content leaves it open."""
    if isinstance(source, (str, Path)):
        return _file_reader(source)
    if isinstance(source, pd.DataFrame):
        return FrameReader(
            [encodable(str(c)) for c in source.columns], [source.iloc[:, j] for j in range(source.shape[1])]
        )
    if isinstance(source, Mapping):
        sizes = {name: _length(name, values) for name, values in source.items()}
        if len(set(sizes.values())) > 1:
            raise ShapeError("columns of different lengths", hint=", ".join(f"{k}: {v}" for k, v in sizes.items()))
        return FrameReader([encodable(str(k)) for k in source], [_plain(v) for v in source.values()])
    if isinstance(source, (Sequence, np.ndarray, pd.Series, pd.Index)) and not isinstance(source, bytes):
        if (dimensions := getattr(source, "ndim", 1)) != 1:
            raise ShapeError(f"an array of {dimensions} dimensions is no list of SMILES", hint="give one column of it")
        return FrameReader(["smiles"], [_plain(source)], smiles="smiles")
    raise FormatError(
        f"cannot read a table from {type(source).__name__}",
        hint="give a path, '-' for standard input, a pandas frame, a dict of columns or a list of SMILES",
    )


def _length(name: Any, values: Any) -> int:
    """Of a column; one value, a text, a generator or an array of two dimensions is none."""
    try:
        if isinstance(values, (str, bytes, Mapping)) or getattr(values, "ndim", 1) > 1:
            raise TypeError
        return len(values)
    except TypeError:
        raise FormatError(
            f"column {name!r} is of type {type(values).__name__}, not a list of values",
            hint="give a list, a Series or an array of one dimension, with a value for each row",
        ) from None


def _plain(values: Any) -> pd.Series:
    """A numeric array as it is, anything else as objects, so that pandas changes no text."""
    if isinstance(values, (np.ndarray, pd.Series)) and values.dtype.kind in "iufb":
        return pd.Series(np.asarray(values))
    values = list(values)
    if values and all(isinstance(v, (int, float, np.number)) for v in values):
        return pd.Series(values)
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return pd.Series(out, dtype=object)


def _file_reader(source: str | Path) -> Reader:
    if is_workbook(source):
        return WorkbookReader(source)
    if Path(source).suffix.lower() == ARRAYS and os.path.isfile(source):
        return NpzReader(source)
    try:
        opened = Opened(source)
    except StorageError as error:
        if isinstance(source, str) and error.message.startswith("there is no file") and parse_smiles(source).mol:
            raise FormatError(error.message, hint=f"to read one molecule give a list: [{source!r}]") from None
        raise
    head = opened.sample
    if not head.strip():
        needs = "it needs a header line with a column of SMILES"
        if opened.suffix in RECORDS:
            needs = "it needs a record for each molecule, closed by $$$$"
        elif opened.suffix in LINES:
            needs = "it needs a line for each molecule: a SMILES, and maybe a name"
        elif opened.suffix in FRAMES:
            needs = "it needs a frame for each molecule: the number of atoms, a comment, and a line for each atom"
        raise EmptyError(f"{opened.name} is empty", hint=needs)
    if head.startswith(b"PAR1"):
        return ParquetReader(source, opened)
    records = re.search(rb"^(M  END|\$\$\$\$)\s*$", head, re.MULTILINE)  # a quoted cell of a csv may hold these too
    if opened.suffix in RECORDS or (records and opened.suffix not in (".csv", ".tsv")):
        return RecordReader(opened)
    if opened.suffix == ".parquet":
        raise FormatError(f"{opened.name} is not a parquet file", hint="it may be cut short, or of another format")
    if opened.suffix in FRAMES or _begins_with_a_frame(opened):
        return XyzReader(opened)
    if opened.suffix in LINES or _lines_of_smiles(opened):
        return SmilesReader(opened)
    return DelimitedReader(opened)


def _lines_of_smiles(opened: Opened) -> bool:
    """Whether a text without a telling name starts with a SMILES instead of a header."""
    if opened.suffix not in ("", ".txt"):
        return False
    text = opened.sample.decode(opened.encoding, errors="replace").removeprefix("\ufeff").lstrip()
    first = (text.splitlines() or [""])[0]
    word = re.split(r"[\s,;]", first)[0]
    return not is_smiles_name(word) and not re.search(r"[,;]", first) and parse_smiles(word).mol is not None


def _begins_with_a_frame(opened: Opened) -> bool:
    """Whether a text without a telling name starts with a number of atoms, a comment and an atom in space."""
    if opened.suffix not in ("", ".txt"):
        return False
    lines = opened.sample.decode(opened.encoding, errors="replace").removeprefix("\ufeff").splitlines()[:3]
    return len(lines) == 3 and lines[0].strip().isdigit() and bool(_ATOM.match(lines[2]))


class FrameReader:
    """Columns that are already in memory."""

    id: str | None = None
    geometry: str | None = None
    rereadable = True
    name = "the table"

    def __init__(self, names: list[str], columns: list[pd.Series], smiles: str | None = None) -> None:
        check_unique(names, self.name)
        if not names:
            raise EmptyError("the table has no columns", hint="it needs a column of SMILES")
        self.names, self.smiles = names, smiles
        self._columns = dict(zip(names, columns, strict=True))

    def _arrow(self, names: list[str], rows: slice) -> pa.Table:
        return pa.table({name: _to_arrow(self._columns[name].iloc[rows]) for name in names})

    def sample(self) -> pa.Table:
        return self._arrow(self.names, slice(0, SAMPLE_ROWS))

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        n = len(self._columns[self.names[0]])
        for start in range(0, n, rows or max(n, 1)):
            yield Chunk(self._arrow(columns, slice(start, start + (rows or n))), start)


def _to_arrow(values: pd.Series) -> pa.Array:
    if values.dtype.kind in "iufb" and isinstance(values.dtype, np.dtype):
        numbers = values.to_numpy()
        if numbers.dtype.itemsize > 8:
            numbers = numbers.astype(np.float64)  # Arrow has no longer ones
        return pa.array(numbers.astype(numbers.dtype.newbyteorder("="), copy=False), from_pandas=True)
    missing = pd.isna(values).to_numpy()
    texts = [None if gone else _text(v) for v, gone in zip(values, missing, strict=True)]
    try:
        return pa.array(texts, pa.string())
    except UnicodeEncodeError:
        return pa.array([t and encodable(t) for t in texts], pa.string())


def _text(value: Any) -> str:
    """A cell as text; RDKit's molecules as SMILES."""
    if isinstance(value, np.ndarray):
        value = value.tolist()  # whose text has all digits
    if isinstance(value, Geometry):
        sound, why = read_geometry(value)
        if why or sound.residue is None:
            return f"no geometry: {why}" if why else write_frame(sound.numbers, sound.positions, sound.forces)
        return write_structure(Structure(**sound.arrays()))
    return value if isinstance(value, str) else write_smiles(value).smiles if is_mol(value) else text_of(value)


class ParquetReader:
    """A parquet file; what cannot be read from its end (standard input, gzip) is held in memory."""

    smiles: str | None = None
    id: str | None = None
    geometry: str | None = None
    rereadable = True

    def __init__(self, source: str | Path, opened: Opened) -> None:
        self.name = opened.name
        with self._explained():
            if opened.rereadable and Path(source).suffix.lower() not in (".gz", ".gzip"):
                file = pa.OSFile(os.fsencode(source))  # a text would have to be UTF-8
            else:
                with opened.stream() as stream:
                    file = pa.BufferReader(stream.read())
            self._file = pq.ParquetFile(file)
        self.names = list(self._file.schema_arrow.names)
        check_unique(self.names, self.name)

    def sample(self) -> pa.Table:
        with self._explained():
            batch = next(self._file.iter_batches(SAMPLE_ROWS), None)
        rows = self._file.schema_arrow.empty_table() if batch is None else pa.Table.from_batches([batch])
        return without_views(rows)

    def chunks(self, columns: list[str], rows: int | None) -> Iterator[Chunk]:
        with self._explained():
            batches = self._file.iter_batches(min(rows or PIECE_ROWS, PIECE_ROWS), columns=columns)
            tables = (without_views(pa.Table.from_batches([b]).select(columns)) for b in batches)
            yield from recut(tables, rows)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Failures of a damaged file in a sentence."""
        try:
            yield
        except (pa.ArrowException, *DAMAGED) as error:
            raise broken(self.name, error) from None


def without_views(table: pa.Table) -> pa.Table:
    """The table with columns of plain text and bytes in place of views, which Arrow cannot take rows of.

    Example:
        >>> views = pa.table({"x": pa.array(["CCO"]).cast(pa.string_view()), "y": [1]})
        >>> without_views(views).schema.types
        [DataType(string), DataType(int64)]
    """
    return table.cast(pa.schema([field.with_type(_PLAIN.get(field.type, field.type)) for field in table.schema]))
