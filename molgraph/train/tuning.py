"""Measure sets of a method's hyper-parameters on inner folds of the training rows, one trial after another."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.journal import Journal
from molgraph.base.progress import bar
from molgraph.base.search_space import Space
from molgraph.base.seeds import derive
from molgraph.data.levels import pooled
from molgraph.data.splits import Split
from molgraph.data.splits.inner import stopping_rows
from molgraph.data.table import Table
from molgraph.evaluate.latency import Latency
from molgraph.evaluate.metrics import default_metric
from molgraph.evaluate.trials import Trial, best_trial, judge, run_trials
from molgraph.train.method import GraphMethod
from molgraph.train.speed import TIMED, seconds_in_turn

logger = logging.getLogger("molgraph")


def tune_method(
    method: Method,
    train: Table,
    outer: Split,
    inner: Sequence[Split],
    space: Space,
    journal: Journal,
    trials: int,
    seconds: float | None = None,
    seed: int = 0,
    latency: Latency | None = None,
) -> list[Trial]:
    """Try sets of hyper-parameters; each learns from the training part of every inner fold and is scored on the rest.

    Args:
        method: it is left as it is; its own values of the searched parameters are tried first.
        train: the rows, which no test row is among.
        outer: the split that they are the training part of.
        inner: splits of ``train``.
        space: the parameters and their ranges.
        journal: the trials of earlier runs, which are not measured again; each new one is written as it ends.
        trials, seconds: how many, and time for them, as in ``run_trials``.
        seed: of the sampler and of the fits.
        latency: compares trials by score and molecules/s of ``predict`` together, which are then measured on training
            rows with the network or forest of the last fold.
    """
    parts = [(train.take(split.train), train.take(split.test)) for split in inner]
    metrics, scales = {t.name: default_metric(t.kind) for t in train.row_targets}, scales_of(train)
    params, before = method.get_params(), [Trial.from_json(step) for step in journal.steps]
    first = {name: params[name] if name in params else inner_value(method, name) for name in space}
    best, fitted = best_trial(before), list[Method]()
    timed = replace(train.take(np.arange(min(len(train), TIMED))), y=None, targets=(), packed={})

    def measure(chosen: Mapping[str, Any]) -> list[float]:
        values = []
        for k, (learned, judged) in enumerate(parts):
            fold_seed, valid = derive(seed, "search", k) % 2**32, None
            learner = fresh_method(method, {**chosen, **stored}, fold_seed)
            if learner.uses_valid:
                learned, valid = stopping_rows(learned, outer, fold_seed)
            with quiet():
                learner.fit(learned, valid)
            prediction = learner.predict(replace(judged, y=None, targets=(), packed={}))
            values.append(judge(judged, prediction, metrics, scales))
            fitted[:] = [learner]
        return values

    def rate() -> float:
        (learner,) = fitted
        learner.set_params(**({"store": None} if stored else {}))  # features are made anew, as for new molecules
        return len(timed) / seconds_in_turn([lambda: learner.predict(timed)])[0]

    def done(trial: Trial) -> None:
        nonlocal best
        journal.append(trial.to_json())
        best = best_trial([entry for entry in (best, trial) if entry is not None])
        line.advance()
        if best is not None and best.value is not None:
            line.describe(f"tuning {method.title}, best {best.value if best.reward is None else best.reward:.4g}")
        tried = ", ".join(f"{k}={v:.4g}" if isinstance(v, float) else f"{k}={v}" for k, v in trial.params.items())
        ended = trial.reason or f"{trial.value:.4g}"
        if trial.reward is not None:
            ended += f", {trial.rate:,.0f} molecules/s, reward {trial.reward:.4g}"
        logger.info("trial %s of %s: %s (%s), %.1f s", len(journal.steps), trials, ended, tried, trial.seconds)

    if before:
        logger.info("going on after %s trials", len(before))
    with TemporaryDirectory(prefix="molgraph-tune-") as folder, bar(f"tuning {method.title}", trials) as line:
        stored = {"store": folder} if "store" in params and params["store"] is None else {}  # features are made once
        line.advance(len(before))
        how: dict[str, Any] = {"trials": max(trials, len(before)), "seconds": seconds, "done": done}
        how |= {} if latency is None else {"latency": latency, "rate": rate}
        return run_trials(space, measure, seed=derive(seed, "sampler") % 2**32, first=first, before=before, **how)


def inner_value(method: Method, name: str) -> Any:
    """The value of a hyper-parameter that is the encoder's and not the method's own."""
    assert isinstance(method, GraphMethod)  # no other has sizes of a part
    return method.inner_value(name)


def fresh_method(method: Method, params: Mapping[str, Any], seed: int) -> Method:
    """The same method before any fit, with some parameters of its own or its encoder's, and, where it has one, another
    seed."""
    keys = method.param_names()
    seeded: dict[str, Any] = {"seed": seed} if "seed" in keys else {}
    inner = {name: value for name, value in params.items() if name not in keys}
    seeded |= {"params": {**(method.get_params()["params"] or {}), **inner}} if inner else {}
    return type(method)(**method.get_params()).set_params(**seeded, **{n: v for n, v in params.items() if n in keys})


def scales_of(train: Table) -> dict[str, float]:
    """What errors in the units of several targets are divided by: the labels' standard deviation, by name.

    Empty for one target, whose error stays in its unit.
    """
    table = pooled(train) if train.packed else train
    if len(table.row_targets) < 2 or table.y is None:
        return {}
    spread = {t.name: float(np.nanstd(table.y[:, j])) for j, t in enumerate(table.row_targets)}
    numbers = {t.name for t in table.row_targets if t.kind in ("regression", "bounded")}
    return {name: sd for name, sd in spread.items() if name in numbers and sd > 0}


@contextmanager
def quiet() -> Iterator[None]:
    """While it lasts, what fits say of themselves is not told: there are many."""
    before = logger.level
    logger.setLevel(logging.WARNING)
    try:
        yield
    finally:
        logger.setLevel(before)
