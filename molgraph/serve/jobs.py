"""Keep uploaded files in a folder, have them predicted one after another, and hand out the results."""

from __future__ import annotations

import re
import secrets
import shutil
import threading
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from molgraph.base.errors import MolgraphError
from molgraph.base.workbook import longest_sheet
from molgraph.base.worker import Worker, start_worker
from molgraph.serve.file_work import predict_upload, rows_done
from molgraph.serve.job import ENDINGS, Job
from molgraph.serve.limits import Limits
from molgraph.serve.refusal import RefusedError

LOSSES = 3  # times that its process may end on a file without a row more
_ID = re.compile(r"[\w-]{16}")


class Jobs:
    """The files of a server.

    A process of its own predicts them (``file_work``), started at the first and ended after the last. Where it is
    killed it is started again, and goes on with the chunk at which it stopped. Files that a former server left in
    ``folder`` are gone on with.

    Args:
        folder: where they are; made if it is not there.
        models: name to path.
        running: where and how models run.
        limits: sizes and times.
    """

    def __init__(self, folder: Path, models: Mapping[str, str], running: Mapping[str, Any], limits: Limits) -> None:
        self.folder, self.models, self.running, self.limits = folder, dict(models), dict(running), limits
        self.jobs: dict[str, Job] = {}
        self._change = threading.RLock()
        self._thread: threading.Thread | None = None
        self._worker: Worker | None = None
        self._now: Job | None = None
        self._closed = False

    def start(self) -> Jobs:
        """Take over what is in the folder."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for folder in sorted(self.folder.iterdir()):
            if not _ID.fullmatch(folder.name) or not folder.is_dir() or folder.is_symlink():
                continue
            try:
                job = Job.load(folder)
            except (OSError, ValueError, TypeError):
                continue
            if job.state == "arriving" or job.model not in self.models:
                shutil.rmtree(folder, ignore_errors=True)
                continue
            job.state = "waiting" if job.state == "running" else job.state
            self.jobs[job.id] = job
        self._go()
        return self

    def close(self) -> None:
        """End the process; what it had done is kept in the folder."""
        with self._change:
            self._closed = True
            thread, worker = self._thread, self._worker
        if worker is not None:
            worker.process.kill()
        if thread is not None:
            thread.join(timeout=5)
        self._stop_worker()

    async def add(self, body: AsyncIterator[bytes], model: str, name: str, **how: Any) -> Job:
        """Write an upload to the disk as it arrives, and put it into the queue.

        Raises:
            RefusedError: another kind of file (415), an empty one (422), or too many files are kept (429).
        """
        ending = Path(name).suffix.lower()
        if ending not in ENDINGS:
            words = f"{name!r} is not a file that can be uploaded"
            raise RefusedError(415, "unknown-ending", words, hint=f"its name ends in one of {', '.join(ENDINGS)}")
        job = self._made(model, name, ending, how)
        try:
            with open(job.source, "wb") as file:
                lines, last, mark = 0, b"", b"$$$$" if ending == ".sdf" else b"\n"
                async for piece in body:
                    file.write(piece)
                    lines += (last + piece).count(mark)
                    last = (last + piece)[-(len(mark) - 1) :] if len(mark) > 1 else b""
                if not file.tell():
                    raise RefusedError(422, "empty", "the file is empty", hint="send its bytes as the request's body")
            rows = longest_sheet(job.source) if ending == ".xlsx" else lines
            job.rows = max(rows - (ending in (".csv", ".tsv", ".xlsx")), 1)
            with self._change:
                job.state = "waiting"
                job.save()
            self._go()
        except BaseException:
            self._forget(job)
            raise
        return job

    def find(self, id: str) -> Job:
        """The job of an id; ``RefusedError`` (404) where there is none."""
        self._sweep()
        if (job := self.jobs.get(id)) is None:
            words = f"there is no job {id!r}"
            hint = f"results are kept for {self.limits.hours:g} hours"
            raise RefusedError(404, "no-such-job", words, hint=hint)
        return job

    def rows_done(self, job: Job) -> int:
        """How many of its rows are predicted."""
        return job.rows if job.state == "done" else min(rows_done(job.out), job.rows)

    def remove(self, id: str) -> None:
        """Forget a job, whatever it does, and remove its files."""
        self._forget(self.find(id))

    def _forget(self, job: Job) -> None:
        with self._change:
            self.jobs.pop(job.id, None)
            worker = self._worker if job is self._now else None
        if worker is not None:
            worker.process.kill()  # its thread sees that, and that the job is gone
        shutil.rmtree(job.folder, ignore_errors=True)

    def _made(self, model: str, name: str, ending: str, how: dict[str, Any]) -> Job:
        self._sweep()
        with self._change:
            if len(self.jobs) >= self.limits.jobs:
                words = f"{len(self.jobs)} files are kept already"
                hint = "wait for one, fetch its result, or delete it"
                raise RefusedError(429, "too-many-files", words, hint=hint, retry=30)
            id = secrets.token_urlsafe(12)
            job = Job(id, self.folder / id, model, name, ending, **how)
            job.folder.mkdir()
            job.save()
            self.jobs[id] = job
        return job

    def _sweep(self) -> None:
        """Remove results that are too old, and where there is no more room those that were fetched."""
        with self._change:
            over = sorted((job for job in self.jobs.values() if job.over), key=lambda job: job.ended or 0)
            old = [job for job in over if time.time() - (job.ended or 0) > 3600 * self.limits.hours]
            if len(self.jobs) - len(old) >= self.limits.jobs:
                old += [job for job in over if job.fetched and job not in old][:1]
            for job in old:
                del self.jobs[job.id]
                shutil.rmtree(job.folder, ignore_errors=True)

    def _go(self) -> None:
        """Wake the thread that predicts, or start it."""
        with self._change:
            if self._thread is None and any(job.state == "waiting" for job in self.jobs.values()):
                self._thread = threading.Thread(target=self._run, daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            with self._change:
                waiting = [job for job in self.jobs.values() if job.state == "waiting"]
                if self._closed or not waiting:
                    self._stop_worker()
                    self._thread = None
                    return
                self._now = job = min(waiting, key=lambda job: job.made)
                job.state = "running"
            with suppress(OSError):  # its folder was removed meanwhile
                job.save()
                self._predict(job)
            self._now = None

    def _predict(self, job: Job) -> None:
        """Predict one file, with a new process for each that ends."""
        lost, done = 0, -1
        options = {
            "model": self.models[job.model],
            "source": str(job.source),
            "out": str(job.out),
            "keep_columns": job.keep_columns,
            "columns": job.columns,
            "running": self.running,
        }
        while not self._closed and job.id in self.jobs:
            try:
                worker = self._worker = self._worker or start_worker()
                worker.send(predict_upload, options)
                result = worker.receive()
            except MolgraphError as error:
                job.error = {"code": error.code, "message": error.message, "hint": error.hint}
                break
            except (EOFError, OSError):
                self._stop_worker()
                before, done = done, rows_done(job.out)
                lost = 1 if done > before else lost + 1
                if lost >= LOSSES:
                    words = f"the process that predicts ended {LOSSES} times near row {done:,}"
                    job.error = {"code": "worker-ended", "message": words, "hint": "try the rows after it on their own"}
                    break
                continue
            except Exception as error:
                print(f"molgraph serve: {error}")
                words = "this is a fault in molgraph itself"
                job.error = {"code": "molgraph", "message": words, "hint": "the server's own output has the details"}
                break
            job.rows, job.failed, job.reasons = result["rows"], result["failed"], result["reasons"]
            break
        else:
            return
        job.state, job.ended = "failed" if job.error else "done", time.time()
        job.save()

    def _stop_worker(self) -> None:
        worker, self._worker = self._worker, None
        if worker is not None:
            with suppress(OSError):
                worker.stop()
