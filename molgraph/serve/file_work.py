"""Predict an uploaded file in a process of its own, chunk by chunk, as ``molgraph predict`` does."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

CHUNK = 512  # rows, so that progress is seen and little is lost
_loaded: dict[str, Any] = {}


def predict_upload(given: dict[str, Any]) -> dict[str, Any]:
    """Predict a file; a run that was killed goes on where it stopped, to the same bytes.

    Args:
        given: ``model`` (a path), ``source``, ``out``, ``keep_columns``, ``columns`` (as of ``predict_file``),
            ``running`` (device, threads, precision).

    Returns:
        ``rows``, ``failed`` (without a value), ``reasons`` (the commonest, with their counts).

    Raises:
        MolgraphError: the file cannot be read, or the result not be written.
    """
    from molgraph.api.prediction import load  # here, for the server itself loads no torch
    from molgraph.train.stream import hash_of, predict_stream

    if hasattr(os, "nice") and not _loaded:
        with suppress(OSError):
            os.nice(5)  # small requests come first
    path = given["model"]
    model = _loaded.get(path) or _loaded.setdefault(path, load(path, **{"threads": 1, **given["running"]}))
    done = predict_stream(
        model,
        given["source"],
        given["out"],
        model_hash=hash_of(path),
        keep_columns=given["keep_columns"],
        chunk_rows=CHUNK,
        **model.how_read(given["columns"]),
    )
    return {"rows": done.rows, "failed": done.failed, "reasons": done.reasons}


def rows_done(out: Path) -> int:
    """Rows of an unfinished output that are predicted already, from the chunks beside it."""
    with suppress(OSError):
        return CHUNK * sum(name.endswith(".chunk") and name[0] != "." for name in os.listdir(f"{out}.parts"))
    return 0
