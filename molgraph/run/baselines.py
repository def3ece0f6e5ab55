"""Train a method and its baselines on the same split."""

from __future__ import annotations

import logging
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Method, Prediction, Trainable
from molgraph.base.errors import ConflictError, UnsupportedError, UnusedSettingError
from molgraph.base.parts import split_model
from molgraph.base.recipe_keys import DEFAULTS, GRADIENT_DESCENT, USUAL_MODEL
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.sides import Side
from molgraph.data.table import OK, Table
from molgraph.run.config import split_name
from molgraph.run.conformers import with_conformers, wrapped
from molgraph.run.split import learnable_parts
from molgraph.train.make_method import make_method, method_class
from molgraph.train.method import GraphMethod
from molgraph.train.modelfile import load_start
from molgraph.train.one_side import method_alone, method_sides
from molgraph.trust.ensemble import Ensemble
from molgraph.trust.wrapper import Wrapper

BASELINE = "random_forest"
TRIVIAL = "mean"  # a method that does not beat it has learned nothing
SCRATCH = " from scratch"  # ends the name of a model that is trained beside the same one with a start
OF_ROWS = (DEFAULTS.objective, "tobit")  # objectives that learn the labels of rows by the head alone
MOST_COMPARED = 2_000  # rows below which a model is trained from scratch too: it takes as long as the fine-tuning
MOST_DESCRIBED = 10_000  # rows: what descriptors bring is measured on fewer, and they slow prediction
logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class MethodRun:
    """A fitted method, its predictions of the test part, and the seconds that it took to fit."""

    name: str
    method: Method
    prediction: Prediction
    seconds: float


def known_options(learner: Trainable | type[Trainable]) -> set[str]:
    """The training options that have the same meaning for a learner as in a recipe."""
    return set(learner.param_names()) - set(() if learner.gradient_descent else GRADIENT_DESCENT)


def _check_idle(config: RunConfig, own: Collection[str], params: Collection[str]) -> None:
    """Warn of training options that a method does not use.

    Args:
        config: the recipe.
        own: the method's hyper-parameters, those in the recipe's ``params`` aside.
        params: the training options that have the same meaning for it.
    """
    name, idle = config.model.name, config.training.model_dump(exclude={"ensemble", "baseline", "compare", *params})
    changed = [key for key in sorted(idle) if idle[key] != getattr(DEFAULTS, key)]
    for key in sorted({*own} & idle.keys() & config.training.model_fields_set):
        value = idle[key]
        said = f"{name} has a {key} of its own, which is not the {key} of gradient descent"
        hint = f"set its own one with -s params.{key}={value} (in Python: params={{{key!r}: {value}}})"
        if key in changed:
            raise UnusedSettingError(said, hint=hint)
        logger.warning("%s: %s=%s is not used; %s", said, key, value, hint)
    if unused := [key for key in changed if key not in own]:
        logger.warning(f"{name} has no {' and no '.join(unused)}: not used")


def _with_options(
    name: str, params: Mapping[str, Any], options: Mapping[str, Any], unused: set[str]
) -> tuple[str, dict[str, Any]]:
    """A model's plain name, and its parameters with those of a run's options that it, or what it wraps, takes.

    The options that are taken are removed from ``unused``.
    """
    name, params = split_model(name, params)
    cls = method_class(name)
    known = {key: value for key, value in options.items() if key in known_options(cls)}
    unused -= {*known}
    made = {**known, **params}
    if issubclass(cls, Wrapper):
        inner, own = wrapped(cls, made)
        rest = {key: value for key, value in options.items() if key not in known}
        made["method"], made["params"] = _with_options(inner, own, rest, unused)
    return name, made


def _core(name: str, params: Mapping[str, Any]) -> type[Method]:
    """The class of the method inside of all wrappers."""
    name, params = split_model(name, params)
    cls = method_class(name)
    if not issubclass(cls, Wrapper):
        return cls
    return _core(*wrapped(cls, params))


