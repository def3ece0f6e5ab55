"""Predict a file of any size into another, row for row, in constant memory."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter, deque
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import IO, Any, Literal, cast

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import DataError, UsageError
from molgraph.base.paths import storage_error
from molgraph.base.printable import printable
from molgraph.base.progress import bar
from molgraph.base.version import __version__
from molgraph.data.read import iter_rows
from molgraph.data.table import Table, row_name
from molgraph.data.table_builder import Rows
from molgraph.train.pipelined_predict import Predictor, predict_tables
from molgraph.train.resumable_file import PartFile
from molgraph.train.rowformat import Records, RowFormat, arrange, row_format
from molgraph.train.rowhash import RowHash

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
        spread: whether there are columns of the members' spread.
    """

    path: str
    rows: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    resumed: int = 0
    seconds: float = 0.0
    note: str = ""
    spread: bool = False


@dataclass(frozen=True)
class _Job:
    """What is read, what predicts it, and how it is written."""

    model: Predictor
    source: Any
    writer: RowFormat
    on_error: OnError
    chunk_rows: int
    keep_columns: bool
    options: dict[str, Any]


class _InputChanged(Exception):
    """Rows that an interrupted run has done are other rows now."""


def predict_stream(
    model: Predictor,
    source: Any,
    out: str | os.PathLike[str],
    *,
    model_hash: str = "",
    on_error: OnError = "keep",
    keep_columns: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    **columns_of_input: Any,
) -> Streamed:
    """Predict a file chunk by chunk; a run that was killed goes on where it stopped, to the same bytes.

    Output grows in ``OUT.part`` beside a journal, and is renamed to ``OUT`` at the end.

    Args:
        model: what predicts.
        source: a file (csv, csv.gz, tsv, parquet, sdf, smi), ``-`` for standard input, or a frame.
        out: csv, csv.gz, tsv, tsv.gz, parquet, sdf or sdf.gz by its ending, or ``-`` for standard output.
        model_hash: stands for the model in the journal; without it a killed run starts again.
        on_error: rows that cannot be predicted are kept with a reason, left out, or end the run.
        keep_columns: write the input's own columns, as they stand there, before the predictions.
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
    job = _Job(model, source, row_format(path), on_error, chunk_rows, keep_columns, columns_of_input)
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
        result = _straight(job, path)
    else:
        options = {"chunk_rows": chunk_rows, "drop": on_error == "drop", "columns": repr(columns_of_input)}
        options["keep_columns"] = keep_columns
        origin = identity_of(source)
        identity = {"model": model_hash, "input": origin, "options": options, "molgraph": __version__}
        with PartFile(path, identity if origin and model_hash else None) as part:
            result = _resumable(job, part)
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


def _resumable(job: _Job, part: PartFile) -> Streamed:
    result = Streamed("", rows=part.rows, resumed=part.rows, note=part.restarted)
    result.failed, result.reasons = part.state.get("failed", 0), part.state.get("reasons", {})
    begun = bool(part.state)  # a header is there, maybe alone
    consumed = RowHash()
    try:
        for rows, prediction in _predicted(job, part.rows, consumed, part.state.get("consumed", "")):
            data = _chunk(job, rows, prediction, result, head=not begun)
            consumed.update(rows)
            state = {"failed": result.failed, "reasons": result.reasons, "consumed": consumed.hexdigest()}
            part.append(data, rows=result.rows, state=state)
            begun = True
    except _InputChanged:
        part.restart(f"the input is not what it was when {part.part.name} was written: started again")
        return _resumable(job, part)
    except KeyboardInterrupt as stop:
        kept = f"{part.rows:,} rows are kept in {part.part.name}"
        stop.add_note(f"{kept}; the same command goes on from there" if part.identity else kept)
        raise
    part.finish(job.writer.convert)
    return result


def _straight(job: _Job, path: str) -> Streamed:
    result = Streamed("")
    if job.writer.convert is not None:
        raise DataError(f"{path} cannot hold that format", hint="name an ordinary file, or choose csv")
    with _opened(path) as file:
        for rows, prediction in _predicted(job, 0, RowHash(), ""):
            data = _chunk(job, rows, prediction, result, head=result.rows == 0)
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


def _predicted(job: _Job, skip: int, consumed: RowHash, expected: str) -> Iterator[tuple[Rows, Prediction]]:
    """The input's chunks and their predictions, those done before left out."""
    ahead: deque[Rows] = deque()

    def tables() -> Iterator[Table]:
        for rows in _rows(job, skip, consumed, expected):
            ahead.append(rows)
            yield rows.table

    with bar("predicting", total=count_rows(job.source)) as progress:
        progress.advance(skip)
        with closing(predict_tables(job.model, tables(), many=skip > 0)) as each:
            for table, prediction in each:
                yield ahead.popleft(), prediction
                progress.advance(len(table))


def _rows(job: _Job, skip: int, consumed: RowHash, expected: str) -> Iterator[Rows]:
    """The input's chunks, those done before left out: they are read and hashed, which costs little.

    Raises:
        _InputChanged: the rows that were left out are not those that were done before.
    """
    done = skip
    for rows in iter_rows(
        job.source,
        chunk_rows=job.chunk_rows,
        keep_columns=job.keep_columns,
        molblocks=isinstance(job.writer, Records),
        **job.options,
    ):
        n = min(skip, len(rows.table))
        if n:
            consumed.update(rows if n == len(rows.table) else rows.take(0, n))
            skip -= n
        if done and not skip:
            if consumed.hexdigest() != expected:
                raise _InputChanged
            done = 0
        if n < len(rows.table) or not len(rows.table):
            yield rows.take(n, len(rows.table)) if n else rows
    if skip:
        raise _InputChanged


def _chunk(job: _Job, rows: Rows, prediction: Prediction, result: Streamed, *, head: bool) -> bytes:
    ok = prediction.ok
    if job.on_error == "stop" and not ok.all():
        row = int(np.flatnonzero(~ok)[0])
        raise DataError(
            f"{row_name(result.rows + row, prediction.ids[row])}: {prediction.reason[row]}",
            hint="--on-error keep writes such rows with their reason, --on-error drop leaves them out",
        )
    result.rows += len(ok)
    result.spread = result.spread or prediction.spread is not None
    result.failed += int((~ok).sum())
    result.reasons = dict(
        (Counter(result.reasons) + Counter(prediction.reason[~ok].tolist())).most_common(_NAMED_REASONS)
    )
    chosen = np.flatnonzero(ok) if job.on_error == "drop" else np.arange(len(ok))
    output = arrange(rows, prediction, chosen, keep_columns=job.keep_columns)
    return (job.writer.head(output) if head else b"") + (job.writer.chunk(output) if len(chosen) else b"")


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
