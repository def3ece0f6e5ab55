"""Fit a method on the training part of each fold and predict the fold that was left out, within a time budget."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.auxiliary.selection.portfolio import Candidate
from molgraph.base.contracts import Method
from molgraph.base.errors import MolgraphError
from molgraph.base.paths import atomic_write, write_whole
from molgraph.base.seeds import derive, generator
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table
from molgraph.train.make_method import make_method
from molgraph.train.model import Model
from molgraph.train.modelfile import load_model
from molgraph.train.optimizers import USUAL_EPOCHS, USUAL_STEPS

PILOT, PILOT_EPOCHS = 256, (2, 8)  # rows and epochs of a network's two trial fits, which estimate its time
SIZES = (500, 1000)  # rows of the two trial fits of another method
SMALL = 4000  # rows up to which its first fold is the trial
TIGHT, FEW = 240, 200  # unless fewer seconds are left, for more than a few rows
FEWEST_EPOCHS = 15  # a network that has time for fewer is not tried
VALID_SHARE = 0.1  # of a fold's training part, for early stopping
BATCH = 64


@dataclass
class Clock:
    """The time of a budget, across runs that were stopped.

    Args:
        budget: seconds.
        before: seconds that fits of earlier runs took.
    """

    budget: float
    before: float = 0.0
    started: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.budget - self.before - (time.monotonic() - self.started)


@dataclass
class Trial:
    """What a candidate gave.

    Args:
        candidate: the method.
        methods: fitted, one a fold.
        value: float64 [n, columns], predictions of each row by the method that did not see it; NaN elsewhere.
        seconds: that its fits took.
        reason: why it has no predictions, else empty.
    """

    candidate: Candidate
    methods: list[Method] = field(default_factory=list)
    value: np.ndarray | None = None
    seconds: float = 0.0
    reason: str = ""


class TooLongError(Exception):
    """A candidate does not fit into the time that is left."""


def try_candidate(
    candidate: Candidate,
    table: Table,
    splits: Sequence[Split],
    clock: Clock,
    share: float,
    seed: int,
    settings: dict[str, Any],
    folder: Path | None,
) -> Trial:
    """Fit a candidate on every fold; whatever it raises is a reason, and ends nothing else.

    Args:
        candidate: the method.
        table: the rows that are divided.
        splits: folds with train and test parts.
        clock: of the budget.
        share: of the seconds that are left which this candidate may take, 0 to 1.
        seed: of its fits and early stopping.
        settings: threads and the like, for methods that know them.
        folder: keeps each fold's fit, so that a run that was stopped goes on; None keeps none.
    """
    trial = Trial(candidate)
    try:
        _fit_folds(trial, table, splits, clock, share, seed, settings, folder)
    except TooLongError as error:
        trial.reason = str(error)
    except MolgraphError as error:
        trial.reason = error.message
    except Exception as error:  # a library of its own may raise anything, and the others are still worth having
        trial.reason = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:200]
    if trial.reason:
        trial.methods, trial.value = [], None
    return trial


def _fit_folds(
    trial: Trial,
    table: Table,
    splits: Sequence[Split],
    clock: Clock,
    share: float,
    seed: int,
    settings: dict[str, Any],
    folder: Path | None,
) -> None:
    time_left = clock.left * share
    if trial.candidate.network and table.limits is not None:
        settings = {**settings, "objective": "tobit"}
    kept = [None if folder is None else _kept(folder, fold) for fold in range(len(splits))]
    done = [entry for entry in kept if entry is not None]
    extra: dict[str, Any] = {}
    if len(done) < len(splits):
        extra = dict(done[0][3]) if done else _planned(trial.candidate, table, splits, time_left, seed, settings)
    for fold, split in enumerate(splits):
        result = kept[fold]
        if result is None:
            began, train, test = time.monotonic(), table.take(split.train), table.take(split.test)
            method = _made(trial.candidate, {**settings, **extra, "seed": derive(seed, trial.candidate.name, fold)})
            valid = None
            if method.uses_valid:
                (cut,) = inner_splits(train, split, derive(seed, "valid", fold), share=VALID_SHARE, part="valid")
                train, valid = train.take(cut.train), train.take(cut.valid)
            method.fit(train, valid, workdir=None if folder is None else folder / f"fold-{fold}")
            value = method.predict(test).value
            result = method, value, time.monotonic() - began, extra
            if folder is not None:
                _keep(folder, fold, result, table)
        method, value, seconds, _ = result
        if trial.value is None:
            trial.value = np.full((len(table), value.shape[1]), np.nan)
        trial.value[split.test] = value
        trial.methods.append(method)
        trial.seconds += seconds
        rest = trial.seconds / (fold + 1) * sum(entry is None for entry in kept[fold + 1 :])
        if rest > clock.left and not trial.candidate.network:  # its epochs fit already
            raise TooLongError(f"{len(splits)} folds would take {trial.seconds / (fold + 1) * len(splits):,.0f} s")


def _made(candidate: Candidate, settings: dict[str, Any]) -> Method:
    """A fresh method with those of the settings that it knows and its spec does not say."""
    method = make_method(candidate.spec)
    known = method.get_params()
    return method.set_params(**{k: v for k, v in settings.items() if k in known and v is not None})


def _planned(
    candidate: Candidate,
    table: Table,
    splits: Sequence[Split],
    seconds: float,
    seed: int,
    settings: dict[str, Any],
) -> dict[str, Any]:
    """Settings with which the folds take at most so many seconds; raises ``TooLongError`` where there are none."""
    rows = splits[0].train
    if seconds <= 0:
        raise TooLongError("no time was left")
    if not candidate.network:
        if len(rows) > SMALL or (seconds < TIGHT and len(rows) > FEW):
            few, more = SIZES if len(rows) > SMALL else (len(rows) // 4, len(rows) // 2)
            try:
                small, large = (_seconds(candidate, table, rows, n, seed, settings) for n in (few, more))
            except MolgraphError:  # a sample of the rows may be of one class: the first fold is the trial
                return {}
            took = len(splits) * (large + max(large - small, 0.0) / max(more - few, 1) * (len(rows) - more))
            if took > seconds:
                raise TooLongError(f"{len(splits)} folds would take about {took:,.0f} s")
        return {}
    few, more = PILOT_EPOCHS
    trials = [{**settings, "epochs": n} for n in (few, few, more)]  # the first imports libraries and makes features
    _, short, long = (_seconds(candidate, table, rows, PILOT, seed, trial) for trial in trials)
    epoch = max((long - short) / (more - few), 1e-6)
    fixed = max(short - few * epoch, 0.0)
    epoch *= len(rows) / min(PILOT, len(rows))
    usual = max(USUAL_EPOCHS, math.ceil(USUAL_STEPS / math.ceil(len(rows) / BATCH)))
    affordable = int((seconds / len(splits) - fixed) / epoch)
    if affordable < FEWEST_EPOCHS:
        raise TooLongError(f"there was time for {affordable} epochs, and {FEWEST_EPOCHS} are the fewest")
    return {} if affordable >= usual else {"epochs": affordable}


def _seconds(
    candidate: Candidate, table: Table, rows: np.ndarray, n: int, seed: int, settings: dict[str, Any]
) -> float:
    """Seconds of a fit on n of the rows."""
    part = table.take(np.sort(generator(seed, "pilot").permutation(rows)[:n]))
    method = _made(candidate, {**settings, "seed": seed})
    began = time.monotonic()
    method.fit(part, part if method.uses_valid else None)
    return time.monotonic() - began


def _keep(folder: Path, fold: int, found: tuple[Method, np.ndarray, float, dict[str, Any]], table: Table) -> None:
    """Write a fold's fit; the file of its seconds comes last, and says that it is whole."""
    method, value, seconds, extra = found
    folder.mkdir(parents=True, exist_ok=True)
    Model(method, targets=table.targets, standardiser="none", feature_names=_features(method, table)).save(
        folder / f"fold-{fold}.mgm"
    )
    with atomic_write(folder / f"fold-{fold}.npy") as file:
        np.save(file, value, allow_pickle=False)
    write_whole(folder / f"fold-{fold}.json", json.dumps({"seconds": seconds, "settings": extra}))


def _kept(folder: Path, fold: int) -> tuple[Method, np.ndarray, float, dict[str, Any]] | None:
    """A fold's fit that an earlier run finished."""
    stem = folder / f"fold-{fold}"
    if not stem.with_suffix(".json").exists():
        return None
    known = json.loads(stem.with_suffix(".json").read_text("utf-8"))
    method = load_model(stem.with_suffix(".mgm")).method
    assert isinstance(method, Method)
    value = np.load(stem.with_suffix(".npy"), allow_pickle=False)
    return method, value, float(known["seconds"]), dict(known["settings"])


def _features(method: Method, table: Table) -> tuple[str, ...]:
    return table.feature_names if method.reads_features else ()
