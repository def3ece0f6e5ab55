"""Read files and frames of vectors, such as those that ``molgraph embed`` writes, in blocks of rows."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Prediction
from molgraph.base.errors import FormatError, MismatchError
from molgraph.base.paths import missing_file

AXIS = "embedding_"  # the columns of a vector are embedding_0, embedding_1, ...
BITS = ".bits"  # ending of a file of binary codes
ROWS = 65_536  # rows that are read at once
_NUMBERED = re.compile(rf"{AXIS}(\d+)")


@dataclass(frozen=True)
class Rows:
    """Some rows with their vectors.

    Args:
        ids, texts: object arrays [n]: ids, and molecules as they were given; empty texts where there are none.
        x: float32 [n, d], or of binary codes uint8 [n, bits / 8]; of a row without a vector zeros.
        reason: object array [n]: why a row has no vector, else empty.
    """

    ids: np.ndarray
    texts: np.ndarray
    x: np.ndarray
    reason: np.ndarray

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def ok(self) -> np.ndarray:
        """bool [n]: rows that have a vector."""
        return np.asarray(self.reason == "", dtype=bool)


def holds_vectors(source: Any) -> bool:
    """Whether a source has vectors already: an array, a prediction, or a frame or file with columns ``embedding_0`` ...

    Example:
        >>> holds_vectors(np.zeros((2, 3))), holds_vectors("CCO")
        (True, False)
    """
    if isinstance(source, np.ndarray):
        return source.ndim == 2 and source.dtype.kind == "f"
    if isinstance(source, Rows | Prediction | pd.DataFrame):
        return isinstance(source, Rows) or bool(_axes(_frame(source).columns))
    if not isinstance(source, str | os.PathLike):
        return False
    path = Path(source)
    return path.suffix.lower() in (".npy", BITS) or (path.is_file() and bool(_axes(_columns(path))))


def vector_blocks(source: Any, rows: int = ROWS) -> Iterator[Rows]:
    """The rows of a source of vectors, so many at a time; a parquet file is never held as a whole.

    Raises:
        FormatError: the file cannot be read, or its columns of vectors have a gap.
    """
    if isinstance(source, Rows):
        yield source
        return
    if isinstance(source, str | os.PathLike):
        path = Path(source)
        if not path.is_file():
            raise missing_file(path)
        try:
            if path.suffix.lower() in (".parquet", BITS):
                import pyarrow.parquet as pq

                with pq.ParquetFile(path) as file:
                    start, width = 0, 0
                    if path.suffix.lower() == BITS:
                        width = _byte_width(file.schema_arrow)
                    for batch in file.iter_batches(batch_size=rows):
                        frame = batch.to_pandas()
                        yield _bit_rows(frame, start, width) if width else _rows(frame, start)
                        start += batch.num_rows
                return
            source = np.load(path, mmap_mode="r") if path.suffix.lower() == ".npy" else _csv(path)
        except (ValueError, OSError, pd.errors.ParserError) as error:
            raise FormatError(f"{path} holds no vectors ({str(error).splitlines()[0][:100]})") from error
    frame = source if isinstance(source, np.ndarray) else _frame(source)
    for start in range(0, max(len(frame), 1), rows):
        piece = frame[start : start + rows]
        yield _array_rows(piece, start) if isinstance(piece, np.ndarray) else _rows(piece, start)


def read_vectors(source: Any) -> Rows:
    """All rows of a source of vectors."""
    return joined([*vector_blocks(source)])


def joined(blocks: Sequence[Rows]) -> Rows:
    """Several blocks as one."""
    parts = ([getattr(group, name) for group in blocks] for name in ("ids", "texts", "x", "reason"))
    return Rows(*(np.concatenate(part) for part in parts))


def check_width(rows: Rows, others: Rows) -> None:
    """Raise ``MismatchError`` where two sets of vectors have different widths, or one of them is of binary codes."""
    if rows.x.dtype != others.x.dtype:
        words = "binary codes cannot be compared with vectors of numbers"
        raise MismatchError(
            words, hint="make both alike: molgraph embed MODEL DATA --code LIBRARY.bits.code.npz -o QUERY.bits"
        )
    if rows.x.shape[1] != others.x.shape[1]:
        words = f"vectors of width {rows.x.shape[1]} cannot be compared with vectors of width {others.x.shape[1]}"
        raise MismatchError(words, hint="make both with one encoder: molgraph embed MODEL DATA -o vectors.parquet")


def _array_rows(x: np.ndarray, start: int) -> Rows:
    x = np.asarray(x, dtype=np.float32)
    numbers = np.array([str(start + i) for i in range(len(x))], dtype=object)
    return _marked(numbers, np.full(len(x), "", dtype=object), x, np.full(len(x), "", dtype=object))


def is_bits(source: Any) -> bool:
    """Whether a source is a file of binary codes."""
    return isinstance(source, str | os.PathLike) and Path(source).suffix.lower() == BITS


def _byte_width(schema: Any) -> int:
    """Bytes of a code, by the columns of a file of binary codes."""
    kind: Any = schema.field("bits").type if "bits" in schema.names else None
    if not str(kind).startswith("fixed_size_binary"):
        raise ValueError("no column of bits")
    return int(kind.byte_width)


def _bit_rows(frame: pd.DataFrame, start: int, width: int) -> Rows:
    """Rows of a file of binary codes."""
    codes = [bytes(width) if code is None else code for code in frame["bits"]]
    there = frame["bits"].notna().map({True: 0.0, False: None})
    vectors = _rows(frame.drop(columns="bits").assign(**{f"{AXIS}0": there}), start)
    return replace(vectors, x=np.frombuffer(b"".join(codes), np.uint8).reshape(-1, width))


def _rows(frame: pd.DataFrame, start: int) -> Rows:
    axes, n = _axes(frame.columns), len(frame)
    numbers = (pd.to_numeric(frame[axis], errors="coerce") for axis in axes)
    x = np.stack([column.to_numpy(np.float32, na_value=np.nan) for column in numbers], axis=1)
    ids = frame["id"] if "id" in frame else pd.Series(np.arange(start, start + n))
    others = [name for name in frame if name not in {"id", "status", "reason", *axes}]
    shown = next((name for name in ("smiles", "input", *others) if name in frame), None)
    texts = pd.Series([""] * n) if shown is None else frame[shown]
    reason = frame["reason"] if "reason" in frame else pd.Series([""] * n)
    columns = (column.astype(object).where(column.notna(), "").astype(str) for column in (ids, texts, reason))
    ids, texts, reason = (column.to_numpy(object) for column in columns)
    return _marked(ids, texts, x, reason)


def _marked(ids: np.ndarray, texts: np.ndarray, x: np.ndarray, reason: np.ndarray) -> Rows:
    lost = ~np.isfinite(x).all(axis=1)
    reason = np.where(lost & (reason == ""), "no vector in this row", reason).astype(object)
    return Rows(ids, texts, np.where(lost[:, None], np.float32(0), x), reason)


def _frame(source: Any) -> pd.DataFrame:
    return source.to_frame() if isinstance(source, Prediction) else source


def _axes(columns: Any) -> list[str]:
    """The columns of vectors, in order; none where there are none."""
    numbers = sorted(int(m.group(1)) for m in (_NUMBERED.fullmatch(str(name)) for name in columns) if m)
    if numbers and numbers != [*range(len(numbers))]:
        raise FormatError(f"the columns {AXIS}0 to {AXIS}{numbers[-1]} of a vector have a gap or stand twice")
    return [f"{AXIS}{i}" for i in numbers]


def _columns(path: Path) -> list[str]:
    """Names of a table file's columns; none where it is of another kind."""
    try:
        if path.suffix.lower() == ".parquet":
            import pyarrow.parquet as pq

            return [*pq.read_schema(path).names]
        return [*pd.read_csv(path, nrows=0).columns] if path.suffix.lower() == ".csv" else []
    except (ValueError, OSError, UnicodeDecodeError, pd.errors.ParserError, pd.errors.EmptyDataError):
        return []


def _csv(path: Path) -> pd.DataFrame:
    return pd.read_csv(path, dtype={"id": str})
