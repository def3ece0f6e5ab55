"""Train a model on a table of molecules, beside a baseline and on a split."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from molgraph.base.options import takes
from molgraph.base.run_config import RunConfig
from molgraph.data.splits import Split
from molgraph.data.table import Table
from molgraph.evaluate import metrics
from molgraph.evaluate.payoff import Payoff, payoffs
from molgraph.evaluate.sides import Gap, gaps
from molgraph.run.baselines import (
    BASELINE,
    SCRATCH,
    TRIVIAL,
    MethodRun,
    baselines_for,
    controls_for,
    run_methods,
)
from molgraph.run.cross_validation import cross_validate
from molgraph.run.model import confidence_of, extended, model_of
from molgraph.run.prepare import TRAIN_KEYWORDS, PreparedRun, asked_config, prepare
from molgraph.run.refit import check_final, refit
from molgraph.run.result import TrainingResult


@takes(TRAIN_KEYWORDS)
def train(
    data: Any = None,
    *,
    test: Any = None,
    unlabelled: Any = None,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    **options: Any,
) -> TrainingResult:
    """Learn from a table of molecules, and say how good that is beside a forest and beside the mean.

    Beside a model of pairs or of complexes the same model is trained on the ligand alone and on the protein alone, and
    the result says whether both were used.

    The table is split; the model learns from the train part and stops early by the valid part; the test part is
    used once, at the end, for the scores. Every option is a key of the recipe, which the model file keeps.
    The defaults are those of a call without a recipe; an option that is left out, or None, leaves a recipe's own value.

    Args:
        data: a path (csv, csv.gz, tsv, parquet, xlsx, sdf, smi, xyz, npz), a frame, a table, or ``dataset:esol``
            (targets and split as its card says, where not given).
        test: a path, frame or table to test on, with the same columns; all of ``data`` is then train and valid. Rows
            whose molecule is in ``data`` too are counted and named.
        unlabelled: a path, frame, list or table of rows without labels, for an objective that learns from them too.
        params: the model's own parameters, such as ``{"depth": 4}``. The usual model, ``dmpnn``, reads RDKit's
            descriptors beside the graph in tables of up to 10,000 rows unless ``{"descriptors": "none"}`` is given.
        **options
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill. Remove it once the
            model is saved.

    Returns:
        The trained model with its scores, baseline, split and report.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> result = molgraph.train("builtin:chembl2321810", model="knn")
        >>> bool(result.scores.loc["knn", "rmse"] < result.scores.loc["mean", "rmse"])
        True
        >>> result.predict(["CCO", "not a molecule"]).status.tolist()
        ['ok', 'unreadable']
    """
    started = time.perf_counter()
    config = asked_config(data, test, unlabelled, params, recipe, options)
    return learn(prepare(config, data, test=test, unlabelled=unlabelled), workdir, started)


def learn(prepared: PreparedRun, workdir: str | Path | None, started: float) -> TrainingResult:
    """Fit the method of a run and its baselines, score them on the test part, and make their model files' content."""
    config, method, table, divided, parts = (
        prepared.config,
        prepared.method,
        prepared.table,
        prepared.split,
        prepared.parts,
    )
    folder = run_folder(workdir, config, divided)
    if config.split.final:
        check_final(prepared)
    folds = None if config.split.cv is None else cross_validate(prepared, folder)
    runs = run_methods(config, method, list(parts), folder, list(prepared.own))
    scores = {run.name: metrics.score(parts[2], run.prediction) if len(parts[2]) else [] for run in runs}
    frame = metrics.scores_frame(scores)
    alone = {run.name: run.prediction for run in runs}
    sides = controls_for(config, method, parts[0])
    how: dict[str, Any] = {"mean": alone.get(TRIVIAL), "seed": config.training.seed}
    found: tuple[Gap | Payoff, ...] = gaps(parts[2], sides, runs[0].prediction, alone, **how) if len(parts[2]) else ()
    found += paid(config, runs, parts[2])
    told = [each.sentence for each in found] + ([] if folds is None else folds.sentences(config.model.name))
    judged, own = (config.model.name, BASELINE), prepared.own
    known = {run.name: confidence_of(run, *own[:2], private=config.data.private) for run in runs if run.name in judged}
    row = (table, config, divided, frame, prepared.hashes, prepared.before)
    models = {run.name: model_of(run, *row, told * (run is runs[0]), known.get(run.name)) for run in runs}
    runs = [extended(run, known.get(run.name), parts[2]) for run in runs]
    result = TrainingResult(
        model=models[config.model.name],
        baseline=models[BASELINE] if BASELINE in baselines_for(config, method, table) else None,
        floor=models[TRIVIAL],
        runs=tuple(runs),
        score_rows=frame,
        gaps=tuple(found),
        split=divided,
        test=replace(parts[2], entities=table.take(divided.test).entities),
        recipe=config,
        table=table,
        seconds=time.perf_counter() - started,
        cv=folds,
    )
    if config.split.final:
        result = replace(refit(result, prepared, folder), seconds=time.perf_counter() - started)
    return result


def paid(config: RunConfig, runs: Sequence[MethodRun], test: Table) -> tuple[Payoff, ...]:
    """Whether a start from a file paid, beside the same model from scratch and a forest."""
    others = {run.name: run.prediction for run in runs[1:] if run.name != TRIVIAL}
    others = {f"training{SCRATCH}" if name.endswith(SCRATCH) else name: each for name, each in others.items()}
    if config.model.init is None or not len(test):
        return ()
    return payoffs(test, runs[0].prediction, others, seed=config.training.seed)


def run_folder(workdir: str | Path | None, config: RunConfig, divided: Split) -> Path | None:
    """A folder in ``workdir`` for this recipe on these rows, so that another run's checkpoint is never met."""
    if workdir is None:
        return None
    folder = Path(workdir) / hashlib.sha256((config.to_json() + divided.hash).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder
