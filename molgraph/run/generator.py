"""Make the generator that a run's configuration names, with the training options that it takes."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from molgraph.base.contracts import Generator
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.parameters import check_params
from molgraph.base.recipe_keys import DEFAULTS, GENERATOR_KEYWORDS
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.run.config import Recipe, config_of
from molgraph.run.corpus import corpus_split
from molgraph.run.method import known_options
from molgraph.run.start import start_of

logger = logging.getLogger("molgraph")


def generator_config(recipe: Recipe, values: Mapping[str, Any]) -> RunConfig:
    """The configuration of a generator; keys that it does not name are as generators have them."""
    base = config_of(recipe, {})
    model = {} if "name" in base.model.model_fields_set else {"model": GENERATOR_KEYWORDS["model"].default}
    config = config_of(recipe, {**corpus_split(base), **model, **values})
    if config.training.ensemble > 1:
        raise UnsupportedError("one generator is trained at a time", hint="leave ensemble out")
    return config


def generator_of(config: RunConfig) -> Generator:
    """The configuration's generator with the training options that it takes; a warning names the others."""
    model, training = config.model, config.training
    name = model.name
    cls = get("generator", name)
    options = training.model_dump(include=known_options(cls))
    changed = {key for key in training.model_fields_set if getattr(training, key) != getattr(DEFAULTS, key)}
    if idle := sorted(changed - {*options, "seed"}):
        logger.warning("%s has no %s: not used", name, " and no ".join(idle))
    params = options | model.params
    if (start := start_of(config)) is not None:
        if "init" not in cls.param_names() or not isinstance(start.method, cls):
            words = f"{name} cannot start from {model.init}, which holds a {start.method.model_name}"
            raise UnsupportedError(words, hint="a language model can from a language model: -m language --init prior")
        shape = {key: start.method.get_params()[key] for key in cls.shape}
        if other := sorted(key for key, value in model.params.items() if key in shape and value != shape[key]):
            words = f"{model.init} decides {' and '.join(other)} of a training that starts from it"
            raise ConflictError(words, hint=f"leave {' and '.join(other)} out")
        params |= {"init": model.init}
    check_params(cls, params, owner=name)
    generator: Generator = cls(**params)
    getattr(generator, "check", generator.check_params)()
    return generator
