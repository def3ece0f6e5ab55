"""Search a run's hyper-parameters inside its training part, and train with the best ones."""

from __future__ import annotations

import logging
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import EmptyError, UnsupportedError
from molgraph.base.journal import Journal
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.base.search_space import Space
from molgraph.base.seeds import derive
from molgraph.base.version import package_versions
from molgraph.data.levels import pooled
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table
from molgraph.evaluate.latency import Latency
from molgraph.evaluate.metrics import default_metric
from molgraph.evaluate.trials import best_trial
from molgraph.run.descriptors import add_descriptors
from molgraph.run.fit import learn
from molgraph.run.method import method_of
from molgraph.run.prepare import PreparedRun, prepare
from molgraph.run.tuning_result import TuningResult
from molgraph.train.tuning import tune_method

JOURNAL = "tuning.jsonl"
LEAST_A_FOLD = 10  # labelled rows of an inner fold, below which its score says nothing
logger = logging.getLogger("molgraph")


def tune_run(
    config: RunConfig,
    data: Any,
    test: Any,
    *,
    trials: int,
    seconds: float | None,
    folds: int,
    latency: Latency | None,
    workdir: str | Path | None,
    started: float,
) -> TuningResult:
    """Search the parameters that a configuration leaves open, and train with the best ones.

    Args:
        config: of the run.
        data, test, trials, folds, workdir: as in ``tune``.
        seconds: for all trials.
        latency: compares trials by score and speed together, if anything.
        started: the ``time.perf_counter()`` of the call.
    """
    if config.data.helpers or config.data.unlabelled or get("objective", config.training.objective).helped:
        raise UnsupportedError("tune searches with labelled rows alone", hint="leave out --helper and --unlabelled")
    one = config.with_values("training", ensemble=1)  # the parameters of an ensemble are searched for one model
    space = _space_of(one, sizes=latency is not None)
    prepared = prepare(one, data, test=test)
    train = prepared.parts[0]
    _check_rows(train, folds, config)
    metrics = {target.name: default_metric(target.kind) for target in train.row_targets}
    if latency is not None and len({metric.higher_is_better for metric in metrics.values()}) > 1:
        raise UnsupportedError("a latency is weighed with errors or with scores, not both", hint="name one: -t TARGET")
    seed = config.training.seed
    inner = inner_splits(train, prepared.split, derive(seed, "inner") % 2**32, folds=folds)
    journal = _open_journal(workdir, prepared, space, inner, latency)
    measured = tune_method(
        prepared.method, train, prepared.split, inner, space, journal, trials, seconds, seed, latency
    )
    best = best_trial(measured)
    if best is None:
        if journal.path is not None:
            journal.path.unlink(missing_ok=True)
        reason = measured[0].reason
        raise EmptyError(f"none of {len(measured)} trials has a score: {reason}", hint="see molgraph data audit")
    params = {name: value for name, value in best.params.items() if value is not None}
    config = config.with_values("model", params={**config.model.params, **params})
    method = add_descriptors(config, method_of(config), prepared.table)
    logger.info("training with the best of %s trials", len(measured))
    trained = prepared.config.model_copy(update={"model": config.model, "training": config.training})
    training = learn(replace(prepared, config=trained, method=method), workdir, started)
    labels = {name: metric.name for name, metric in metrics.items()}
    result = TuningResult(training, tuple(measured), space, inner[0].splitter, folds, labels, config, latency)
    return replace(result, training=replace(training, model=training.model.with_note(result.note)))


def _space_of(config: RunConfig, *, sizes: bool) -> Space:
    """The ranges of the parameters that the configuration leaves open, with ``sizes`` those that set the speed too.

    Raises:
        UnsupportedError: the method has none, or all of them are given.
    """
    method = method_of(config)
    whole = {**method.space(), **(method.sizes() if sizes else {})}
    fixed = {*config.model.params, *config.training.model_fields_set} & {*whole}
    if fixed:
        logger.info("given, and not searched: %s", ", ".join(sorted(fixed)))
    space = {name: values for name, values in whole.items() if name not in fixed}
    if not whole:
        able = [name for name in names("method") if get("method", name).space is not Method.space]
        hint = f"with parameters to search: every graph network, and {', '.join(able)}; of a wrapper, tune its method"
        raise UnsupportedError(f"{config.model.name} has no parameters to search", hint=hint)
    if not space:
        words = f"all parameters of {config.model.name} that can be searched are given: {', '.join(whole)}"
        raise UnsupportedError(words, hint="leave one of them out")
    return space


def _check_rows(train: Table, folds: int, config: RunConfig) -> None:
    """Refuse to choose parameters by fewer than ``LEAST_A_FOLD`` labelled rows a fold."""
    y = pooled(train).y if train.packed else train.y
    n = int(np.isfinite(y).any(axis=1).sum()) if y is not None else 0
    if n < LEAST_A_FOLD * folds:
        words = f"{n} labelled training rows are too few to choose parameters by: {folds} folds need "
        hint = f"train with the defaults: molgraph train ... -m {config.model.name}"
        raise EmptyError(f"{words}{LEAST_A_FOLD * folds}", hint=hint)


def _open_journal(
    workdir: str | Path | None, prepared: PreparedRun, space: Space, inner: list[Split], latency: Latency | None
) -> Journal:
    """The trials that an earlier call left in the working folder; its recipe, rows and folds must be the same."""
    recipe = prepared.config.model_dump(mode="json", exclude={"training": {"threads", "store", "baseline"}})
    ranges = {name: [type(values).__name__, asdict(values)] for name, values in space.items()}
    run = {"recipe": recipe, "space": ranges, "splits": [split.hash for split in inner]}
    content: dict[str, Any] = {"content": inner[0].content, "versions": package_versions(["optuna"])}
    content |= {} if latency is None else {"latency": asdict(latency)}
    return Journal(None if workdir is None else Path(workdir) / JOURNAL, run | content)
