"""Write predictions chunk by chunk, and join the chunks to a csv, tsv, parquet, NumPy or SD file."""

from __future__ import annotations

import gzip
import re
import shutil
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from textwrap import wrap
from typing import IO

import numpy as np
import pyarrow as pa

from molgraph.base.contracts import Prediction
from molgraph.base.errors import UnsupportedError
from molgraph.base.packed import offsets_of
from molgraph.chem.atom_order import follow_block
from molgraph.chem.molfile import draw_block, write_record
from molgraph.data.levels import level_of
from molgraph.data.reading.chunk import MOLBLOCK, as_text
from molgraph.data.reading.smi_sdf import SDReader
from molgraph.data.reading.table import SourceRows

LIST_LINE = 190  # characters of a line of a property list, as RDKit has it


@dataclass(frozen=True)
class Output:
    """Rows to write, with their ids and their SMILES as they were given.

    Args:
        columns: texts as lists, predicted numbers as float32 arrays, those of atoms and bonds as object arrays of such
            (None for none), the input's own columns as Arrow has them.
        blocks: the molecules as an SD file had them, empty where unreadable; None where the input is no SD file.
        level: of the predicted values.
    """

    columns: Mapping[str, Sequence[object] | np.ndarray | pa.ChunkedArray]
    ids: Sequence[str]
    molecules: Sequence[str]
    blocks: Sequence[str] | None
    level: str = "row"


def arrange(rows: SourceRows, prediction: Prediction, chosen: np.ndarray, *, keep_columns: bool) -> Output:
    """The columns of a chunk's output, each under a name of its own, for the rows ``chosen``.

    An output column whose name a column of the input bears is called ``..._predicted``, unless it is the molecule's.
    Numbers are written as float32, which is what networks compute in: seven significant digits.
    """
    molecule = rows.table.entities[0].name
    inputs = prediction.inputs if prediction.inputs is not None else np.full(len(prediction), "", dtype=object)
    texts = [values[chosen].tolist() for values in (prediction.ids, inputs, prediction.status, prediction.reason)]
    if keep_columns:
        fields = {name: rows.columns[name].take(pa.array(chosen)) for name in rows.names}
        status, reason = (_free(name, fields) for name in ("status", "reason"))
    else:
        shown = "input" if molecule in ("id", "status", "reason") else molecule
        fields, status, reason = {"id": texts[0], shown: texts[1]}, "status", "reason"
        for entity in rows.table.entities[1:]:
            fields[_free(entity.name, (*fields, status, reason))] = entity.shown[chosen].tolist()
    numbers = prediction.numbers({*fields, status, reason, *rows.names})
    columns = {**fields, **{name: _single(values[chosen]) for name, values in numbers.items()}}
    for name, values in prediction.extra.items():
        more = values[chosen]
        columns[_free(name, {*columns, status, reason, *rows.names})] = (
            more.tolist() if more.dtype == object else _single(more)
        )
    blocks = None
    if MOLBLOCK in rows.columns.column_names:
        blocks = rows.columns[MOLBLOCK].take(pa.array(chosen)).to_pylist()
    level = level_of(prediction.targets)
    return Output(columns | {status: texts[2], reason: texts[3]}, texts[0], texts[1], blocks, level)


def _single(values: np.ndarray) -> np.ndarray:
    """Numbers, or arrays of them, as float32."""
    if values.dtype != object:
        return values.astype(np.float32)
    for i, value in enumerate(values):
        values[i] = None if value is None else value.astype(np.float32)
    return values


def _free(name: str, taken: Iterable[str]) -> str:
    while name in taken:
        name = f"{name}_predicted"
    return name


class RowFormat(ABC):
    """How rows become bytes, chunk by chunk, and chunks a file."""

    plain = True  #: whether a file is its chunks, one behind the other

    @abstractmethod
    def chunk(self, output: Output, first: bool) -> bytes:
        """The bytes of some rows; those of the first chunk say what the columns are."""

    def join(self, chunks: Iterator[IO[bytes]], file: IO[bytes]) -> None:
        """Write the file that some chunks make."""
        for chunk in chunks:
            shutil.copyfileobj(chunk, file)


class Delimited(RowFormat):
    """csv or tsv, each chunk a gzip member of its own where it is compressed (a chain of members is a gzip file)."""

    def __init__(self, separator: str, compressed: bool) -> None:
        self.separator, self.compressed = separator, compressed
        self._unsafe = re.compile(f'["\r\n{separator}]')

    def chunk(self, output: Output, first: bool) -> bytes:
        plain = [isinstance(v, np.ndarray) and v.dtype != object for v in output.columns.values()]
        cells = [_texts(v) for v in output.columns.values()]
        cells = [texts if safe else self._safe(texts) for texts, safe in zip(cells, plain, strict=True)]
        text = "".join(line + "\n" for line in map(self.separator.join, zip(*cells, strict=True)))
        head = self.separator.join(self._safe(output.columns)) + "\n" if first else ""
        return _bytes(head, self.compressed) + _bytes(text, self.compressed)

    def _safe(self, texts: Iterable[str]) -> list[str]:
        cells = list(texts)
        if self._unsafe.search("".join(cells)):
            return [f'"{c.replace(chr(34), chr(34) * 2)}"' if self._unsafe.search(c) else c for c in cells]
        return cells


