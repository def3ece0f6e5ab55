"""Search hyper-parameters with Optuna by cross-validation inside the training set, then train with the best ones."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.training import learn
from molgraph.base.contracts import Method
from molgraph.base.durations import seconds_of
from molgraph.base.errors import BadValueError, EmptyError, UnsupportedError, UnusedSettingError
from molgraph.base.journal import Journal
from molgraph.base.options import takes
from molgraph.base.recipe_keys import KEYWORDS
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.base.search_space import Space
from molgraph.base.seeds import derive
from molgraph.base.version import package_versions
from molgraph.data.levels import pooled
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splits
from molgraph.data.table import Table
from molgraph.evaluate.latency import WEIGHT, Latency
from molgraph.evaluate.metrics import default_metric
from molgraph.evaluate.trials import best_trial
from molgraph.run.baselines import add_descriptors, method_of
from molgraph.run.prepare import PreparedRun, asked_config, prepare
from molgraph.run.tuning_result import TuningResult
from molgraph.train.tuning import tune_method

JOURNAL = "tuning.jsonl"
LEAST_A_FOLD = 10  # labelled rows of an inner fold, below which its score says nothing
NOT_TUNED = ("budget", "unlabelled", "helpers", "compare")
TUNE_KEYWORDS = {name: each for name, each in KEYWORDS.items() if name not in NOT_TUNED}
logger = logging.getLogger("molgraph")


@takes({name: each for name, each in TUNE_KEYWORDS.items() if name != "test"})
def tune(
    data: Any = None,
    *,
    trials: int = 20,
    budget: str | float | None = None,
    folds: int = 3,
    test: Any = None,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    latency: str | float | None = None,
    latency_weight: float = WEIGHT,
    **options: Any,
) -> TuningResult:
    """Search a method's hyper-parameters inside the training part, then train with the best ones as ``train`` does.

    The table is split as ``train`` splits it. The training part is divided again, as the split divided the table; each
    trial learns from all inner folds but one and is scored on that one, in turn. The first trial has the defaults. The
    valid and test parts are seen by no trial, so that the scores of the test part are those of a fair test.

    Args:
        data, test, params, recipe: as in ``train``; a parameter that is given is not searched.
        trials: how many sets of parameters are tried.
        budget: time for all trials, in seconds or such as ``"10m"`` and ``"2h"``; no limit if not given.
        folds: the inner folds.
        workdir: a folder for the journal of the trials and the checkpoint of the training; the same call goes on there
            after a kill. Remove it once the model is saved.
        latency: molecules/s that ``predict`` should reach, such as ``"5000/s"``: trials are compared by ``score *
            (latency / target)^w`` (Tan et al. 2019, CVPR; the score of an error is 1 / error), each with its measured
            molecules/s, and depth, width or trees are searched too. Times on a busy machine move the choice.
        latency_weight: w, 0 or less.
        **options

    Returns:
        The trials, the best parameters, and the model that was trained with them.

    Raises:
        UnsupportedError: the method has no parameters to search. DataError: the table cannot be used as asked, or has
        too few rows to choose by. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> found = molgraph.tune("builtin:chembl2321810", model="knn", trials=4)
        >>> sorted(found.chosen), len(found.trials)
        (['k', 'power', 'radius'], 4)
    """
    if trials < 1 or folds < 2:
        raise BadValueError(f"{trials} trials on {folds} folds", hint="give 1 trial and 2 folds, or more")
    seconds, started = None if budget is None else seconds_of(budget), time.perf_counter()
    asked = None if latency is None else Latency.read(latency, latency_weight)
    if asked is None and latency_weight != WEIGHT:
        raise UnusedSettingError("a weight of the latency, and no latency", hint="name one: --latency 5000/s")
    config = asked_config(data, test, None, params, recipe, options)
    if config.data.helpers or config.data.unlabelled or get("objective", config.training.objective).helped:
        raise UnsupportedError("tune searches with labelled rows alone", hint="leave out --helper and --unlabelled")
    space = space_of(config, sizes=asked is not None)
    prepared = prepare(one_model(config), data, test=test)
    check_rows(prepared.parts[0], folds, config)
    if asked is not None and len({default_metric(t.kind).higher_is_better for t in prepared.parts[0].row_targets}) > 1:
        raise UnsupportedError("a latency is weighed with errors or with scores, not both", hint="name one: -t TARGET")
    inner = inner_splits(prepared.parts[0], prepared.split, derive(config.training.seed, "inner") % 2**32, folds=folds)
    journal = open_journal(workdir, prepared, space, inner, asked)
    how = (inner, space, journal, trials, seconds, config.training.seed, asked)
    found = tune_method(prepared.method, prepared.parts[0], prepared.split, *how)
    best = best_trial(found)
    if best is None:
        if journal.path is not None:
            journal.path.unlink(missing_ok=True)
        raise EmptyError(f"none of {len(found)} trials has a score: {found[0].reason}", hint="see molgraph data audit")
    chosen = with_params(config, {name: value for name, value in best.params.items() if value is not None})
    method = add_descriptors(chosen, method_of(chosen), prepared.table)
    logger.info("training with the best of %s trials", len(found))
    best_config = prepared.config.model_copy(update={"model": chosen.model, "training": chosen.training})
    result = learn(replace(prepared, config=best_config, method=method), workdir, started)
    metrics = {t.name: default_metric(t.kind).name for t in prepared.parts[0].row_targets}
    tuned = TuningResult(result, tuple(found), space, inner[0].splitter, folds, metrics, chosen, asked)
    return replace(tuned, training=replace(result, model=result.model.with_note(tuned.note)))


def one_model(config: RunConfig) -> RunConfig:
    """The recipe of one model, where an ensemble of it is asked for: the parameters are searched for one."""
    return config.model_copy(update={"training": config.training.model_copy(update={"ensemble": 1})})


def with_params(config: RunConfig, params: Mapping[str, Any]) -> RunConfig:
    """The recipe with some of the model's own parameters set."""
    return config.model_copy(
        update={"model": config.model.model_copy(update={"params": {**config.model.params, **params}})}
    )