def method_of(config: RunConfig, **more: Any) -> Method:
    """The recipe's method with the training options that it takes; a warning names those that it does not use.

    Args:
        config: the recipe.
        more: hyper-parameters of the method inside of all wrappers, where it has them.
    """
    name, params = config.model.name, config.model.params
    if config.training.ensemble > 1:
        name, params = Ensemble.name, {"method": name, "n": config.training.ensemble, "params": params}
    name, params = with_conformers(config, name, params)
    core = _core(name, params)
    if config.model.init is not None and "init" not in core.param_names():
        raise UnsupportedError(
            f"{config.model.name} has no encoder to start from {config.model.init}",
            hint="leave the model out: it is the file's; or leave out --init (in Python init=)",
        )
    if config.training.callback and "callback" not in core.param_names():
        words = f"{config.model.name} has no encoder that --callback {config.training.callback} could tune"
        raise UnsupportedError(words, hint="leave --callback out, or choose a graph network, such as -m dmpnn")
    described = {} if config.model.descriptors is None else {"descriptors": config.model.descriptors}
    if described and "descriptors" not in core.param_names():
        able = ", ".join(each for each in names("method") if "descriptors" in get("method", each).param_names())
        words = f"{config.model.name} reads no vectors of an encoder"
        raise UnsupportedError(words, hint=f"leave out --descriptors, or take one of {able}")
    options = config.training.model_dump(exclude={"ensemble", "baseline", "compare"}) | described
    if options["epochs"] is None:  # as many as the method has by itself
        del options["epochs"]
    options |= {**({} if config.model.init is None else {"init": config.model.init}), **more}
    unused = {*options}
    name, params = _with_options(name, params, options, unused)
    _check_idle(config, {*core.param_names()} - {*config.model.params}, {*options} - unused)
    method = make_method(name, **params)
    for part in method.with_members:
        if isinstance(part, GraphMethod):
            part.check()
            part.check_network()
    return method


def add_descriptors(config: RunConfig, method: Method, table: Table) -> Method:
    """The method, reading RDKit's descriptors where the recipe says nothing of them and the model is to read them.

    A model that starts from a file reads those that the file's reads. The usual model reads them of up to
    ``MOST_DESCRIBED`` molecules: on the boards means are lower for a few hundred, and about the same for thousands
    (docs/decisions/0022).
    """
    model, core = config.model, method.innermost[0]
    named = {"descriptors", "init"} & {*model.params} or model.descriptors is not None
    if named or config.training.objective not in OF_ROWS:
        return method
    if model.init is not None:
        described = getattr(load_start(model.init).method, "descriptors", "none") == "rdkit"
    else:
        described = core.model_name == USUAL_MODEL and _of_molecules(table) and len(table) <= MOST_DESCRIBED
    if not described or core.get_params().get("descriptors") != "none":
        return method
    if get("head", core.get_params()["head"]).reads_atoms:  # which reads no descriptors
        return method
    logger.info("%s reads RDKit's descriptors too; to leave them out: -s params.descriptors=none", core.model_name)
    return method.set_params(descriptors="rdkit") if core is method else method_of(config, descriptors="rdkit")


def _of_molecules(table: Table) -> bool:
    """Whether rows are single molecules with a value each."""
    return [e.kind for e in table.entities] == ["molecule"] and not table.packed


def baselines_for(config: RunConfig, method: Method, table: Table | None = None) -> list[str]:
    """Names of a method's baselines: a forest for a graph model of molecules unless refused, and the trivial one."""
    molecules = table is None or _of_molecules(table)
    baseline = [BASELINE] if config.training.baseline and is_graph(method) and molecules else []
    return [*baseline, *[TRIVIAL] * (config.model.name != TRIVIAL)]


