"""The verbs for Python: a table of molecules in; a trained model, its scores and its predictions out."""

from __future__ import annotations

import hashlib
import logging
import os
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from molgraph.base.contracts import Method
from molgraph.base.paths import store_folder
from molgraph.base.recipe import Recipe
from molgraph.contest import BASELINE, beside, contestants, is_graph, method_of, model_of
from molgraph.data.graph_cache import store_for
from molgraph.data.labels import check_targets
from molgraph.data.read import read_table
from molgraph.data.splits import Split
from molgraph.data.standardised import standardise as standardise_table
from molgraph.data.unlearned import notes_of
from molgraph.evaluate import metrics
from molgraph.held_out import append_test, divide_before
from molgraph.plan import KEYS, divide, read_for_training, read_test, recipe_of
from molgraph.results import FLOOR, TrainingResult
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model, verify
from molgraph.train.preparation import workers_for
from molgraph.train.stream import OnError, Streamed, hash_of, predict_stream
from molgraph.train.trained_on import molecule_hashes

__all__ = ["evaluate", "load", "predict_file", "read_table", "recipe_of", "train", "verify"]

SHOWN = 3  # reasons why rows are in no part
logger = logging.getLogger("molgraph")


def train(
    data: Any = None,
    *,
    test: Any = None,
    smiles: str | None = None,
    targets: Sequence[str] | None = None,
    model: str | None = None,
    params: Mapping[str, Any] | None = None,
    split: str | None = None,
    fractions: tuple[float, float, float] | None = None,
    seed: int | None = None,
    epochs: int | None = None,
    batch_size: int | None = None,
    learning_rate: float | None = None,
    patience: int | None = None,
    ensemble: int | None = None,
    baseline: bool | None = None,
    standardise: str | None = None,
    id: str | None = None,
    weight: str | None = None,
    features: Sequence[str] | None = None,
    split_column: str | None = None,
    on_error: OnError | None = None,
    decimal: str | None = None,
    qualifiers: str | None = None,
    unit: str | None = None,
    log: bool | None = None,
    duplicates: str | None = None,
    tolerance: float | None = None,
    device: str | None = None,
    threads: int | None = None,
    precision: str | None = None,
    store: str | None = None,
    recipe: Recipe | str | Path | None = None,
    workdir: str | Path | None = None,
) -> TrainingResult:
    """Learn from a table of molecules, and say how good that is beside a forest and beside the mean.

    The table is split; the model learns from the train part and stops early by the valid part; the test part is
    used once, at the end, for the scores. Every keyword is a field of the recipe, which the model file keeps;
    None leaves the recipe's own value (see ``molgraph.base.recipe.Recipe`` for the defaults).

    Args:
        data: a path (csv, csv.gz, tsv, parquet, sdf, smi), a frame, a table, or ``dataset:esol``
            (targets and split as its card says, where not given).
        test: a path, frame or table to test on, with the same columns; all of ``data`` is then train and valid. Rows
            whose molecule is in ``data`` too are counted and named.
        smiles: the column of SMILES; found by its name where it is not given.
        targets: the columns to learn; an empty cell is a missing value.
        model: a registered model, such as ``dmpnn``, ``mpnn`` or ``random_forest``.
        params: that model's own parameters, such as ``{"depth": 4}``.
        split: a split recipe, such as ``scaffold/balanced`` or ``random``; other people's (``scaffold/deepchem``)
            are asked of the molecules as they are written, before ``standardise``.
        fractions: shares of train, valid and test.
        seed: of the split and of the training; the same seed gives the same result on the same machine.
        epochs: passes over the train part, at most.
        batch_size: molecules in a step.
        learning_rate: the highest step size of gradient descent; boosted trees have their own, in ``params``.
        patience: epochs without a better validation loss before training stops.
        ensemble: number of models that are trained and averaged; their spread is kept. It ranks rows by doubt at best:
            it is not calibrated, and far smaller than the error.
        baseline: whether a random forest is trained beside a graph model, for comparison.
        standardise: ``none``, ``desalt`` or ``standard``; applied again to whatever is predicted.
        id: the column of ids, kept as text.
        weight: a column of row weights.
        features: columns of extra descriptors, which prediction will need too.
        split_column: a column that says ``train``, ``valid`` or ``test``; it replaces ``split``.
        on_error: rows that cannot be read are kept with a reason, dropped, or an error.
        decimal: ``,`` where values have decimal commas and it cannot be told from the file.
        qualifiers: labels such as ``>8.0`` are refused, left out (``drop``), or read as the number (``strip``).
        unit: what values with units (``251 nM``, or a column ``units``) are brought to, such as ``nM``.
        log: whether log10 of each regression target is learned; predictions are named ``log10_...``.
        duplicates: rows of one molecule are all learned from (``keep``), or become one row with the ``mean`` or
            ``median`` of their labels; ``drop`` takes labels out that differ.
        tolerance: how far labels of one molecule may lie apart to be merged; any distance where not given.
        device: ``cpu``, ``cuda`` or ``auto``.
        threads: CPU threads.
        precision: ``float32`` or ``bfloat16``.
        store: a folder that keeps the molecules' graphs for later runs, or ``auto`` for one in molgraph's cache;
            without it they are made for each fit. Worth it for large tables, many seeds and ensembles.
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill. Remove it once the
            model is saved.

    Returns:
        The trained model with its scores, baseline, split and report.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> result = molgraph.train("builtin:chembl2321810", model="random_forest", params={"n_estimators": 20})
        >>> bool(result.scores.loc["random_forest", "rmse"] < result.scores.loc["mean", "rmse"])
        True
        >>> result.predict(["CCO", "not a molecule"]).status.tolist()
        ['ok', 'unreadable']
    """
    given = {name: value for name, value in locals().items() if name in KEYS and value is not None}
    if isinstance(test, os.PathLike):
        given["test"] = test = os.fspath(test)
    elif not isinstance(test, str):  # a frame, which no recipe can name
        given.pop("test", None)
    if isinstance(data, str) and data.startswith("dataset:"):  # its card has a say in the plan
        given["path"] = data
    plan = recipe_of(recipe, given)
    started = time.perf_counter()
    method = method_of(plan)  # what it refuses is refused before an hour of reading
    table = read_for_training(data if data is not None else plan.data.path, plan)
    n, tested = len(table), plan.data.test if test is None else test
    if tested is not None:
        table = append_test(table, read_test(tested, plan, table))
    clean = standardise_table(table, plan.data.standardise)
    divided = divide(clean, plan, table) if tested is None else divide_before(n, clean, table, plan, divide)
    sizes = ", ".join(f"{n:,} {part.replace('_', ' ')}" for part, n in divided.sizes.items() if n)
    logger.info("split %s: %s", divided.recipe, sizes)
    for reason, rows_left in Counter(out.reason for out in divided.left_out).most_common(SHOWN):
        logger.info("left out: %s x %s", f"{rows_left:,}", reason)
    if divided.leaks:
        logger.warning("%s, such as: %s", divided.leak_sentence, divided.leaks[0])
    parts = [clean.take(rows) for rows in (divided.train, divided.valid, divided.test)]
    for note in notes_of(check_targets(parts[0]).unlearned):  # now, once, and not after hours by each method
        logger.info(note)
    folder = _folder(workdir, plan, divided)
    if plan.training.store is not None and is_graph(method):  # the whole table's, which serves each of its parts
        threads = plan.training.threads
        store_for(clean, cache=store_folder(plan.training.store), workers=workers_for(clean, threads))
    trained = contestants(plan, method, parts, folder)
    scores = {c.name: metrics.score(parts[2], c.prediction) if len(parts[2]) else [] for c in trained}
    frame = metrics.scores_frame(scores)
    hashes = molecule_hashes(clean)
    models = {c.name: model_of(c, table, plan, divided, frame, hashes) for c in trained}
    return TrainingResult(
        model=models[plan.model.name],
        baseline=models[BASELINE] if BASELINE in beside(plan, method) else None,
        floor=models[FLOOR],
        contestants=tuple(trained),
        score_rows=frame,
        split=divided,
        test=replace(parts[2], entities=table.take(divided.test).entities),
        recipe=plan,
        table=table,
        seconds=time.perf_counter() - started,
    )


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
        columns: ``smiles`` and ``id``, the input's columns.
    """
    loaded = model if isinstance(model, Model) else load(model)
    hashed = "" if isinstance(model, Model) else hash_of_file(model)
    _set_running(loaded.method, running or {})
    hashed = hashed and f"{hashed} {sorted((running or {}).items())}"
    columns = {"features": loaded.feature_names} | columns
    return predict_stream(loaded, data, out, model_hash=hashed, on_error=on_error, keep_columns=keep_columns, **columns)


def hash_of_file(path: str | os.PathLike[str]) -> str:
    """Hash of a model file, or nothing where it cannot be read (loading it says why)."""
    try:
        return hash_of(path)
    except OSError:
        return ""


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
    for part in (method, *getattr(method, "members", ())):
        part.set_params(**{name: value for name, value in given.items() if name in part.param_names()})
        if isinstance(part, GraphMethod):
            part.check()  # now, not at the first prediction


def _folder(workdir: str | Path | None, plan: Recipe, divided: Split) -> Path | None:
    """A folder in ``workdir`` for this recipe on these rows, so that another run's checkpoint is never met."""
    if workdir is None:
        return None
    folder = Path(workdir) / hashlib.sha256((plan.to_json() + divided.hash).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder
