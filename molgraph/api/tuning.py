"""Search hyper-parameters with Optuna by cross-validation inside the training set, then train with the best ones."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from molgraph.base.durations import seconds_of
from molgraph.base.errors import BadValueError, UnusedSettingError
from molgraph.base.options import takes
from molgraph.base.recipe_keys import TUNE_KEYWORDS
from molgraph.base.run_config import RunConfig
from molgraph.evaluate.latency import WEIGHT, Latency
from molgraph.run.config import train_config
from molgraph.run.tuning import tune_run
from molgraph.run.tuning_result import TuningResult


@takes({name: keyword for name, keyword in TUNE_KEYWORDS.items() if name != "test"})
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
    speed = None if latency is None else Latency.read(latency, latency_weight)
    if speed is None and latency_weight != WEIGHT:
        raise UnusedSettingError("a weight of the latency, and no latency", hint="name one: --latency 5000/s")
    config = train_config(recipe, options, params, data, test, None)
    search: dict[str, Any] = {"trials": trials, "seconds": seconds, "folds": folds, "latency": speed}
    return tune_run(config, data, test, **search, workdir=workdir, started=started)
