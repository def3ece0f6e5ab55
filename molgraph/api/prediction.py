"""Load a model file; predict, score and verify with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.contracts import Method
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.stream import OnError, Streamed, hash_of, predict_stream

__all__ = ["evaluate", "load", "predict_file", "verify"]


def load(
    path: str | os.PathLike[str],
    *,
    device: str | None = None,
    threads: int | None = None,
    precision: str | None = None,
) -> Model:
    """Read a model file (``.mgm``); nothing in it is run.

    Args:
        path: the file.
        device: where it predicts: ``cpu``, ``cuda`` or ``auto``; None for the CPU, wherever it was trained.
        threads: CPU threads; None for all.
        precision: ``float32`` or ``bfloat16``; None for the training's.

    Raises:
        ModelFileError: corrupt, foreign or newer. StorageError: no such file. UsageError: no such device.

    Example:
        >>> import molgraph
        >>> molgraph.load("model.mgm", device="auto").predict(["CCO"]).to_frame()  # doctest: +SKIP
    """
    model = load_model(Path(path))
    _set_running(model.method, {"device": device, "threads": threads, "precision": precision})
    return model


def predict_file(
    model: Model | str | os.PathLike[str],
    data: Any,
    out: str | os.PathLike[str],
    *,
    on_error: OnError = "keep",
    keep_columns: bool = False,
    running: Mapping[str, Any] | None = None,
    **columns: Any,
) -> Streamed:
    """Predict a file of any size into another, row for row; a run that was killed goes on where it stopped.

    Args:
        model: a model, or the path of a model file (only then can a killed run go on).
        data: csv, csv.gz, tsv, parquet, sdf or smi.
        out: csv, csv.gz, tsv, tsv.gz, parquet, sdf or sdf.gz, by its ending.
        on_error: rows that cannot be predicted are kept with a reason, dropped, or an error.
        keep_columns: write the input's own columns, as they stand there, before the predictions.
        running: ``device`` (the CPU if not given), ``threads`` (all) or ``precision`` (the training's).
        columns: ``smiles`` and ``id``, the input's columns; ``decimal``, ``","`` where descriptors have decimal
            commas, as in the training if not given.
    """
    loaded = model if isinstance(model, Model) else load(model)
    hashed = "" if isinstance(model, Model) else f"{hash_of(model)} {sorted((running or {}).items())}"
    _set_running(loaded.method, running or {})
    columns = loaded.how_read(columns)
    return predict_stream(loaded, data, out, model_hash=hashed, on_error=on_error, keep_columns=keep_columns, **columns)


def evaluate(
    model: Model | str | os.PathLike[str], data: Any, *, report: str | Path | None = None, **columns: Any
) -> pd.DataFrame:
    """Score a model on molecules whose values are known: a row for each target and metric.

    Args:
        model: a model, or the path of its file.
        data: a path, frame or table that has the model's target columns.
        report: an HTML page to write: scores with their 95% intervals, plots, worst errors.
        columns: ``smiles``, ``id``, ``weight``: which columns are which.
    """
    return (model if isinstance(model, Model) else load(model)).evaluate(data, report=report, **columns)


def _set_running(method: Method, running: Mapping[str, Any]) -> None:
    """Set where and how a fitted method runs; what is None or unknown to it stays as it is."""
    given = {name: value for name, value in running.items() if value is not None}
    for part in method.with_members:
        part.set_params(**{name: value for name, value in given.items() if name in part.param_names()})
        if isinstance(part, GraphMethod):
            part.check()  # now, not at the first prediction
