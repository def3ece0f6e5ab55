"""Make the method that a run's configuration names, with the training options that it takes."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Collection, Mapping
from typing import Any

from molgraph.base.contracts import Method, Trainable
from molgraph.base.errors import ConflictError, UnsupportedError, UnusedSettingError
from molgraph.base.parts import split_model
from molgraph.base.recipe_keys import DEFAULTS, GRADIENT_DESCENT, DataSection
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.train.inputs import encoder_names
from molgraph.train.make_method import make_method, method_class
from molgraph.train.method import GraphMethod
from molgraph.trust.conformers import MadeConformers
from molgraph.trust.ensemble import Ensemble
from molgraph.trust.wrapper import Wrapper

OF_THE_RUN = {"ensemble", "baseline", "compare"}  # training keys that are no parameter of any method
logger = logging.getLogger("molgraph")


def method_of(config: RunConfig, **params: Any) -> Method:
    """The configuration's method with the training options that it takes; a warning names those that it does not use.

    Args:
        config: of the run.
        params: hyper-parameters of the method inside of all wrappers, where it has them.
    """
    training, model = config.training, config.model
    name, arguments = model.name, model.params
    if training.ensemble > 1:
        name, arguments = Ensemble.name, {"method": name, "n": training.ensemble, "params": arguments}
    name, arguments = with_conformers(config, name, arguments)
    core = core_class(name, arguments)
    parameters = {*core.param_names()}
    if model.init is not None and "init" not in parameters:
        raise UnsupportedError(
            f"{model.name} has no encoder to start from {model.init}",
            hint="leave the model out: it is the file's; or leave out --init (in Python init=)",
        )
    if training.callback and "callback" not in parameters:
        words = f"{model.name} has no encoder that --callback {training.callback} could tune"
        raise UnsupportedError(words, hint="leave --callback out, or choose a graph network, such as -m dmpnn")
    if model.descriptors is not None and "descriptors" not in parameters:
        able = ", ".join(other for other in names("method") if "descriptors" in get("method", other).param_names())
        words = f"{model.name} reads no vectors of an encoder"
        raise UnsupportedError(words, hint=f"leave out --descriptors, or take one of {able}")
    options = training.model_dump(exclude=OF_THE_RUN)
    if options["epochs"] is None:  # as many as the method has by itself
        del options["epochs"]
    options |= {key: value for key in ("descriptors", "init") if (value := getattr(model, key)) is not None}
    options |= params
    unused = {*options}
    name, arguments = _with_options(name, arguments, options, unused)
    _check_idle(config, parameters - {*model.params}, {*options} - unused)
    method = make_method(name, **arguments)
    for part in method.with_members:
        if isinstance(part, GraphMethod):
            part.check()
            part.check_network()
    return method


def known_options(learner: Trainable | type[Trainable]) -> set[str]:
    """The training options that have the same meaning for a learner as in a run's configuration."""
    return set(learner.param_names()) - set(() if learner.gradient_descent else GRADIENT_DESCENT)


def core_class(name: str, params: Mapping[str, Any]) -> type[Method]:
    """The class of the method inside of all wrappers."""
    name, params = split_model(name, params)
    cls = method_class(name)
    return core_class(*wrapped(cls, params)) if issubclass(cls, Wrapper) else cls


def is_graph(method: Method) -> bool:
    """Whether a graph model is trained; only those have a forest as their baseline."""
    return all(isinstance(part, GraphMethod) for part in method.innermost)


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
    arguments = {**known, **params}
    if issubclass(cls, Wrapper):
        rest = {key: value for key, value in options.items() if key not in known}
        arguments["method"], arguments["params"] = _with_options(*wrapped(cls, arguments), rest, unused)
    return name, arguments


def _check_idle(config: RunConfig, parameters: Collection[str], used: Collection[str]) -> None:
    """Warn of training options that a method does not use.

    Args:
        config: of the run.
        parameters: the method's hyper-parameters, those in the configuration's ``params`` aside.
        used: the training options that have the same meaning for it.
    """
    name, idle = config.model.name, config.training.model_dump(exclude={*OF_THE_RUN, *used})
    changed = [key for key in sorted(idle) if idle[key] != getattr(DEFAULTS, key)]
    for key in sorted({*parameters} & idle.keys() & config.training.model_fields_set):
        value = idle[key]
        words = f"{name} has a {key} of its own, which is not the {key} of gradient descent"
        hint = f"set its own one with -s params.{key}={value} (in Python: params={{{key!r}: {value}}})"
        if key in changed:
            raise UnusedSettingError(words, hint=hint)
        logger.warning("%s: %s=%s is not used; %s", words, key, value, hint)
    if unused := [key for key in changed if key not in parameters]:
        logger.warning(f"{name} has no {' and no '.join(unused)}: not used")


def with_conformers(config: RunConfig, name: str, params: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """A model's name and parameters, with ``conformers`` around its encoder, or around the ensemble of it.

    Raises:
        ConflictError: positions are given too, or the model makes its conformers by itself.
        UnusedSettingError: a relaxation without conformers.
        UnsupportedError: a model that reads no atoms in space.
    """
    data = config.data
    if data.conformers is None:
        if data.relax != DataSection().relax:
            words = f"relax={data.relax} is of conformers, and none are made"
            raise UnusedSettingError(words, hint="add --conformers 1 (in Python conformers=1)")
        return name, params
    if data.geometry:
        words = f"positions are read from {data.geometry!r}, and --conformers {data.conformers} would make others"
        raise ConflictError(words, hint="leave one of them out")
    return _around(name, params, {"conformers": data.conformers, "relax": data.relax})


def wrapped(cls: type[Wrapper], params: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """The name and the parameters of what a wrapper of these parameters is around."""
    default = inspect.signature(cls).parameters["method"].default
    return str(params.get("method", default)), params.get("params") or {}


def _around(name: str, params: Mapping[str, Any], settings: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    name, arguments = split_model(name, params)
    cls: type[Method] = method_class(name)
    if cls is MadeConformers:
        raise ConflictError(f"{name} makes conformers by itself", hint="leave --conformers out")
    if issubclass(cls, Wrapper) and cls is not Ensemble:
        method, inner = _around(*wrapped(cls, arguments), settings)
        return name, {**arguments, "method": method, "params": inner}
    _check_reads(name, arguments)
    return MadeConformers.name, {"method": name, "params": arguments, **settings}


def _check_reads(name: str, params: Mapping[str, Any]) -> None:
    cls: type[Method] = method_class(name)
    if issubclass(cls, Wrapper):
        return _check_reads(*split_model(*wrapped(cls, params)))
    encoders = encoder_names(name) if name not in names("method") else (str(params.get("encoder", "")),)
    reads = {encoder: get("encoder", encoder).reads for encoder in names("encoder")}
    if any("geometry" not in reads.get(encoder, ()) for encoder in encoders):
        able = ", ".join(encoder for encoder, kinds in reads.items() if "geometry" in kinds)
        words = f"{name} reads no atoms in space, so it has no use for conformers"
        raise UnsupportedError(words, hint=f"leave --conformers out, or take {able}")
