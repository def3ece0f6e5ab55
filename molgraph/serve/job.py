"""Define ``Job``: an uploaded file on the disk, what is to be done with it, and how far that is."""

from __future__ import annotations

import json
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, Self

from molgraph.base.paths import write_whole

State = Literal["arriving", "waiting", "running", "done", "failed"]
ENDINGS = (".csv", ".tsv", ".smi", ".txt", ".sdf", ".xlsx")


@dataclass
class Job:
    """One file and its folder, in which ``job.json`` says all of it.

    Args:
        id: a random word, which only its owner knows.
        folder: its own.
        model: the model's name.
        name: the file's, as it was uploaded; for display alone.
        ending: of both files, such as ``.csv``; the result of an ``.smi`` or ``.txt`` file is a ``.csv``.
        keep_columns: whether the result has the file's own columns.
        columns: which of its columns are which.
        state: ``arriving``, ``waiting``, ``running``, ``done`` or ``failed``.
        rows: of the input, counted in its lines while it arrived, exactly once it is done.
        failed: rows without a value, once it is done.
        reasons: the commonest reasons with their counts.
        error: why all of it failed.
        made, ended: when, in seconds since 1970.
        fetched: whether the result was downloaded.
    """

    id: str
    folder: Path
    model: str
    name: str
    ending: str
    keep_columns: bool = False
    columns: dict[str, str] = field(default_factory=dict)
    state: State = "arriving"
    rows: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    error: dict[str, str] | None = None
    made: float = field(default_factory=time.time)
    ended: float | None = None
    fetched: bool = False

    @property
    def source(self) -> Path:
        """The file that was uploaded."""
        return self.folder / f"input{self.ending}"

    @property
    def out(self) -> Path:
        """The result."""
        return self.folder / f"predicted{'.csv' if self.ending in ('.smi', '.txt') else self.ending}"

    @property
    def over(self) -> bool:
        """Whether nothing more happens to it."""
        return self.state in ("done", "failed")

    def save(self) -> None:
        """Write ``job.json``."""
        write_whole(self.folder / "job.json", json.dumps(asdict(self) | {"folder": ""}))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Read ``job.json``; ``ValueError``, ``TypeError`` or ``OSError`` where it is none."""
        fields: dict[str, Any] = json.loads((folder / "job.json").read_text("utf-8"))
        return cls(**fields | {"folder": folder})
