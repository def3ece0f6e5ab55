"""Learn from a corpus: which split, rows and objective a pretraining or a generator has, and its model."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Trainable
from molgraph.base.errors import EmptyError, UnsupportedError, UnusedSettingError
from molgraph.base.recipe_keys import CORPUS_SPLIT, PRETRAIN_OBJECTIVE
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.network_generator import NetworkGenerator
from molgraph.run.config import Recipe, check_config, config_of
from molgraph.run.fit import run_folder
from molgraph.run.method import method_of
from molgraph.run.rows import check_reads, check_source, chosen_columns, entity_columns, read_rows
from molgraph.run.start import with_model_of_start
from molgraph.train.card import ModelCard
from molgraph.train.make_method import method_class
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model

EARLY = "early.mgm"  # in the working folder
logger = logging.getLogger("molgraph")


def pretraining_config(recipe: Recipe, values: Mapping[str, Any]) -> RunConfig:
    """The configuration of a pretraining; what it does not say is as pretraining has it."""
    base = config_of(recipe, {})
    objective = {} if "objective" in base.training.model_fields_set else {"objective": PRETRAIN_OBJECTIVE}
    config = with_model_of_start(config_of(recipe, {**corpus_split(base), **objective, **values}))
    name = config.training.objective
    if get("objective", name).labelled:
        able = ", ".join(other for other in names("objective") if not get("objective", other).labelled)
        raise UnsupportedError(f"{name} learns targets", hint=f"for pretraining: {able}")
    if "targets" in values and not get("objective", name).tasks:
        hint = "leave them out, or take each for a task: --objective maml"
        raise UnusedSettingError(f"{name} reads no targets", hint=hint)
    if config.training.ensemble > 1:
        raise UnsupportedError("one encoder is pretrained at a time", hint="leave ensemble out")
    if config.data.conformers is not None:
        words = "pretraining makes no conformers: it reads a file of atoms in space"
        raise UnsupportedError(words, hint="leave conformers out, and give an SD, xyz or npz file")
    return config


def pretraining_method(config: RunConfig) -> GraphMethod:
    """The graph network that a pretraining trains.

    Raises:
        UnsupportedError: the configuration's model has no encoder.
    """
    if not issubclass(method_class(config.model.name), GraphMethod):
        hint = "choose a graph network, as by -m gin: molgraph models --search graph"
        raise UnsupportedError(f"{config.model.name} has no encoder to pretrain", hint=hint)
    method = method_of(config)
    assert isinstance(method, GraphMethod), method
    return method


def corpus_split(config: RunConfig) -> dict[str, Any]:
    """The split of a corpus without targets, where a configuration names none itself."""
    return {} if {"splitter", "fractions"} & config.split.model_fields_set else dict(CORPUS_SPLIT)


def learn_corpus(
    data: Any, config: RunConfig, learner: Trainable, what: str, workdir: str | Path | None
) -> tuple[Model, Table]:
    """Fit a method or a generator on a table whose targets are not read, or are the tasks of its objective.

    Returns:
        The model without targets, whose card has ``what`` it is in words, and the standardised rows.
    """
    check_config(config)
    table = _read(data if data is not None else config.data.path, config, learner)
    clean, section = standardise(table, config.data.standardise), config.split
    split = split_table(clean, section.splitter, fractions=section.fractions, seed=section.seed, quiet=True)
    logger.info("split %s: %s", split.splitter, ", ".join(f"{n:,} {part}" for part, n in split.sizes.items() if n))
    left_out = _left_out_notes(split)
    for note in left_out:
        logger.info(note)

    def model_of(*notes: str) -> Model:
        card = ModelCard(
            name=learner.model_name,
            what=what,
            n_train=learner.n_learned[0] if learner.n_learned else len(split.train),
            n_valid=learner.n_learned[1] if learner.n_learned else len(split.valid),
            split=split.splitter,
            split_hash=split.hash,
            recipe=json.loads(config.to_json()),
            notes=(*table.notes, *left_out, *learner.notes, *notes),
        )
        return Model(learner, targets=(), standardiser=config.data.standardise, card=card)

    if isinstance(learner, GraphMethod) and workdir is not None:
        learner.early = partial(_write_early, model_of, learner, Path(workdir) / EARLY)
    learner.fit(
        clean.take(np.concatenate([split.train, split.test])),
        clean.take(split.valid) if len(split.valid) else None,
        workdir=run_folder(workdir, config, split),
    )
    return model_of(), clean


def _write_early(model_of: Callable[[str], Model], method: GraphMethod, path: Path) -> None:
    """Write the encoder as it is after an epoch, so that it can be used while the training goes on."""
    if not path.exists():
        logger.info("the encoder so far, which can be used already: %s", path)
    model_of(f"written while its training went on, after epoch {method.best_epoch}").save(path)


def _left_out_notes(split: Split) -> tuple[str, ...]:
    """How many rows are in no part, and why, the most common reason first; what tells of one row alone is cut off."""
    counts = Counter(row.reason.split(":")[0] for row in split.left_out)
    return tuple(f"rows that are left out: {n:,} ({reason})" for reason, n in counts.most_common())


def _read(data: Any, config: RunConfig, learner: Trainable) -> Table:
    if get("objective", config.training.objective).tasks:
        return read_rows(data, config, learner)
    check_source(data)
    section = config.data
    targets = learner.learned_columns or None if isinstance(learner, NetworkGenerator) else None
    columns = entity_columns(config, data)
    table = read_table(data, **columns, targets=targets, id=section.id, on_error=section.on_error)
    if not len(table):
        raise EmptyError("the table has no rows", hint="give a file of molecules")
    table = chosen_columns(table, config)
    table = learner.as_read(table) if isinstance(learner, NetworkGenerator) else table
    check_reads(learner, table)
    for note in table.notes:
        logger.info(note)
    return table
