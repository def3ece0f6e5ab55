"""Compute one cell: fit, predict the test rows, and write both with their provenance.

Runs inside a cell's own process: one that ``server.py`` forked, or (``python -m`` this module) a fresh one.
"""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import sys
import time
import traceback
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import DataError, MolgraphError
from molgraph.base.process import die_with
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.environment import machine, versions
from molgraph.evaluate.benchmark.fit import fit, strip_labels
from molgraph.evaluate.benchmark.job import Job, load_factory, make
from molgraph.evaluate.benchmark.search import search
from molgraph.evaluate.benchmark.table_parquet import read_handed

PREDICTIONS, FOUND, LOG, BEGUN = "predictions.parquet", "found.json", "stderr.txt", "begun"
DISK_FULL = 74  # exit code of a process that found no room on the disk: no result of its method


def run_job(job: Job) -> dict[str, Any]:
    """Learn from the training rows, predict the test rows, write the predictions.

    The test rows' labels are taken off before the method is made: neither it nor its search can see them.

    Returns:
        ``status`` and ``reason``, and where it is ok ``seconds``, ``notes``, ``chosen`` and ``search``.
    """
    table, split = read_handed(Path(job.table)), Split.load(job.split)
    test = table.take(split.test)
    train, valid = table.take(split.train), table.take(split.valid)
    del table
    factory = load_factory(job.factory)
    run = {"seed": job.seed, "threads": job.threads, "store": job.store}
    seconds, found = {"search": 0.0}, {}
    params = dict(job.params)
    if job.search is not None:
        started = time.perf_counter()
        found = search(job, train)
        params |= found["chosen"]
        seconds["search"] = time.perf_counter() - started
    method = make(factory, job.method, params, **run)
    started = time.perf_counter()
    fit(method, train, valid, job.seed, job.inputs)
    seconds["fit"] = time.perf_counter() - started
    started = time.perf_counter()
    prediction = method.predict(strip_labels(test, job.inputs))
    seconds["predict"] = time.perf_counter() - started
    _check(prediction, test, job)
    write_predictions(Path(job.folder) / PREDICTIONS, split.test, test, prediction)
    notes = [*method.notes, *found.pop("notes", ())]
    unlearned = dict(prediction.unlearned)
    return {"status": "ok", "reason": "", "seconds": seconds, "notes": notes, "unlearned": unlearned, **found}


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
        raise DataError(
            f"{job.method} predicted {len(prediction)} rows of {list(prediction.columns)[:5]}",
            hint=f"asked for {len(test)} rows of {wanted[:5]}, in order",
        )


def carry_out(job: Job) -> int:
    """Run a job and write what became of it, failures too; never raises what a method raised.

    Returns:
        The process's exit code: 0, or ``DISK_FULL`` where there was no room on the disk, and so nothing is written.
    """
    started = time.process_time()
    try:
        found = _found(job)
        found |= {"versions": versions(), "machine": machine()}
        found["cpu_seconds"] = time.process_time() - started
        found["peak_mb"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        path = Path(job.folder) / FOUND
        path.with_suffix(".part").write_text(json.dumps(found), encoding="utf-8")
        path.with_suffix(".part").rename(path)
    except (Exception, SystemExit) as error:
        if not disk_full(error):
            raise
        with contextlib.suppress(OSError):
            words = error.message if isinstance(error, MolgraphError) else _in_words(error)
            print(words, file=sys.stderr, flush=True)
        return DISK_FULL
    return 0


def _found(job: Job) -> dict[str, Any]:
    """What a job gave, or how it failed; a full disk is no failure of its own, and raises."""
    try:
        for module in job.imports:
            import_module(module)
        set_threads(job.threads)
        return run_job(job)
    except (Exception, SystemExit) as error:
        if disk_full(error):
            raise
        if isinstance(error, MolgraphError):
            return {"status": "refused", "reason": error.message}
        if isinstance(error, MemoryError):
            return {"status": "memory", "reason": f"out of memory: {error}".removesuffix(": ")}
        traceback.print_exc()
        return {"status": "crashed", "reason": _in_words(error)}


def disk_full(error: BaseException | None) -> bool:
    """Whether an error, or one that led to it, says that a disk or quota is used up; libraries say it in their words.

    Example:
        >>> disk_full(OSError(errno.ENOSPC, "")), disk_full(RuntimeError("write: No space left on device"))
        (True, True)
        >>> disk_full(OSError(errno.EACCES, "permission denied"))
        False
    """
    while error is not None:
        if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT):
            return True
        if "no space left on device" in str(error).lower():
            return True
        error = error.__cause__ or error.__context__
    return False


def _in_words(error: BaseException) -> str:
    """An error's class and message in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"[:500]


def set_threads(n: int) -> None:
    """Threads of this process: for libraries that are loaded already, and those that are to come."""
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ[name] = str(n)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.set_num_threads(n)


def main() -> None:
    """A fresh process for one job: its path and the parent's process number are the arguments."""
    path, parent = sys.argv[1:3]
    die_with(int(parent))
    with contextlib.suppress(OSError):
        os.setsid()
    job = Job.from_json(Path(path).read_text(encoding="utf-8"))
    try:
        (Path(job.folder) / BEGUN).touch()
        code = carry_out(job)
    except OSError as error:
        if not disk_full(error):
            raise
        code = DISK_FULL
    if code:
        os._exit(code)  # what Python would still write out on its way gives another code where the disk is full


if __name__ == "__main__":
    main()
