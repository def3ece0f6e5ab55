"""Predict a file of any size into another, row for row, in constant memory."""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np

from molgraph.base.cluster import Cluster
from molgraph.base.contracts import Prediction
from molgraph.base.errors import CellError, ConflictError, FormatError
from molgraph.base.paths import atomic_write, storage_error
from molgraph.base.printable import printable
from molgraph.base.progress import bar
from molgraph.base.resources import model_path
from molgraph.base.version import __version__
from molgraph.base.workbook import split_sheet
from molgraph.data.content import entity_texts
from molgraph.data.read import iter_rows
from molgraph.data.reading.chunk import as_text
from molgraph.data.reading.table import SourceRows
from molgraph.data.table import row_name
from molgraph.train.abilities import gives_forces
from molgraph.train.checkpoint import digest
from molgraph.train.chunk_folder import ChunkFolder
from molgraph.train.model import Model
from molgraph.train.pipelined_predict import network_threads, predict_shard, predict_tables
from molgraph.train.row_formats import row_format
from molgraph.train.rowformat import RowFormat, SDRecords, arrange

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
        note: why rows that an earlier run had done were not used, where there were such.
        spread: whether members of an ensemble were apart.
        coverage: share of measured values that the intervals are made to hold; None where there are none.
        forces: whether the model gives forces too, which are not written.
    """

    path: str
    rows: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    resumed: int = 0
    seconds: float = 0.0
    note: str = ""
    spread: bool = False
    coverage: float | None = None
    forces: bool = False

    def add(self, counts: dict[str, Any]) -> None:
        """Count the rows of another chunk."""
        self.rows += counts["rows"]
        self.failed += counts["failed"]
        self.spread = self.spread or counts["spread"]
        self.coverage = self.coverage or counts["coverage"]
        self.reasons = dict((Counter(self.reasons) + Counter(counts["reasons"])).most_common(_NAMED_REASONS))


def predict_stream(
    model: Any,
    source: Any,
    out: str | os.PathLike[str],
    *,
    model_hash: str = "",
    on_error: OnError = "keep",
    keep_columns: bool = False,
    chunk_rows: int = CHUNK_ROWS,
    cluster: Cluster | None = None,
    **columns_of_input: Any,
) -> Streamed:
    """Predict a file chunk by chunk; a run that was killed goes on where it stopped, to the same bytes.

    Finished chunks are kept in the folder ``OUT.parts``, and joined to ``OUT`` at the end.

    Args:
        model: what predicts tables, such as a ``Model``.
        source: a file (csv, csv.gz, tsv, parquet, xlsx, sdf, smi, xyz, npz), ``-`` for standard input, or a frame.
        out: csv, csv.gz, tsv, tsv.gz, parquet, xlsx, sdf or sdf.gz by its ending, or ``-`` for standard output.
        model_hash: stands for the model; without it a killed run starts again.
        on_error: rows that cannot be predicted are kept with a reason, left out, or end the run.
        keep_columns: write the input's own columns, as they stand there, before the predictions.
        chunk_rows: rows at once.
        cluster: whose processes predict the chunks; None for this machine.
        columns_of_input: ``smiles``, ``id``, ``features`` as in ``read_table``.

    Raises:
        CellError: a row that cannot be predicted, with ``on_error="stop"``.
        StorageError: the disk is full, or the file cannot be written; what was done is kept for the next run.
    """
    started, path = time.perf_counter(), os.fspath(out)
    source_path = split_sheet(os.fspath(source))[0] if isinstance(source, str | os.PathLike) else ""
    if os.path.isfile(source_path) and os.path.realpath(source_path) == os.path.realpath(path):
        raise ConflictError(f"{path} is the file that is read", hint="name another output")
    run = repr((__version__, model_hash, chunk_rows, on_error == "drop", keep_columns, columns_of_input))
    forces = isinstance(model, Model) and gives_forces(model.method)
    result = Streamed(path, forces=forces)
    writing = _Writing(row_format(path), on_error, chunk_rows, keep_columns, getattr(model, "coverage", None))
    job = _Job(model, source, writing, columns_of_input, run, result, cluster)
    if path == "-" or (os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)):
        _write_straight(job, path)
    else:
        with ChunkFolder(path, resumable=bool(model_hash)) as folder:
            _write_chunks(job, folder)
    job.result.seconds = time.perf_counter() - started
    return job.result


def hash_of(path: str | os.PathLike[str]) -> str:
    """Hash of a model file's bytes, by which a later run knows it again; the file may be that of a name."""
    with open(model_path(path), "rb") as file:
        return blake2b(file.read(), digest_size=16).hexdigest()


@dataclass(frozen=True)
class _Writing:
    """How predictions are written."""

    format: RowFormat
    on_error: OnError
    chunk_rows: int
    keep_columns: bool
    coverage: float | None


@dataclass(frozen=True)
class _Job:
    """What is read, what predicts it, how it is written, and what came of it."""

    model: Any
    source: Any
    writing: _Writing
    options: dict[str, Any]
    run: str  # all that decides what a chunk's rows become
    result: Streamed
    cluster: Cluster | None


@dataclass(frozen=True)
class _Remote:
    """What every process of a cluster needs for a chunk."""

    model: Any
    writing: _Writing
    many: bool
    threads: int


def _write_chunks(job: _Job, folder: ChunkFolder) -> None:
    for number, key, data, counts in _predicted(job, folder.find):
        folder.add(number, key, data, counts)
    if folder.odd:
        held = f"{folder.folder.name} held rows of another model, input or option, or damaged ones"
        job.result.note = f"{held}: those were predicted again"
    folder.join(job.writing.format.join)