class Parquet(RowFormat):
    """Parquet; a chunk is an Arrow stream, and becomes a row group."""

    plain = False

    def chunk(self, output: Output, first: bool) -> bytes:
        batch = pa.record_batch([arrow_array(v) for v in output.columns.values()], names=list(output.columns))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as stream:
            stream.write_batch(batch)
        return sink.getvalue().to_pybytes()

    def join(self, chunks: Iterator[IO[bytes]], file: IO[bytes]) -> None:
        import pyarrow.parquet as pq

        tables = (pa.ipc.open_stream(chunk).read_all() for chunk in chunks)
        first = next(tables)
        with pq.ParquetWriter(file, first.schema) as writer:
            for table in chain([first], tables):
                if len(table):
                    writer.write_table(table)


class Numbers(RowFormat):
    """A NumPy file of the predicted numbers alone: float32 [rows, columns], NaN where there is none."""

    plain = False

    def chunk(self, output: Output, first: bool) -> bytes:
        if output.level != "row":
            words = ".npy holds one number a column"
            raise UnsupportedError(words, hint="write values of atoms to .csv, .parquet or .sdf")
        numbers = [values for values in output.columns.values() if isinstance(values, np.ndarray)]
        head = len(numbers).to_bytes(8, "little") if first else b""
        return head + np.stack(numbers, axis=1).astype("<f4").tobytes()

    def join(self, chunks: Iterator[IO[bytes]], file: IO[bytes]) -> None:
        first = next(chunks)
        width = int.from_bytes(first.read(8), "little")
        about = {"descr": "<f4", "fortran_order": False}
        np.lib.format.write_array_header_1_0(file, about | {"shape": (0, width)})
        start = file.tell()
        super().join(chain([first], chunks), file)
        shape = ((file.tell() - start) // (4 * width), width)
        file.seek(0)
        np.lib.format.write_array_header_1_0(file, about | {"shape": shape})  # numpy leaves room for any number of rows


class SDRecords(RowFormat):
    """An SD file: a record for each row, with the other columns as its fields.

    Values of atoms and bonds are property lists as RDKit writes and reads them (``atom.dprop.charge``), in the order of
    the record's own atoms. The molecule is the input's own where that is an SD file, else it is drawn from the SMILES;
    a row whose molecule could not be read is a record of no atoms.
    """

    def __init__(self, compressed: bool) -> None:
        self.compressed = compressed

    def chunk(self, output: Output, first: bool) -> bytes:
        shown = () if output.blocks is None else ("smiles", SDReader.TITLE)  # by the records themselves
        columns = {}
        for name, values in output.columns.items():
            if isinstance(values, np.ndarray) and values.dtype == object:
                prefix = f"{output.level}.dprop."
                listed = _free(name if name.startswith(prefix) else prefix + name, output.columns)
                columns[listed] = _property_lists(values, output)
            elif name not in shown:
                columns[name] = _texts(values)
        blocks = output.blocks if output.blocks is not None else map(draw_block, output.molecules)
        out = []
        for id, block, cells in zip(output.ids, blocks, zip(*columns.values(), strict=True), strict=True):
            title = ("id", block.partition("\n")[0].strip() or id)
            out.append(write_record(id, block, (f for f in zip(columns, cells, strict=True) if f != title)))
        return _bytes("".join(out), self.compressed)


def _texts(values: Sequence[object] | np.ndarray | pa.ChunkedArray) -> list[str]:
    """Cells as text; a number's is the shortest that reads back as the same, nothing is empty; lists are JSON."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        return ["" if value is None else f"[{', '.join(text or 'null' for text in _texts(value))}]" for value in values]
    if isinstance(values, np.ndarray):
        return pa.array(np.ma.masked_invalid(values)).cast(pa.string()).fill_null("").to_pylist()
    if isinstance(values, pa.ChunkedArray):
        return as_text(values).tolist()
    return ["" if text is None else str(text) for text in values]


def _property_lists(values: np.ndarray, output: Output) -> list[str]:
    """Values between blanks, ``n/a`` where there is none, in the order of the structures that are written."""
    out = []
    for value, block in zip(values, output.blocks or [""] * len(values), strict=True):
        if block and value is not None:  # its SMILES, which was predicted, has another order
            result = follow_block(block)
            placed = np.empty_like(value)
            if result is not None:
                placed[getattr(result[1], output.level)] = value
            value = None if result is None else placed
        text = "" if value is None else " ".join(text or "n/a" for text in _texts(value))
        out.append("\n".join(wrap(text, LIST_LINE)))
    return out


def arrow_array(values: Sequence[object] | np.ndarray | pa.ChunkedArray) -> pa.Array:
    """A column as Arrow has it."""
    if isinstance(values, np.ndarray) and values.dtype == object:
        none = np.array([value is None for value in values], dtype=bool)
        full = [np.zeros(0, np.float32) if value is None else value for value in values]
        flat = pa.array(np.ma.masked_invalid(np.concatenate([np.zeros(0, np.float32), *full])))
        return pa.ListArray.from_arrays(offsets_of([*map(len, full)]).astype(np.int32), flat, mask=pa.array(none))
    if isinstance(values, np.ndarray):
        return pa.array(np.ma.masked_invalid(values))
    if not isinstance(values, pa.ChunkedArray):
        return pa.array([str(text).encode("utf-8", "replace") for text in values], pa.binary()).cast(pa.string())
    if pa.types.is_dictionary(values.type):  # its dictionary would have to be written apart
        values = values.cast(values.type.value_type)
    elif "dictionary<" in str(values.type):
        return pa.array(as_text(values), pa.string())
    return pa.concat_arrays(values.chunks) if values.num_chunks else pa.array([], values.type)


def _bytes(text: str, compressed: bool) -> bytes:
    data = text.encode("utf-8", "surrogateescape")
    return gzip.compress(data, compresslevel=5, mtime=0) if compressed and data else data
