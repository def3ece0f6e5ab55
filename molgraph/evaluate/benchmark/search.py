"""Search a method's hyper-parameters inside the training rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from molgraph.base.seeds import derive
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table
from molgraph.evaluate.benchmark.job import Job
from molgraph.evaluate.metrics import get_metric
from molgraph.evaluate.trials import best_trial, judge, run_trials


def search(job: Job, train: Table, outer: Split) -> dict[str, Any]:
    """Search a method's parameters by ``run_trials``.

    Only training rows come in. They are split again as ``outer`` divided the table; each trial learns from one part and
    is judged on the other, by the metric that leads each target, averaged over the targets.
    """
    settings, params = job.method.search, job.method.params
    assert settings is not None
    space = {k: v for k, v in job.make(params, job.seed).space().items() if k not in params}
    if not space:
        return {"chosen": {}, "search": {"trials": []}, "notes": [f"{job.method.name} has nothing to search"]}
    seed = derive(settings.seed, "inner") % 2**32
    inner = inner_splits(train, outer, seed, share=settings.fraction, folds=settings.folds)
    parts = [(train.take(split.train), train.take(split.test)) for split in inner]
    metrics = {name: get_metric(names[0]) for name, names in job.metrics.items()}

    def measure(chosen: Mapping[str, Any]) -> Iterator[float]:
        for k, (learned, judged) in enumerate(parts):
            seed = derive(job.seed, "search", k) % 2**32
            method = job.make({**params, **settings.params, **chosen}, seed)
            job.fit(method, learned, None, outer, seed)
            yield judge(judged, method.predict(job.hidden(judged)), metrics)

    seed = derive(job.seed, "sampler", settings.seed) % 2**32
    trials = run_trials(space, lambda chosen: [*measure(chosen)], trials=settings.trials, seed=seed)
    best = best_trial(trials)
    notes = [] if best else ["no trial of the search had a score: the defaults are used"]
    described = {"split": inner[0].splitter, "metrics": {name: m.name for name, m in metrics.items()}}
    rows = [{key: value for key, value in trial.to_json().items() if key != "folds"} for trial in trials]
    record = {**described, "rows": len(train), "trials": rows}
    return {"chosen": dict(best.params) if best else {}, "search": record, "notes": notes}
