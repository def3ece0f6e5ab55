"""Train a recipe's method, a baseline and a floor on the same parts."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.contracts import Method
from molgraph.base.errors import UsageError
from molgraph.base.recipe import DEFAULTS, GRADIENT_DESCENT, Recipe
from molgraph.base.registry import get
from molgraph.data.splits import Split
from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table
from molgraph.evaluate.class_counts import class_counts
from molgraph.plan import split_name, units_of
from molgraph.results import FLOOR, Contestant
from molgraph.train.card import Card
from molgraph.train.method import GraphMethod, make_method
from molgraph.train.model import Model
from molgraph.train.trained_on import distinct
from molgraph.trust.ensemble import Ensemble

BASELINE = "random_forest"
logger = logging.getLogger("molgraph")


def _known(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Those of the training options that mean to a method what they mean in a recipe."""
    made = make_method(name)
    taken = set(made.param_names()) - set(() if made.gradient_descent else GRADIENT_DESCENT)
    return {key: value for key, value in options.items() if key in taken}


def _shared(plan: Recipe) -> dict[str, Any]:
    """What the baseline takes over, so that it learns on the same terms."""
    return plan.training.model_dump(include={"seed", "threads", "class_weights"})


def _check_idle(plan: Recipe, idle: Mapping[str, Any]) -> None:
    """Say which training options a method is given in vain.

    Raises:
        UsageError: the method has a parameter of the same name and another meaning.
    """
    name = plan.model.name
    changed = [key for key in sorted(idle) if idle[key] != getattr(DEFAULTS, key)]
    own = set(make_method(name).param_names()) - set(plan.model.params)
    for key in sorted(own & idle.keys() & plan.training.model_fields_set):
        value = idle[key]
        said = f"{name} has a {key} of its own, which is not the {key} of gradient descent"
        hint = f"set its own one with -s params.{key}={value} (in Python: params={{{key!r}: {value}}})"
        if key in changed:
            raise UsageError(said, hint=hint)
        logger.warning("%s: %s=%s is not used; %s", said, key, value, hint)
    if unused := [key for key in changed if key not in own]:
        logger.warning("%s has no %s: not used", name, " and no ".join(unused))


def method_of(plan: Recipe) -> Method:
    """The recipe's method, given those training options that it takes; a note on those that it was given in vain.

    Raises:
        UsageError: an unknown name, a value that no fit can have, or a training option that means something else to
            this method.
    """
    options = plan.training.model_dump(exclude={"ensemble", "baseline"})
    known = _known(plan.model.name, options)
    _check_idle(plan, {key: value for key, value in options.items() if key not in known})
    params = known | plan.model.params
    method: Method
    if plan.training.ensemble > 1:
        seed = params.pop("seed", plan.training.seed)
        method = Ensemble(plan.model.name, n=plan.training.ensemble, seed=seed, params=params)
    else:
        method = make_method(plan.model.name, **params)
    for part in getattr(method, "members", [method]):
        if isinstance(part, GraphMethod):
            part.check()
            part.check_network()
    return method


def beside(plan: Recipe, method: Method) -> list[str]:
    """What is trained beside a method: a forest beside a graph model unless refused, and always the floor."""
    baseline = [BASELINE] if plan.training.baseline and is_graph(method) else []
    return [*baseline, *[FLOOR] * (plan.model.name != FLOOR)]


def check_keep(plan: Recipe, keep: str) -> None:
    """Refuse before the training what could not be kept after it.

    Raises:
        UsageError: the baseline is asked for and none is trained, or nothing is left to choose by.
    """
    name = plan.model.name
    if keep == "baseline" and BASELINE not in beside(plan, make_method(name, **plan.model.params)):
        why = f"{name} has none" if plan.training.baseline else "--no-baseline trains none"
        raise UsageError(f"there is no baseline to keep: {why}", hint=f"train it alone: --model {BASELINE}")
    if keep == "best" and plan.split.fractions[1] == 0 and get("split", split_name(plan)).uses_fractions:
        hint = "give it a share, as in --fractions 0.8,0.1,0.1"
        raise UsageError("--keep best chooses by the validation part, and the fractions leave none", hint=hint)


def contestants(plan: Recipe, method: Method, parts: list[Table], folder: Path | None) -> list[Contestant]:
    """Train the method and what stands beside it, one after the other.

    Args:
        plan: the recipe.
        method: its method, not fitted yet.
        parts: train, valid and test part.
        folder: where the method keeps what a resume needs, or None.
    """
    made = [_compete(plan.model.name, method, parts, folder)]
    for name in beside(plan, method):
        made.append(_compete(name, make_method(name, **_known(name, _shared(plan))), parts, None))
    return made


def is_graph(method: Method) -> bool:
    """Whether a graph model learns: a forest beside anything else would be a second model that nobody asked for."""
    return all(isinstance(each, GraphMethod) for each in getattr(method, "members", [method]))


def _compete(name: str, method: Method, parts: list[Table], folder: Path | None) -> Contestant:
    members = getattr(method, "members", [])
    logger.info("training %s", f"ensemble of {len(members)} {name}" if members else name)
    started = time.perf_counter()
    train_part, valid, test = parts
    method.fit(train_part, valid if len(valid) else None, workdir=folder)
    seconds = time.perf_counter() - started
    return Contestant(name, method, method.predict(test), seconds)


def model_of(
    made: Contestant, table: Table, plan: Recipe, divided: Split, scores: pd.DataFrame, hashes: np.ndarray
) -> Model:
    """A contestant as people hold it: with its card, and the hashes of the molecules that it learnt from.

    Args:
        made: fitted.
        table: all rows as they were read.
        plan: the recipe.
        divided: its split.
        scores: of all contestants on the test part.
        hashes: of all rows (``molgraph.train.trained_on.molecule_hashes``).
    """
    learnt = np.concatenate([divided.train, divided.valid]) if made.method.uses_valid else divided.train
    own = scores[scores["method"] == made.name].drop(columns="method").assign(part="test")
    parts = {part: getattr(divided, part) for part in PARTS}
    own_test = "The test part is a table of its own." if "test" in divided.params else ""
    n_train, n_valid, n_test = map(len, parts.values())
    card = Card(
        name=made.name,
        units=units_of(table, plan),
        n_train=n_train,
        n_valid=n_valid,
        n_test=n_test,
        split=divided.recipe,
        split_hash=divided.hash,
        classes=tuple(class_counts(table, parts).to_dict("records")),
        scores=tuple(own.replace({np.nan: None}).to_dict("records")),
        recipe=json.loads(plan.to_json()),
        notes=(*table.notes, *made.method.notes, *filter(None, [own_test, divided.leak_sentence])),
    )
    return Model(
        made.method,
        targets=table.row_targets,
        standardiser=plan.data.standardise,
        feature_names=table.feature_names,
        card=card,
        trained_on=distinct(hashes[learnt]),
    )