def space_of(config: RunConfig, *, sizes: bool = False) -> Space:
    """The ranges of the parameters that the recipe leaves open, with ``sizes`` those that set the speed too.

    Raises:
        UnsupportedError: the method has none, or all of them are given.
    """
    method = method_of(one_model(config))
    whole = {**method.space(), **(method.sizes() if sizes else {})}
    given = {*config.model.params, *config.training.model_fields_set} & {*whole}
    if given:
        logger.info("given, and not searched: %s", ", ".join(sorted(given)))
    space = {name: each for name, each in whole.items() if name not in given}
    if not whole:
        able = [each for each in names("method") if get("method", each).space is not Method.space]
        hint = f"with parameters to search: every graph network, and {', '.join(able)}; of a wrapper, tune its method"
        raise UnsupportedError(f"{config.model.name} has no parameters to search", hint=hint)
    if not space:
        words = f"all parameters of {config.model.name} that can be searched are given: {', '.join(whole)}"
        raise UnsupportedError(words, hint="leave one of them out")
    return space


def check_rows(train: Table, folds: int, config: RunConfig) -> None:
    """Refuse to choose parameters by fewer than ``LEAST_A_FOLD`` labelled rows a fold."""
    known = pooled(train).y if train.packed else train.y
    n = int(np.isfinite(known).any(axis=1).sum()) if known is not None else 0
    if n < LEAST_A_FOLD * folds:
        words = f"{n} labelled training rows are too few to choose parameters by: {folds} folds need "
        hint = f"train with the defaults: molgraph train ... -m {config.model.name}"
        raise EmptyError(f"{words}{LEAST_A_FOLD * folds}", hint=hint)


def open_journal(
    workdir: str | Path | None, prepared: PreparedRun, space: Space, inner: list[Split], latency: Latency | None
) -> Journal:
    """The trials that an earlier call left in the working folder; its recipe, rows and folds must be the same."""
    recipe = prepared.config.model_dump(mode="json")
    recipe["training"] = {k: v for k, v in recipe["training"].items() if k not in ("threads", "store", "baseline")}
    ranges = {name: [type(each).__name__, asdict(each)] for name, each in space.items()}
    run = {"recipe": recipe, "space": ranges, "splits": [split.hash for split in inner]}
    content: dict[str, Any] = {"content": inner[0].content, "versions": package_versions(["optuna"])}
    content |= {} if latency is None else {"latency": asdict(latency)}
    return Journal(None if workdir is None else Path(workdir) / JOURNAL, run | content)
