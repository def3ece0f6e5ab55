"""Compute one cell: fit, predict the test rows, and write the predictions, inside the cell's own process."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import traceback
from dataclasses import replace
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Generator, Prediction, SamplesUnchecked
from molgraph.base.errors import MolgraphError, ShapeError
from molgraph.base.paths import disk_full
from molgraph.base.positions import GIVEN, NOTE, geometry_of
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.data.table_parquet import read_handed
from molgraph.evaluate.benchmark.cells import PREDICTIONS
from molgraph.evaluate.benchmark.job import Job, machine, versions
from molgraph.evaluate.benchmark.search import search
from molgraph.evaluate.generation.draws import given_molecules, write_draws
from molgraph.evaluate.label_check import refuse_labels

THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def compute(line: Connection, job: Job) -> None:
    """Run a job and send as JSON when it began, by the system's clock, then what became of it, failures too."""
    line.send_bytes(json.dumps({"began": time.monotonic()}).encode())
    try:
        for module in job.run.imports:
            import_module(module)
        os.environ |= dict.fromkeys(THREADS, str(job.run.threads))  # for libraries to come
        if torch := sys.modules.get("torch"):
            torch.set_num_threads(job.run.threads)
        payload = json.dumps(run_job(job) | {"versions": versions(), "machine": machine()})
    except BaseException as error:  # whatever a method raises is how its cell ended
        payload = json.dumps(_failure(error))
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):  # a full disk, a stream that the method closed
            stream.flush()
    line.send_bytes(payload.encode())


def run_job(job: Job) -> dict[str, Any]:
    """Learn from the training rows, predict the test rows, write the predictions.

    The test rows' labels are taken off before the method is made: neither it nor its search can see them.
    """
    table, split = read_handed(Path(job.table)), Split.load(job.split)
    job = replace(job, side=job.side_in(table))
    test = table.take(split.test)
    train, valid = table.take(split.train), table.take(split.valid)
    del table
    began = time.perf_counter()
    outcome = search(job, train, split) if job.method.search is not None else {}
    searched = time.perf_counter()
    method = job.make({**job.method.params, **outcome.get("chosen", {})}, job.seed)
    if isinstance(method, Generator):
        return run_generator(job, method, given_molecules(train, job.generation.most_train), valid, split)
    fit_start = time.perf_counter()
    job.fit(method, train, valid, split, job.seed)
    fitted = time.perf_counter()
    prediction = method.predict(job.hidden(test))
    seconds = {"search": searched - began, "fit": fitted - fit_start, "predict": time.perf_counter() - fitted}
    _check(prediction, test, job)
    if ":" in job.method.name:  # by import path; it runs where the labels can be read
        refuse_labels(test.row_targets, test.y, prediction.value, job.noise, job.method.row)
    write_predictions(Path(job.folder) / PREDICTIONS, split.test, test, prediction)
    notes = [*method.notes, *outcome.pop("notes", ())]
    if geometry_of(method) == GIVEN:  # one that makes them says how
        notes.append(NOTE + GIVEN)
    unlearned = dict(prediction.unlearned)
    return {"status": "ok", "reason": "", "seconds": seconds, "notes": notes, "unlearned": unlearned, **outcome}


def run_generator(job: Job, made: Generator, train: Table, valid: Table, split: Split) -> dict[str, Any]:
    """Learn from the training molecules and write what is drawn; the test molecules are never handed to it."""
    started = time.perf_counter()
    job.fit(made, job.hidden(train), job.hidden(valid), split, job.seed)
    fitted, n = time.perf_counter(), job.generation.draws
    drawn = {"smiles": made.sample(n, job.seed)}
    seconds = {"fit": fitted - started, "sample": time.perf_counter() - fitted}
    if isinstance(made, SamplesUnchecked):
        drawn["unchecked"] = made.sample_unchecked(n, job.seed)
    if len(drawn["smiles"]) != n:
        raise ShapeError(f"{job.method.name} drew {len(drawn['smiles'])} molecules", hint=f"asked for {n}")
    write_draws(Path(job.folder) / PREDICTIONS, drawn)
    return {"status": "ok", "reason": "", "seconds": seconds, "notes": list(made.notes)}


def write_predictions(path: Path, rows: np.ndarray, test: Table, prediction: Prediction) -> None:
    """Write row, id, status and reason, measured values ``y:``, predicted columns ``p:`` and their ``spread:``."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns: dict[str, Any] = {"row": pa.array(rows, pa.int64())}
    texts = {"id": test.ids, "status": prediction.status, "reason": prediction.reason}
    columns |= {name: pa.array(values, pa.string()) for name, values in texts.items()}
    assert test.y is not None
    columns |= {f"y:{t.name}": test.y[:, j] for j, t in enumerate(test.row_targets)}
    columns |= {f"p:{name}": prediction.value[:, j] for j, name in enumerate(prediction.columns)}
    if prediction.spread is not None:
        columns |= {f"spread:{name}": prediction.spread[:, j] for j, name in enumerate(prediction.columns)}
    with path.open("wb") as file:  # by its name, pyarrow opens none that is not UTF-8
        pq.write_table(pa.table(columns), file)


def _check(prediction: Prediction, test: Table, job: Job) -> None:
    """Refuse a prediction that is not one row for each test row and target, in order."""
    wanted = [column for target in test.row_targets for column in target.columns]
    if len(prediction) != len(test) or list(prediction.columns) != wanted or (prediction.ids != test.ids).any():
        raise ShapeError(
            f"{job.method.name} predicted {len(prediction)} rows of {list(prediction.columns)[:5]}",
            hint=f"asked for {len(test)} rows of {wanted[:5]}, in order",
        )


def _failure(error: BaseException) -> dict[str, str]:
    """Status and reason of a job that failed; a full disk is no failure of its method."""
    words = f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]
    known = error.in_one_line if isinstance(error, MolgraphError) else ""
    if disk_full(error):
        return {"status": "disk", "reason": known or words}
    if known:
        return {"status": "refused", "reason": known}
    if isinstance(error, MemoryError):
        return {"status": "memory", "reason": f"out of memory: {error}".removesuffix(": ")}
    with contextlib.suppress(OSError, ValueError):
        traceback.print_exc()
    return {"status": "crashed", "reason": words}
