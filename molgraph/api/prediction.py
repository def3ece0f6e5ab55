"""Load a model file; predict, embed, give forces, score and verify with it."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.cluster import Cluster, check_engine
from molgraph.base.contracts import Prediction, Trainable
from molgraph.base.errors import ConflictError, MissingOptionError, UnsupportedError
from molgraph.data.standardise import standardise
from molgraph.embed.encoder import encoder_model
from molgraph.embed.heads import CodeBy, aligned, coded, save_code
from molgraph.generate.network_generator import NetworkGenerator
from molgraph.train.forces import check_energy, table_forces
from molgraph.train.inference import FittedNetworks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.parents import with_parents
from molgraph.train.stream import OnError, Streamed, hash_of, predict_stream

__all__ = ["embed", "evaluate", "forces", "load", "predict_file", "verify"]


def load(
    path: str | os.PathLike[str],
    *,
    device: str | None = None,
    threads: int | None = None,
    precision: str | None = None,
) -> Model:
    """Read a model file (``.mgm``); nothing in it is run.

    Args:
        path: the file, or the name of a model that ships with molgraph, such as ``jtvae-zinc``.
        device: where it predicts: ``cpu``, ``cuda`` or ``auto``; None for the CPU, wherever it was trained.
        threads: CPU threads; None for all.
        precision: ``float32`` or ``bfloat16``; None for the training's.

    Raises:
        ModelFileError: corrupt, foreign or newer. MissingFileError: no such file. UsageError: no such device.

    Example:
        >>> import molgraph
        >>> molgraph.load("model.mgm", device="auto").predict(["CCO"]).to_frame()  # doctest: +SKIP
    """
    model = load_model(path)
    set_running(model.method, {"device": device, "threads": threads, "precision": precision})
    return model


def predict_file(
    model: Model | str | os.PathLike[str],
    data: Any,
    out: str | os.PathLike[str],
    *,
    on_error: OnError = "keep",
    keep_columns: bool = False,
    coverage: float | None = None,
    plain: bool = False,
    parent: Any = None,
    parent_share: float | None = None,
    running: Mapping[str, Any] | None = None,
    engine: str = "local",
    **columns: Any,
) -> Streamed:
    """Predict a file of any size into another, row for row; a run that was killed goes on where it stopped.

    Args:
        model: a model, or the path of a model file (only then can a killed run go on).
        data: csv, csv.gz, tsv, parquet, xlsx (``book.xlsx::Sheet``; else the first with SMILES), sdf or smi.
        out: csv, csv.gz, tsv, tsv.gz, parquet, xlsx, sdf or sdf.gz, by its ending.
        on_error: rows that cannot be predicted are kept with a reason, dropped, or an error.
        keep_columns: write the input's own columns, as they stand there, before the predictions.
        coverage: share of the measured values that intervals should hold; None for the model's own, 0.9.
        plain: values alone, without intervals, grade and nearest training molecule, which take a part of the time.
        parent: measured molecules with the model's targets, by whose errors the numbers of their analogues are
            corrected (``molgraph.train.parents``); None for none.
        parent_share: the weight of one of them, 0 to 1; None to estimate it.
        running: ``device`` (the CPU if not given), ``threads`` (all) or ``precision`` (the training's).
        engine: ``local``, or ``ray`` for the processes of a Ray cluster, on one thread each if none are given; with the
            same ``threads`` the bytes are the same, and either goes on where the other was killed.
        columns: ``smiles`` and ``id``, the input's columns; ``decimal``, ``","`` where descriptors have decimal
            commas, as in the training if not given.
    """
    loaded = model if isinstance(model, Model) else load(model)
    loaded.check_predicts()
    hashed = "" if isinstance(model, Model) else hash_of(model)
    if plain or coverage is not None:
        if plain and coverage is not None:
            raise ConflictError("values alone have no coverage", hint="leave out --coverage, or --plain")
        loaded = loaded.with_coverage(coverage)
        hashed = hashed and f"{hashed} coverage {coverage}"
    if parent is not None:
        loaded = with_parents(loaded, parent, parent_share)
        file = isinstance(parent, str | os.PathLike) and os.path.isfile(parent)
        hashed = f"{hashed} parent {hash_of(parent)} {parent_share}" if hashed and file else ""
    elif parent_share is not None:
        raise MissingOptionError("the share is of measured analogues", hint="add --parent measured.csv")
    how: dict[str, Any] = {"on_error": on_error, "keep_columns": keep_columns, "engine": engine}
    return _stream(loaded, data, out, hashed, running or {}, columns, **how)


def embed(
    model: Model | str | os.PathLike[str],
    data: Any,
    out: str | os.PathLike[str] | None = None,
    *,
    on_error: OnError = "keep",
    keep_columns: bool = False,
    running: Mapping[str, Any] | None = None,
    align: Any = None,
    code: int | str | os.PathLike[str] | None = None,
    code_by: CodeBy = "autoencoder",
    seed: int = 0,
    engine: str = "local",
    **columns: Any,
) -> Prediction | Streamed:
    """Give the state of each row that a graph model's encoder makes of it, a vector, row for row and in order.

    Args:
        model: a pretrained encoder or any graph model, or the path of its file.
        data: molecules in any form that ``Model.predict`` takes.
        out: a file to write, as ``predict_file`` does; or ``.npy``: float32 [rows, width], NaN where there is none.
            None returns the vectors.
        on_error, keep_columns, running, columns: as for ``predict_file``.
        align: older vectors (a file of ``molgraph.embed``), into whose frame these are turned by the molecules that
            both have, so that an index stays valid; see ``molgraph.embed.align``.
        code: a width: vectors are compressed to codes by an autoencoder, which is written beside ``out`` as
            ``OUT.code.npz``; or such a file, whose code is used again.
        code_by: ``autoencoder``, or ``projection`` for a random one; ``binary``, or random ``hyperplanes``, for codes
            of so many bits, which a file ``.bits`` keeps as such.
        seed: of the code.
        engine: as for ``predict_file``; ``ray`` needs ``out``.

    Returns:
        The vectors as a ``Prediction`` (``value``, ``status``, ``reason``), or what was written.

    Raises:
        UsageError: the model has no encoder, or several.

    Example:
        >>> import molgraph
        >>> options = {"params": {"d_hidden": 8, "descriptors": "none"}, "epochs": 1, "baseline": False}
        >>> model = molgraph.train("builtin:chembl2321810", **options).model
        >>> found = molgraph.embed(model, ["CCO", "not a molecule"])
        >>> found.value.shape, found.status.tolist()
        ((2, 8), ['ok', 'unreadable'])
    """
    encoder = encoder_model(model if isinstance(model, Model) else load(model))
    set_running(encoder.method, running or {})
    changed = ""
    if align is not None and code is not None:
        raise ConflictError("a code has no frame of its own to align", hint="give align or code")
    if align is not None:
        encoder = aligned(encoder, data, align, columns)
        changed = f"align {hash_of(align) if isinstance(align, str | os.PathLike) else os.urandom(8).hex()}"
    elif code is not None:
        encoder, new_code = coded(encoder, data, code, columns, code_by, seed)
        changed = f"code {code} {code_by} {seed}"
        if isinstance(code, int) and out is not None and str(out) != "-":
            save_code(new_code, f"{os.fspath(out)}.code.npz")
    if out is not None:
        hashed = "" if isinstance(model, Model) else f"embed {hash_of(model)} {changed}".strip()
        how: dict[str, Any] = {"on_error": on_error, "keep_columns": keep_columns, "engine": engine}
        return _stream(encoder, data, out, hashed, running or {}, columns, **how)
    check_engine(engine)
    if engine != "local":
        raise MissingOptionError("vectors of a cluster go to a file", hint="name it: out='vectors.parquet'")
    return encoder.predict(data, **columns)


def forces(
    model: Model | str | os.PathLike[str],
    data: Any,
    *,
    running: Mapping[str, Any] | None = None,
    **columns: Any,
) -> list[np.ndarray | None]:
    """Give the forces on the atoms of each row: minus the exact gradient of the predicted energy.

    Args:
        model: a graph model of one energy that reads atoms in space, such as schnet, or the path of its file.
        data: geometries in any form that ``Model.predict`` takes.
        running: ``device``, ``threads``, as for ``predict_file``.
        columns: which columns are which, as for ``Model.predict``.

    Returns:
        For each row float64 [n_atoms, 3], in the energy's unit per angstrom; None where there is no prediction, for
        which ``Model.predict`` has the reason.

    Raises:
        UnsupportedError: the model reads no geometry, or predicts no one number of it.

    Example:
        >>> import molgraph
        >>> molgraph.forces("schnet.mgm", "frames.sdf")[0]  # doctest: +SKIP
    """
    loaded = model if isinstance(model, Model) else load(model)
    fitted = energy_network(loaded)
    set_running(loaded.method, running or {})
    table = standardise(loaded.read(data, **columns), loaded.standardiser)
    where = {name: value for name, value in loaded.method.get_params().items() if name in ("device", "threads")}
    return table_forces(fitted, table, **where)


def energy_network(model: Model) -> FittedNetworks:
    """The network of a graph model whose one output is an energy; raise ``UnsupportedError`` for others."""
    if not isinstance(model.method, GraphMethod):
        words = f"a model of the kind {model.kind} has no energy with a gradient"
        raise UnsupportedError(words, hint="give a graph model of atoms in space, such as schnet")
    fitted = model.method.ready()
    check_energy(fitted)
    return fitted


def _stream(
    model: Model,
    data: Any,
    out: Any,
    hashed: str,
    running: Mapping[str, Any],
    columns: Mapping[str, Any],
    engine: str,
    **how: Any,
) -> Streamed:
    """Predict a file; a killed run goes on where ``hashed`` tells the model from others."""
    check_engine(engine)
    if engine == "ray" and running.get("threads") is None:
        running = {**running, "threads": 1}
    set_running(model.method, running)
    hashed = hashed and f"{hashed} {sorted(running.items())}"
    how |= {"model_hash": hashed, **model.how_read(dict(columns))}
    if engine == "local":
        return predict_stream(model, data, out, **how)
    with Cluster() as cluster:
        return predict_stream(model, data, out, cluster=cluster, **how)


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


def set_running(method: Trainable, running: Mapping[str, Any]) -> None:
    """Set where and how a fitted method runs; what is None or unknown to it stays as it is."""
    settings = {name: value for name, value in running.items() if value is not None}
    for part in method.with_members:
        part.set_params(**{name: value for name, value in settings.items() if name in part.param_names()})
        if isinstance(part, GraphMethod | NetworkGenerator):
            part.check()  # now, not at the first prediction
