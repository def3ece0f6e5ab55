"""Predictions as bytes: a chunk's predictions in, lines of csv (or an Arrow record) that can be appended out."""

from __future__ import annotations

import gzip
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import UsageError

OWN_COLUMNS = ("id", "status", "reason")
SUFFIXES = (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet")


def column_names(prediction: Prediction, molecule: str) -> list[str]:
    """Names of the output's columns, each once; a target of a name that is taken is written ``predicted_...``.

    Args:
        prediction: any chunk's.
        molecule: the name of the input's molecule column.
    """
    shown = "input" if molecule in OWN_COLUMNS else molecule
    return ["id", shown, *prediction.numbers((*OWN_COLUMNS, shown)), "status", "reason"]


def columns(prediction: Prediction, rows: np.ndarray) -> list[Sequence[object]]:
    """The output's columns, in the order of ``column_names``: text as lists, numbers as float32 arrays.

    Numbers are written as float32, which is what networks compute in: seven significant digits.
    """
    inputs = prediction.inputs if prediction.inputs is not None else np.full(len(prediction), "", dtype=object)
    numbers = [values[rows].astype(np.float32) for values in prediction.numbers(()).values()]
    texts = [values[rows].tolist() for values in (prediction.ids, inputs, prediction.status, prediction.reason)]
    return [texts[0], texts[1], *numbers, texts[2], texts[3]]


class RowFormat(ABC):
    """How rows become bytes that can be put one chunk behind the other."""

    @abstractmethod
    def head(self, names: list[str], n_numbers: int) -> bytes:
        """What comes before the first row; the numbers' columns are the third and following ones."""

    @abstractmethod
    def chunk(self, values: list[Sequence[object]]) -> bytes:
        """One chunk of rows."""

    #: makes the file asked for (second) of the grown one (first), where they differ
    convert: Callable[[Path, IO[bytes]], None] | None = None


class Delimited(RowFormat):
    """csv or tsv, each chunk a gzip member of its own where it is compressed (a chain of members is a gzip file)."""

    def __init__(self, separator: str, compressed: bool) -> None:
        self.separator, self.compressed = separator, compressed
        self._unsafe = re.compile(f'["\r\n{separator}]')

    def head(self, names: list[str], n_numbers: int) -> bytes:
        return self._bytes(self.separator.join(self._safe(names)) + "\n")

    def chunk(self, values: list[Sequence[object]]) -> bytes:
        cells = [_numbers(v) if isinstance(v, np.ndarray) else self._safe(v) for v in values]
        text = "".join(line + "\n" for line in map(self.separator.join, zip(*cells, strict=True)))
        return self._bytes(text)

    def _safe(self, texts: Iterable[object]) -> list[str]:
        cells = ["" if text is None else str(text) for text in texts]
        if self._unsafe.search("".join(cells)):
            return [f'"{c.replace(chr(34), chr(34) * 2)}"' if self._unsafe.search(c) else c for c in cells]
        return cells

    def _bytes(self, text: str) -> bytes:
        data = text.encode("utf-8", "surrogateescape")
        return gzip.compress(data, compresslevel=5, mtime=0) if self.compressed and data else data


class Parquet(RowFormat):
    """Parquet: grows as an Arrow stream, whose records can be appended, and is rewritten once at the end."""

    def __init__(self) -> None:
        self.convert = self._rewrite

    def head(self, names: list[str], n_numbers: int) -> bytes:
        import pyarrow as pa

        kinds = [pa.string()] * 2 + [pa.float32()] * n_numbers + [pa.string()] * 2
        return pa.schema(list(zip(names, kinds, strict=True))).serialize().to_pybytes()

    def chunk(self, values: list[Sequence[object]]) -> bytes:
        import pyarrow as pa

        arrays = [
            pa.array(np.ma.masked_invalid(v))
            if isinstance(v, np.ndarray)
            else pa.array([str(t).encode("utf-8", "replace") for t in v]).cast(pa.string())
            for v in values
        ]
        return pa.record_batch(arrays, names=[str(i) for i in range(len(arrays))]).serialize().to_pybytes()

    def _rewrite(self, part: Path, made: IO[bytes]) -> None:
        import pyarrow as pa
        import pyarrow.parquet as pq

        with (
            pa.OSFile(str(part)) as source,
            pa.ipc.open_stream(source) as stream,
            pq.ParquetWriter(made, stream.schema) as writer,
        ):
            for batch in stream:
                writer.write_batch(batch)


def row_format(path: str) -> RowFormat:
    """The format that a file's name asks for; ``-`` is csv.

    Raises:
        UsageError: a name of no known ending.

    Example:
        >>> type(row_format("out.csv.gz")).__name__
        'Delimited'
    """
    name = Path(path).name.lower()
    if name == "-" or "." not in name:
        return Delimited(",", False)
    for suffix in SUFFIXES:
        if name.endswith(suffix):
            separator = "\t" if suffix.startswith(".tsv") else ","
            return Parquet() if suffix == ".parquet" else Delimited(separator, suffix.endswith(".gz"))
    raise UsageError(f"cannot write {Path(path).name!r}: unknown ending", hint="known: " + ", ".join(SUFFIXES))


def _numbers(values: np.ndarray) -> list[str]:
    """Shortest text that reads back as the same float32; empty for NaN."""
    import pyarrow as pa

    return pa.array(np.ma.masked_invalid(values)).cast(pa.string()).fill_null("").to_pylist()
