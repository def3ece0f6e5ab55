"""Search a method's hyper-parameters inside the training rows."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from molgraph.base.contracts import Prediction
from molgraph.base.errors import MolgraphError
from molgraph.base.optional import need
from molgraph.base.search_space import Categorical, Float, Int, Range
from molgraph.base.seeds import derive
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.metrics import get_metric, score

LOST = 1e300  # what a trial without a score counts as: worse than any other


def search(job: Job, train: Table, outer: Split) -> dict[str, Any]:
    """Search a method's parameters with Optuna's TPE sampler (Akiba et al. 2019, KDD; Bergstra et al. 2011, NeurIPS).

    Only training rows come in. They are split again as ``outer`` divided the table; each trial learns from one part and
    is judged on the other, by the metric that leads each target, averaged over the targets.
    """
    settings, own = job.method.search, job.method.params
    assert settings is not None
    space = {k: v for k, v in job.make(own, job.seed).space().items() if k not in own}
    if not space:
        return {"chosen": {}, "search": {"trials": []}, "notes": [f"{job.method.name} has nothing to search"]}
    seed = derive(settings.seed, "inner") % 2**32
    inner = inner_splits(train, outer, seed, share=settings.fraction, folds=settings.folds)
    parts = [(train.take(split.train), train.take(split.test)) for split in inner]
    metrics = {name: get_metric(each[0]) for name, each in job.metrics.items()}
    trials: list[dict[str, Any]] = []

    def objective(trial: Any) -> float:
        chosen = {name: _suggest(trial, name, each) for name, each in space.items()}
        started = time.perf_counter()
        values, why = [], ""
        try:
            for k, (learned, judged) in enumerate(parts):
                seed = derive(job.seed, "search", k) % 2**32
                method = job.make({**own, **settings.params, **chosen}, seed)
                job.fit(method, learned, None, outer, seed)
                values.append(_judge(judged, method.predict(job.hidden(judged)), metrics))
        except (MolgraphError, ValueError, ArithmeticError) as error:
            why = f"{type(error).__name__}: {error}"[:300]
        value = float(np.mean(values)) if not why else math.nan
        found = value if math.isfinite(value) else None
        why = why or ("" if found is not None else "no score on the inner rows")
        seconds = round(time.perf_counter() - started, 3)
        trials.append({"params": chosen, "value": found, "reason": why, "seconds": seconds})
        return LOST if found is None else found

    optuna = need("optuna", "a search")
    logging.getLogger("optuna").setLevel(logging.ERROR)
    sampler = optuna.samplers.TPESampler(seed=derive(job.seed, "sampler", settings.seed) % 2**32)
    study = optuna.create_study(sampler=sampler, direction="minimize")
    study.optimize(objective, n_trials=settings.trials)
    scored = [t for t in trials if t["value"] is not None]
    best = min(scored, key=lambda t: t["value"], default=None)  # the first of equals
    notes = [] if best else ["no trial of the search had a score: the defaults are used"]
    told = {"split": inner[0].splitter, "metrics": {name: m.name for name, m in metrics.items()}, "rows": len(train)}
    return {"chosen": best["params"] if best else {}, "search": {**told, "trials": trials}, "notes": notes}


def _suggest(trial: Any, name: str, each: Range) -> Any:
    if isinstance(each, Float):
        return trial.suggest_float(name, each.low, each.high, log=each.log)
    if isinstance(each, Int):
        return trial.suggest_int(name, each.low, each.high, log=each.log)
    assert isinstance(each, Categorical)
    return each.choices[trial.suggest_categorical(name, list(range(len(each.choices))))]


def _judge(judged: Table, prediction: Prediction, metrics: Mapping[str, Any]) -> float:
    """The leading metric, lower is better, averaged over the targets that have one on these rows."""
    values = []
    for target in judged.row_targets:
        metric = metrics[target.name]
        value = score(judged.with_targets([target.name]), prediction, metrics=[metric])[0].value
        if math.isfinite(value):
            values.append(-value if metric.higher_is_better else value)
    return float(np.mean(values)) if values else math.nan
