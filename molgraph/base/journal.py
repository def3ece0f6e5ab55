"""Keep the finished steps of a long run in a file of JSON lines, from which the same run goes on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.errors import ConflictError
from molgraph.base.paths import storage_error


class Journal:
    """A file whose first line names the run and whose other lines are its steps, each written as it ends.

    A step is on the disk before ``append`` returns; a line that a kill cut short is left out and written over.

    Args:
        path: the file; None keeps nothing.
        run: what tells this run from others, plain values.

    Raises:
        ConflictError: the file holds steps of another run.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "journal"
        >>> Journal(path, {"seed": 1}).append({"score": 0.5})
        >>> Journal(path, {"seed": 1}).steps
        [{'score': 0.5}]
    """

    def __init__(self, path: Path | None, run: Mapping[str, Any]) -> None:
        self.path, self.steps, self._end = path, list[dict[str, Any]](), 0
        self._first = json.dumps(run, sort_keys=True, default=str)
        if path is None or not path.exists():
            return
        try:
            content = path.read_bytes()
        except OSError as error:
            raise storage_error(f"cannot read {path}", error) from error
        lines = content.splitlines(keepends=True)
        whole = [line for line in lines if line.endswith(b"\n")]
        if whole and whole[0].decode("utf-8", "replace").rstrip("\n") != self._first:
            hint = f"remove it to begin anew, or write to another file (--out): rm {path}"
            raise ConflictError(f"{path} holds the steps of another run: other data or other settings", hint=hint)
        self._end = len(whole[0]) if whole else 0
        for line in whole[1:]:
            try:
                step = json.loads(line)
            except ValueError:  # what a machine that lost its power left
                break
            self.steps.append(step)
            self._end += len(line)

    def append(self, step: Mapping[str, Any]) -> None:
        """Write a step and keep it."""
        line = json.dumps(step, default=str)
        self.steps.append(json.loads(line))
        if self.path is None:
            return
        text = "".join(f"{entry}\n" for entry in ([] if self._end else [self._first]) + [line]).encode()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with open(self.path, "r+b" if self.path.exists() else "x+b") as file:
                file.truncate(self._end)
                file.seek(self._end)
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise storage_error(f"cannot write {self.path}", error) from error
        self._end += len(text)
