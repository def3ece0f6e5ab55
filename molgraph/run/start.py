"""Read what the file that a training starts from (``--init``) decides: the model, standardiser and known molecules."""

from __future__ import annotations

from typing import Any

import numpy as np

from molgraph.base.contracts import Generator
from molgraph.base.errors import ConflictError, UnsupportedError
from molgraph.base.recipe_keys import DEFAULTS
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.splits import Split
from molgraph.train.callback import make_callbacks
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.modelfile import load_start
from molgraph.train.pretraining import HEAD

PROBED = "lp-ft(share=0.05, probe=auto, mix=0.5)"  #: how a model is fine-tuned from an encoder without values
PRETRAIN = "pretrain one: molgraph pretrain library.smi -m gin -o encoder.mgm"


def start_of(config: RunConfig) -> Model | None:
    """The model that the training starts from; None with random weights."""
    return None if config.model.init is None else load_start(config.model.init)


def with_model_of_start(config: RunConfig) -> RunConfig:
    """The configuration, with the model of the file that its encoder starts from where it names none itself.

    Raises:
        UnsupportedError: the file's model has no encoder.
    """
    start = None if "name" in config.model.model_fields_set else start_of(config)
    if start is None:
        return config
    if isinstance(start.method, Generator) or "init" not in start.method.param_names():
        hint = PRETRAIN
        if start.kind in names("method"):
            hint += f"; or train it anew: molgraph train assay.csv -t Y -m {start.kind}"
        words = f"{config.model.init} holds a {start.kind}, which has no encoder to start from"
        raise UnsupportedError(words, hint=hint)
    return config.with_values("model", name=start.method.model_name)


def as_its_start(config: RunConfig) -> RunConfig:
    """The configuration with what its start decides where it says nothing of it: lp-ft, standardiser and head.

    Of an encoder that learnt no values the head is linear, and begins as a ridge regression; otherwise it has the
    size of the file's, whose weights it goes on with where the targets are the file's too.

    Raises:
        ConflictError: another standardiser than the file's.
    """
    start, data, training = start_of(config), config.data, config.training
    if start is None:
        return config
    if "standardise" in data.model_fields_set and data.standardise != start.standardiser:
        words = f"the molecules of {config.model.init} were standardised by {start.standardiser!r}, "
        hint = f"leave --standardise out, or set it to {start.standardiser}"
        raise ConflictError(f"{words}not by {data.standardise!r}", hint=hint)
    config = config.with_values("data", standardise=start.standardiser)
    if not isinstance(start.method, GraphMethod):
        return config  # refused where the model is made
    if training.objective != DEFAULTS.objective:
        return config
    head = dict[str, Any]()
    if "callback" not in training.model_fields_set:
        probed, adapts = not _knows_values(start), get("objective", start.method.objective).adapts_by
        config = config.with_values("training", callback=adapts or (PROBED if probed else "lp-ft"))
        head = {"head_layers": 1} if probed else {name: start.method.get_params()[name] for name in HEAD}
    if any(callback.solves_head for callback in make_callbacks(config.training.callback)):
        head = {"head_layers": 1}
        if "epochs" not in training.model_fields_set:
            config = config.with_values("training", epochs=1)
    named = {"head", "head_layers"} if "head" not in head else {*HEAD}
    if head and not named & {*config.model.params}:
        config = config.with_values("model", params={**config.model.params, **head})
    return config


def learnt_before(config: RunConfig) -> np.ndarray:
    """Hashes of the molecules whose labels the model learnt that the training starts from; none without one."""
    start = start_of(config)
    known = None if start is None or not _knows_values(start) else start.trained_on
    return np.zeros(0, np.uint64) if known is None else known


def known_note(config: RunConfig, hashes: np.ndarray, split: Split) -> str:
    """How many valid and test rows hold molecules of the model that the training starts from; empty where none."""
    start = start_of(config)
    if start is None or start.trained_on is None:
        return ""
    counts = {part: int(np.isin(hashes[getattr(split, part)], start.trained_on).sum()) for part in ("valid", "test")}
    if not any(counts.values()):
        return ""
    rows = " and ".join(f"{n:,} of {len(getattr(split, part)):,} {part} rows" for part, n in counts.items() if n)
    if _knows_values(start):
        words = f"hold molecules whose values {config.model.init} learnt from"
        return f"{rows} {words}: the scores flatter the model that starts from it"
    return f"{rows} hold molecules that {config.model.init} was pretrained on, without their values"


def _knows_values(start: Model) -> bool:
    """Whether a model has learnt values of molecules, and not their structures alone."""
    objective = getattr(start.method, "objective", None)
    return bool(start.targets) or (objective is not None and bool(get("objective", objective).tasks))