def _write_straight(job: _Job, path: str) -> None:
    """Write to standard output or a device, chunk by chunk."""
    if not job.writing.format.plain:
        raise FormatError(f"{path} cannot hold that format", hint="name an ordinary file, or choose csv")
    terminal = path == "-" and sys.stdout.isatty()
    with nullcontext(sys.stdout.buffer) if path == "-" else atomic_write(path, buffering=0) as file:
        for _, _, data, _ in _predicted(job, lambda number, key: None):
            if terminal:  # what a name or a molecule's text would make it do is written out
                data = printable(data.decode("utf-8", "surrogateescape")).encode()
            try:
                file.write(data)
                file.flush()
            except BrokenPipeError:
                raise
            except OSError as error:
                raise storage_error(f"cannot write {path}", error) from error


def _predicted(
    job: _Job, find: Callable[[int, str], dict[str, Any] | None]
) -> Iterator[tuple[int, str, bytes, dict[str, Any]]]:
    """Number, key, bytes and counts of each of the input's chunks for which ``find`` has no counts yet."""
    every = iter_rows(
        job.source,
        chunk_rows=job.writing.chunk_rows,
        keep_columns=job.writing.keep_columns,
        molblocks=isinstance(job.writing.format, SDRecords),
        **job.options,
    )
    first = list(islice(every, 2))
    with bar("predicting", total=count_rows(job.source)) as progress:

        def left() -> Iterator[tuple[int, str, SourceRows]]:
            for number, rows in enumerate(chain(first, every)):
                key = _hash(job.run, rows)
                counts = find(number, key)
                if counts is None or (job.writing.on_error == "stop" and counts["failed"]):  # predicted again, it stops
                    yield number, key, rows
                else:
                    job.result.add(counts)
                    job.result.resumed += len(rows.table)
                    progress.advance(len(rows.table))

        with closing(_written(job, left(), many=len(first) > 1)) as pieces:
            for number, key, data, counts in pieces:
                job.result.add(counts)
                yield number, key, data, counts
                progress.advance(counts["rows"])


def _written(
    job: _Job, chunks: Iterator[tuple[int, str, SourceRows]], *, many: bool
) -> Generator[tuple[int, str, bytes, dict[str, Any]]]:
    """Number, key, bytes and counts of each chunk, in order, predicted here or by the processes of a cluster."""
    if job.cluster is None:
        tables = ((chunk, chunk[2].table) for chunk in chunks)
        with closing(predict_tables(job.model, tables, many=many)) as predicted:
            for (number, key, rows), prediction in predicted:
                yield number, key, *_chunk(job.writing, number, rows, prediction)
        return
    remote = _Remote(job.model, job.writing, many, network_threads(job.model, many=many))
    items = (((number, key), (number, rows)) for number, key, rows in chunks)
    with closing(job.cluster.map(_shard, remote, items, cpus=remote.threads, gpus=_gpus(job.model))) as results:
        for (number, key), (data, counts) in results:
            yield number, key, data, counts


def _shard(remote: _Remote, item: tuple[int, SourceRows]) -> tuple[bytes, dict[str, Any]]:
    """Predict and write a chunk in a process of a cluster."""
    number, rows = item
    prediction = predict_shard(remote.model, rows.table, many=remote.many, threads=remote.threads)
    return _chunk(remote.writing, number, rows, prediction)


def _gpus(model: Any) -> int:
    """The GPUs that a chunk takes: one where the model is told to predict on it."""
    parts = model.method.with_members if isinstance(model, Model) else ()
    return int(any(str(part.get_params().get("device")).startswith("cuda") for part in parts))


def _chunk(writing: _Writing, number: int, rows: SourceRows, prediction: Prediction) -> tuple[bytes, dict[str, Any]]:
    """The bytes of a chunk, and the counts of its rows."""
    ok = prediction.ok
    if writing.on_error == "stop" and not ok.all():
        row = int(np.flatnonzero(~ok)[0])
        raise CellError(
            f"{row_name(number * writing.chunk_rows + row, prediction.ids[row])}: {prediction.reason[row]}",
            hint="--on-error keep writes such rows with their reason, --on-error drop leaves them out",
        )
    reasons = dict(Counter(prediction.reason[~ok].tolist()).most_common(_NAMED_REASONS))
    spread = prediction.spread is not None and bool((np.nan_to_num(prediction.spread) > 0).any())
    has_coverage = prediction.interval is not None or any(name.endswith("_set") for name in prediction.extra)
    coverage = writing.coverage if has_coverage else None
    counts = {"rows": len(ok), "failed": int((~ok).sum()), "reasons": reasons, "spread": spread, "coverage": coverage}
    chosen = np.flatnonzero(ok) if writing.on_error == "drop" else np.arange(len(ok))
    output = arrange(rows, prediction, chosen, keep_columns=writing.keep_columns)
    return writing.format.chunk(output, first=number == 0), counts


def _hash(run: str, rows: SourceRows) -> str:
    """Hash of a run and of all that is read of some rows: ids, molecules, descriptors and kept columns."""
    table, columns = rows.table, [as_text(rows.columns[name]) for name in rows.columns.column_names]
    texts = [table.ids, *map(entity_texts, table.entities), table.status, table.reason]
    return digest([run, *rows.names, *texts, table.features, *columns])


def count_rows(source: Any) -> int | None:
    """Rows of a plain text or parquet file, for the progress bar; None where they can't be counted cheaply."""
    with suppress(OSError, ValueError, TypeError):  # of a file or source that the reader will explain
        path = Path(source)
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_metadata(path).num_rows
        if path.is_file() and path.suffix in (".csv", ".tsv", ".smi", ".txt"):
            with open(path, "rb") as file:
                lines = sum(piece.count(b"\n") for piece in iter(lambda: file.read(1 << 20), b""))
            return max(lines - (path.suffix in (".csv", ".tsv")), 0)
    return None