def check_keep(config: RunConfig, keep: str) -> None:
    """Refuse before the training what could not be kept after it."""
    name, data = config.model.name, config.data
    several = data.sequence or (not isinstance(data.smiles, str | None) and len(data.smiles) > 1)
    if keep == "baseline" and (several or data.geometry or data.reaction):
        kind = "pairs" if several else "geometries" if data.geometry else "reactions"
        raise ConflictError(f"there is no baseline to keep: {kind} have none", hint="leave out --keep baseline")
    if keep == "baseline" and BASELINE not in baselines_for(config, make_method(name, **config.model.params)):
        why = f"{name} has none" if config.training.baseline else "--no-baseline trains none"
        raise ConflictError(f"there is no baseline to keep: {why}", hint=f"train it alone: --model {BASELINE}")
    if keep == "best" and config.split.fractions[1] == 0 and get("split", split_name(config)).uses_fractions:
        hint = "give it a share, as in --fractions 0.8,0.1,0.1"
        raise ConflictError("--keep best chooses by the validation part, and the fractions leave none", hint=hint)


def run_methods(
    config: RunConfig, method: Method, parts: list[Table], folder: Path | None, own: list[Table] | None = None
) -> list[MethodRun]:
    """Fit a method and its baselines one after the other, and predict the test part with each.

    ``own`` parts are the method's, which has more rows or targets to learn from; None for the same parts.
    """
    own = own or parts
    made = [_run(config.model.name, method, own, folder)]
    for side in controls_for(config, method, parts[0]):
        alone = [side.of(part) for part in own]
        run = _run(side.title, method_alone(method, side, parts[0]), alone, None)
        made.append(replace(run, prediction=_where_predicted(run.prediction, made[0].prediction)))
    if (scratch := scratch_for(config, method, parts)) is not None:
        logger.info("%s%s, to see whether the start pays; to leave it out: --no-compare", config.model.name, SCRATCH)
        made.append(_run(f"{config.model.name}{SCRATCH}", scratch, parts, None))
    for name in baselines_for(config, method, parts[0]):
        shared = {"seed", "threads", "class_weights"} & known_options(method_class(name))
        made.append(_run(name, make_method(name, **config.training.model_dump(include=shared)), parts, None))
    return made


def controls_for(config: RunConfig, method: Method, table: Table) -> tuple[Side, ...]:
    """The sides, such as the ligand alone, that a graph model of pairs or complexes is trained on beside the whole."""
    return method_sides(method, table) if config.training.baseline and is_graph(method) else ()


def scratch_for(config: RunConfig, method: Method, parts: Sequence[Table]) -> Method | None:
    """The same graph model with random weights where a model starts from a file, on few rows or where asked for."""
    asked, few = config.training.compare, sum(map(len, parts)) < MOST_COMPARED
    if config.model.init is None or not (asked or (asked is None and few and config.training.baseline)):
        return None
    if not isinstance(method, GraphMethod) or method.objective not in OF_ROWS:
        return None
    return GraphMethod(**method.get_params() | {"init": None, "callback": None})


def _where_predicted(prediction: Prediction, whole: Prediction) -> Prediction:
    """A side's prediction with no value in the rows that the model of pairs cannot read, so that both have the same."""
    value = np.where((whole.status == OK)[:, None], prediction.value, np.nan)
    return replace(prediction, value=value, status=whole.status, reason=whole.reason)


def is_graph(method: Method) -> bool:
    """Whether a graph model is trained; only those have a forest as their baseline."""
    return all(isinstance(each, GraphMethod) for each in method.innermost)


def _run(name: str, method: Method, parts: list[Table], folder: Path | None) -> MethodRun:
    logger.info("training %s", method.title if method.members else name)
    started, ((train_part, valid, test), left_out) = time.perf_counter(), learnable_parts(method, parts)
    method.fit(train_part, valid if len(valid) else None, workdir=folder)
    seconds = time.perf_counter() - started
    method.notes = (*method.notes, *left_out) if left_out else method.notes
    return MethodRun(name, method, method.predict(test), seconds)
