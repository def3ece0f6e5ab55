"""Train a prepared run: fit the method and its baselines, score them on the test part, and make the result."""

from __future__ import annotations

import hashlib
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from molgraph.base.contracts import Method, Prediction
from molgraph.base.run_config import RunConfig
from molgraph.data.limits import without_limits
from molgraph.data.splits import Split
from molgraph.data.table import OK, Table
from molgraph.evaluate import metrics
from molgraph.evaluate.payoff import Payoff, payoffs
from molgraph.evaluate.sides import Gap, gaps
from molgraph.run.baselines import (
    BASELINE,
    SCRATCH,
    TRIVIAL,
    baseline_method,
    baselines_for,
    controls_for,
    scratch_for,
)
from molgraph.run.cross_validation import cross_validate
from molgraph.run.model import confidence_of, extended, model_of
from molgraph.run.prepare import PreparedRun
from molgraph.run.refit import check_final, refit
from molgraph.run.result import MethodRun, TrainingResult
from molgraph.train.one_side import method_alone

Parts: TypeAlias = Sequence[Table]  #: train, valid and test
logger = logging.getLogger("molgraph")


def learn(prepared: PreparedRun, workdir: str | Path | None, started: float) -> TrainingResult:
    """Fit the method of a run and its baselines, score them on the test part, and make their models.

    Args:
        prepared: the run.
        workdir: for checkpoints, as in ``train``.
        started: the ``time.perf_counter()`` of the call.
    """
    config, method, table = prepared.config, prepared.method, prepared.table
    train, valid, test = prepared.method_parts
    folder = run_folder(workdir, config, prepared.split)
    if config.split.final:
        check_final(prepared)
    folds = None if config.split.cv is None else cross_validate(prepared, folder)
    runs = run_methods(config, method, prepared.parts, folder, prepared.method_parts)
    scores = metrics.scores_frame({run.name: metrics.score(test, run.prediction) if len(test) else [] for run in runs})
    comparisons = compare(prepared, runs) if len(test) else ()
    notes = [comparison.sentence for comparison in comparisons]
    notes += [] if folds is None else folds.sentences(config.model.name)
    models, tested = {}, []
    for run in runs:
        judged = run.name in (config.model.name, BASELINE)
        confidence = confidence_of(run, train, valid, private=config.data.private) if judged else None
        models[run.name] = model_of(run, prepared, scores, notes if run is runs[0] else (), confidence)
        tested.append(extended(run, confidence, test))
    result = TrainingResult(
        model=models[config.model.name],
        baseline=models[BASELINE] if BASELINE in baselines_for(config, method, table) else None,
        floor=models[TRIVIAL],
        runs=tuple(tested),
        score_rows=scores,
        gaps=comparisons,
        split=prepared.split,
        test=replace(test, entities=table.take(prepared.split.test).entities),
        recipe=config,
        table=table,
        seconds=time.perf_counter() - started,
        cv=folds,
    )
    if config.split.final:
        result = replace(refit(result, prepared, folder), seconds=time.perf_counter() - started)
    return result


def run_methods(
    config: RunConfig, method: Method, parts: Parts, folder: Path | None, method_parts: Parts | None = None
) -> list[MethodRun]:
    """Fit a method and its baselines one after the other, and predict the test part with each.

    ``method_parts`` are the method's, which has more rows or targets to learn from; None for the same parts.
    """
    method_parts = method_parts or parts
    runs = [_fit(config.model.name, method, method_parts, folder)]
    for side in controls_for(config, method, parts[0]):
        run = _fit(side.title, method_alone(method, side, parts[0]), [side.of(part) for part in method_parts], None)
        runs.append(replace(run, prediction=_where_predicted(run.prediction, runs[0].prediction)))
    if (scratch := scratch_for(config, method, parts)) is not None:
        logger.info("%s%s, to see whether the start pays; to leave it out: --no-compare", config.model.name, SCRATCH)
        runs.append(_fit(f"{config.model.name}{SCRATCH}", scratch, parts, None))
    for name in baselines_for(config, method, parts[0]):
        runs.append(_fit(name, baseline_method(name, config), parts, None))
    return runs


def _fit(name: str, method: Method, parts: Parts, folder: Path | None) -> MethodRun:
    how = getattr(method, "callback", None)
    logger.info("training %s%s", method.title if method.members else name, f" by {how}" if how else "")
    start, ((train, valid, test), note) = time.perf_counter(), _learnable(method, parts)
    method.fit(train, valid if len(valid) else None, workdir=folder)
    seconds = time.perf_counter() - start
    if note:
        method.notes = (*method.notes, *note)
    return MethodRun(name, method, method.predict(test), seconds)


def _learnable(method: Method, parts: Parts) -> tuple[Parts, tuple[str, ...]]:
    """Train, valid and test part without the limits that a baseline cannot learn, and a note on those left out.

    A method that was asked for and cannot learn them was refused before (``run.objective``).
    """
    n = int(parts[0].limited.sum())
    if not n or all(part.learns_limits for part in method.innermost):
        return parts, ()
    note = f"learnt from measured values alone: {n:,} limits are left out"
    return [*map(without_limits, parts[:2]), parts[2]], (note,)


def _where_predicted(prediction: Prediction, whole: Prediction) -> Prediction:
    """A side's prediction with no value in the rows that the model of pairs cannot read, so that both have the same."""
    value = np.where((whole.status == OK)[:, None], prediction.value, np.nan)
    return replace(prediction, value=value, status=whole.status, reason=whole.reason)


def compare(prepared: PreparedRun, runs: Sequence[MethodRun]) -> tuple[Gap | Payoff, ...]:
    """Whether a model of pairs used both sides, and whether a start from a file paid, by the test part."""
    config, test, seed = prepared.config, prepared.parts[2], prepared.config.training.seed
    predictions = {run.name: run.prediction for run in runs}
    sides = controls_for(config, prepared.method, prepared.parts[0])
    mean = predictions.get(TRIVIAL)
    comparisons: tuple[Gap | Payoff, ...] = gaps(test, sides, runs[0].prediction, predictions, mean=mean, seed=seed)
    if config.model.init is not None:
        others = {
            f"training{SCRATCH}" if run.name.endswith(SCRATCH) else run.name: run.prediction
            for run in runs[1:]
            if run.name != TRIVIAL
        }
        comparisons += payoffs(test, runs[0].prediction, others, seed=seed)
    return comparisons


def run_folder(workdir: str | Path | None, config: RunConfig, split: Split) -> Path | None:
    """A folder in ``workdir`` for this configuration on these rows, so that another run's checkpoint is never met."""
    if workdir is None:
        return None
    folder = Path(workdir) / hashlib.sha256((config.to_json() + split.hash).encode()).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    return folder
