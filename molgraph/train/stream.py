"""Prediction of a file of any size: a model and a file in, a file of predictions row for row out, memory flat."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, cast

import numpy as np

from molgraph import __version__
from molgraph.base.contracts import Prediction
from molgraph.base.errors import DataError, UsageError
from molgraph.base.paths import storage_error
from molgraph.base.printable import printable
from molgraph.base.progress import bar
from molgraph.data.table import make_table, row_name
from molgraph.train.overlap import Predictor, predict_tables
from molgraph.train.partfile import PartFile
from molgraph.train.rowformat import RowFormat, column_names, columns, row_format

if TYPE_CHECKING:
    from molgraph.data.table import Table

OnError = Literal["keep", "drop", "stop"]
#: rows that are read, predicted and written at once; fixed, so that batches are the same in every run
CHUNK_ROWS = 8_192
_NAMED_REASONS = 50


@dataclass
class Streamed:
    """What a streamed prediction did.

    Args:
        path: the file written, or ``-``.
        rows: input rows.
        failed: rows without a prediction.
        reasons: the commonest reasons with their counts.
        resumed: rows that an earlier, interrupted run had done.
        seconds: wall time of this run.
        note: why an earlier run's part was not used, where it was not.
    """

    path: str
    rows: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    resumed: int = 0
    seconds: float = 0.0
    note: str = ""


def predict_stream(
    model: Predictor,
    source: Any,
    out: str | os.PathLike[str],
    *,
    model_hash: str = "",
    on_error: OnError = "keep",
    chunk_rows: int = CHUNK_ROWS,
    **columns_of_input: Any,
) -> Streamed:
    """Predict a file chunk by chunk; a run that was killed goes on where it stopped, to the same bytes.

    Output grows in ``OUT.part`` beside a journal, and is renamed to ``OUT`` at the end.

    Args:
        model: what predicts.
        source: a file (csv, csv.gz, tsv, parquet, sdf, smi), ``-`` for standard input, or a frame.
        out: csv, csv.gz, tsv, tsv.gz or parquet by its ending, or ``-`` for standard output.
        model_hash: stands for the model in the journal; without it a killed run starts again.
        on_error: rows that cannot be predicted are kept with a reason, left out, or end the run.
        chunk_rows: rows at once.
        columns_of_input: ``smiles``, ``id``, ``features`` as in ``read_table``.

    Raises:
        DataError: a row that cannot be predicted, with ``on_error="stop"``.
        StorageError: the disk is full, or the file cannot be written; what was done is kept for the next run.
    """
    started = time.perf_counter()
    path = os.fspath(out)
    if (
        isinstance(source, str | os.PathLike)
        and os.path.isfile(source)
        and os.path.realpath(source) == os.path.realpath(path)
    ):
        raise UsageError(f"{path} is the file that is read", hint="name another output")
    writer = row_format(path)
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
        result = _straight(model, source, path, writer, on_error, chunk_rows, columns_of_input)
    else:
        options = {"chunk_rows": chunk_rows, "drop": on_error == "drop", "columns": repr(columns_of_input)}
        origin = identity_of(source)
        identity = {"model": model_hash, "input": origin, "options": options, "molgraph": __version__}
        with PartFile(path, identity if origin and model_hash else None) as part:
            result = _resumable(model, source, part, writer, on_error, chunk_rows, columns_of_input)
    result.path, result.seconds = path, time.perf_counter() - started
    return result


def identity_of(source: Any) -> dict[str, Any] | None:
    """What tells an input file from another: its place, size and time of change; None for anything but a file."""
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return None
    about = os.stat(source)
    return {"path": os.path.realpath(source), "bytes": about.st_size, "changed_ns": about.st_mtime_ns}


def hash_of(path: str | os.PathLike[str]) -> str:
    """Hash of a model file's bytes, for the journal."""
    with open(path, "rb") as file:
        return blake2b(file.read(), digest_size=16).hexdigest()


def _resumable(
    model: Predictor,
    source: Any,
    part: PartFile,
    writer: RowFormat,
    on_error: OnError,
    chunk_rows: int,
    options: dict[str, Any],
) -> Streamed:
    result = Streamed("", rows=part.rows, resumed=part.rows, note=part.restarted)
    result.failed, result.reasons = part.state.get("failed", 0), part.state.get("reasons", {})
    begun = bool(part.state)  # a header is there, maybe alone
    try:
        for table, prediction in _predicted(model, source, chunk_rows, part.rows, options):
            data = _chunk(table, prediction, writer, result, on_error, head=not begun)
            part.append(data, rows=result.rows, state={"failed": result.failed, "reasons": result.reasons})
            begun = True
    except KeyboardInterrupt as stop:
        kept = f"{part.rows:,} rows are kept in {part.part.name}"
        stop.add_note(f"{kept}; the same command goes on from there" if part.identity else kept)
        raise
    part.finish(writer.convert)
    return result


def _straight(
    model: Predictor,
    source: Any,
    path: str,
    writer: RowFormat,
    on_error: OnError,
    chunk_rows: int,
    options: dict[str, Any],
) -> Streamed:
    result = Streamed("")
    if writer.convert is not None:
        raise DataError(f"{path} cannot hold parquet", hint="name an ordinary file, or choose csv")
    with _opened(path) as file:
        for table, prediction in _predicted(model, source, chunk_rows, 0, options):
            data = _chunk(table, prediction, writer, result, on_error, head=result.rows == 0)
            try:
                file.write(data)
                file.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                raise storage_error(f"cannot write {path}", error) from error
    return result


@contextmanager
def _opened(path: str) -> Iterator[IO[bytes]]:
    if path == "-":
        yield cast(IO[bytes], _Screen()) if sys.stdout.isatty() else sys.stdout.buffer
        return
    try:
        descriptor = os.open(path, os.O_WRONLY)
    except OSError as error:
        raise storage_error(f"cannot write {path}", error) from error
    with os.fdopen(descriptor, "wb", buffering=0) as file:
        yield file


class _Screen:
    """Standard output that is a terminal: what a name or a molecule's text would make it do is written out."""

    def write(self, data: bytes) -> int:
        sys.stdout.buffer.write(printable(data.decode("utf-8", "surrogateescape")).encode())
        return len(data)

    def flush(self) -> None:
        sys.stdout.buffer.flush()


def _predicted(
    model: Predictor, source: Any, chunk_rows: int, skip: int, options: dict[str, Any]
) -> Iterator[tuple[Table, Prediction]]:
    """The input's chunks and their predictions, those done before left out."""
    with bar("predicting", total=count_rows(source)) as progress:
        progress.advance(skip)
        with closing(predict_tables(model, _tables(source, chunk_rows, skip, options), many=skip > 0)) as each:
            for table, prediction in each:
                yield table, prediction
                progress.advance(len(table))


def _tables(source: Any, chunk_rows: int, skip: int, options: dict[str, Any]) -> Iterator[Table]:
    """The input's chunks, those done before left out (they are read, which costs little, but not predicted)."""
    from molgraph.data.read import iter_tables

    empty = True
    for table in iter_tables(source, chunk_rows=chunk_rows, **options):
        empty = False
        if skip and skip >= len(table):
            skip -= len(table)
        else:
            yield table.take(np.arange(skip, len(table))) if skip else table
            skip = 0
    if empty:  # a header alone is answered with a header
        yield make_table([])


def _chunk(
    table: Table, prediction: Prediction, writer: RowFormat, result: Streamed, on_error: OnError, *, head: bool
) -> bytes:
    ok = prediction.ok
    if on_error == "stop" and not ok.all():
        row = int(np.flatnonzero(~ok)[0])
        raise DataError(
            f"{row_name(result.rows + row, prediction.ids[row])}: {prediction.reason[row]}",
            hint="--on-error keep writes such rows with their reason, --on-error drop leaves them out",
        )
    result.rows += len(table)
    result.failed += int((~ok).sum())
    result.reasons = dict(
        (Counter(result.reasons) + Counter(prediction.reason[~ok].tolist())).most_common(_NAMED_REASONS)
    )
    rows = np.flatnonzero(ok) if on_error == "drop" else np.arange(len(table))
    values = columns(prediction, rows)
    names = column_names(prediction, table.entity("molecule").name)
    return (writer.head(names, len(names) - 4) if head else b"") + (writer.chunk(values) if len(rows) else b"")


def count_rows(source: Any) -> int | None:
    """Rows of a plain text or parquet file, for the progress bar; None where they can't be counted cheaply.

    A file that can't be read at all is the reader's to explain.
    """
    if not isinstance(source, str | os.PathLike) or not os.path.isfile(source):
        return None
    path = Path(source)
    with suppress(OSError, ValueError):  # pyarrow's own errors on a foreign file are ValueErrors
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_metadata(path).num_rows
        if path.suffix in (".csv", ".tsv", ".smi", ".txt"):
            with open(path, "rb") as file:
                lines = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
            return max(lines - (path.suffix in (".csv", ".tsv")), 0)
    return None
