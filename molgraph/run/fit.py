"""Fit the method of a run and its baselines on the same split, and predict the test part with each."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np

from molgraph.base.contracts import Method, Prediction
from molgraph.base.run_config import RunConfig
from molgraph.data.limits import without_limits
from molgraph.data.table import OK, Table
from molgraph.run.baselines import SCRATCH, baseline_method, baselines_for, controls_for, scratch_for
from molgraph.train.one_side import method_alone

Parts: TypeAlias = Sequence[Table]  #: train, valid and test
logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class MethodRun:
    """A fitted method, its predictions of the test part, and the seconds that it took to fit."""

    name: str
    method: Method
    prediction: Prediction
    seconds: float


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
    logger.info("training %s", method.title if method.members else name)
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
