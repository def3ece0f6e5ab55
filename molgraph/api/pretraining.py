"""Pretrain an encoder on molecules without targets, or a whole network on many tasks."""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.api.training import run_folder
from molgraph.base.contracts import Trainable
from molgraph.base.errors import EmptyError, MissingOptionError, UnsupportedError, UnusedSettingError
from molgraph.base.options import takes
from molgraph.base.recipe_keys import CORPUS_SPLIT, PRETRAIN_KEYWORDS, PRETRAIN_OBJECTIVE
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.read import read_table
from molgraph.data.splits import Split, split_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.generate.network_generator import NetworkGenerator
from molgraph.run.baselines import method_of
from molgraph.run.config import check_config, corpus_keywords, recipe_of, with_start
from molgraph.run.rows import check_reads, entity_columns, read_for_training
from molgraph.train.card import ModelCard
from molgraph.train.make_method import method_class
from molgraph.train.method import GraphMethod
from molgraph.train.model import Model
from molgraph.train.training_molecules import distinct, molecule_hashes

logger = logging.getLogger("molgraph")
EARLY = "early.mgm"  # in the working folder


@takes(PRETRAIN_KEYWORDS)
def pretrain(
    data: Any = None,
    *,
    params: Mapping[str, Any] | None = None,
    recipe: RunConfig | str | Path | None = None,
    workdir: str | Path | None = None,
    **options: Any,
) -> Model:
    """Pretrain an encoder on molecules without targets, or by ``maml`` encoder and head on targets that are its tasks.

    A twentieth of the rows, drawn at random, picks the weights and stops the training early. ``train(...,
    init=FILE)`` starts a model from the encoder, ``embed`` gives its vectors.

    Args:
        data: a path (csv, csv.gz, tsv, parquet, sdf, smi), a frame, a list of SMILES, a table, or ``dataset:zinc250k``.
        params: the encoder's own parameters, such as ``{"depth": 4}``, and the objective's:
            ``{"objective.rate": 0.25}``.
        **options
        recipe: a recipe or its TOML file; keywords given beside it override it.
        workdir: a folder for what a resume needs; the same call goes on there after a kill. The encoder as it was
            after the best epoch so far is ``early.mgm`` there, and can be used at once.

    Returns:
        The encoder as a model without targets; ``save`` it. ``model.method.curves`` has the losses by epoch.

    Raises:
        DataError: the table cannot be used as asked. UsageError: a name or value that is not known.

    Example:
        >>> import molgraph
        >>> model = molgraph.pretrain("builtin:chembl2321810", params={"d_hidden": 16}, epochs=2)
        >>> losses = model.method.curves["train_loss"]
        >>> bool(losses.iloc[1] < losses.iloc[0]), molgraph.embed(model, ["CCO"]).value.shape
        (True, (1, 16))
    """
    config = pretraining_recipe(recipe, corpus_keywords(PRETRAIN_KEYWORDS, options, data, params))
    if not issubclass(method_class(config.model.name), GraphMethod):
        hint = "choose a graph network, as by -m gin: molgraph models --search graph"
        raise UnsupportedError(f"{config.model.name} has no encoder to pretrain", hint=hint)
    method = method_of(config)
    assert isinstance(method, GraphMethod), method
    tasks = get("objective", method.objective).tasks
    head = tasks and get("objective", method.objective).trains_head
    what = f"an encoder {'and head ' * head}pretrained by {method.objective}"
    model, table = learn_corpus(data, config, method, what, workdir)
    model.trained_on = distinct(molecule_hashes(table))  # a model that starts here says which of its own rows these are
    return model


def learn_corpus(
    data: Any, config: RunConfig, learner: Trainable, what: str, workdir: str | Path | None
) -> tuple[Model, Table]:
    """Fit a method or a generator on a table whose targets are not read, or are the tasks of its objective.

    Returns:
        The model without targets, whose card has ``what`` it is in words, and the standardised rows.
    """
    check_config(config)
    table = _read(data if data is not None else config.data.path, config, learner)
    clean = standardise(table, config.data.standardise)
    divided = split_table(
        clean, config.split.splitter, fractions=config.split.fractions, seed=config.split.seed, quiet=True
    )
    logger.info("split %s: %s", divided.splitter, ", ".join(f"{n:,} {part}" for part, n in divided.sizes.items() if n))
    left = left_out_notes(divided)
    for note in left:
        logger.info(note)

    def made(*notes: str) -> Model:
        card = ModelCard(
            name=learner.model_name,
            what=what,
            n_train=learner.n_learned[0] if learner.n_learned else len(divided.train),
            n_valid=learner.n_learned[1] if learner.n_learned else len(divided.valid),
            split=divided.splitter,
            split_hash=divided.hash,
            recipe=json.loads(config.to_json()),
            notes=(*table.notes, *left, *learner.notes, *notes),
        )
        return Model(learner, targets=(), standardiser=config.data.standardise, card=card)

    if isinstance(learner, GraphMethod) and workdir is not None:
        learner.early = partial(write_early, made, learner, Path(workdir) / EARLY)
    learner.fit(
        clean.take(np.concatenate([divided.train, divided.test])),
        clean.take(divided.valid) if len(divided.valid) else None,
        workdir=run_folder(workdir, config, divided),
    )
    return made(), clean


def write_early(made: Callable[[str], Model], method: GraphMethod, path: Path) -> None:
    """Write the encoder as it is after an epoch, so that it can be used while the training goes on."""
    if not path.exists():
        logger.info("the encoder so far, which can be used already: %s", path)
    made(f"written while its training went on, after epoch {method.best_epoch}").save(path)


def left_out_notes(split: Split) -> tuple[str, ...]:
    """How many rows are in no part, and why, the most common reason first; what tells of one row alone is cut off."""
    counts = Counter(each.reason.split(":")[0] for each in split.left_out)
    return tuple(f"rows that are left out: {n:,} ({why})" for why, n in counts.most_common())


def pretraining_recipe(recipe: RunConfig | str | Path | None, given: Mapping[str, Any]) -> RunConfig:
    """The recipe of a pretraining; what it does not say is as pretraining has it."""
    told = recipe_of(recipe, {})
    own = {} if "objective" in told.training.model_fields_set else {"objective": PRETRAIN_OBJECTIVE}
    config = with_start(recipe_of(recipe, {**corpus_split(told), **own, **given}))
    name = config.training.objective
    if get("objective", name).labelled:
        able = ", ".join(each for each in names("objective") if not get("objective", each).labelled)
        raise UnsupportedError(f"{name} learns targets", hint=f"for pretraining: {able}")
    if "targets" in given and not get("objective", name).tasks:
        hint = "leave them out, or take each for a task: --objective maml"
        raise UnusedSettingError(f"{name} reads no targets", hint=hint)
    if config.training.ensemble > 1:
        raise UnsupportedError("one encoder is pretrained at a time", hint="leave ensemble out")
    if config.data.conformers is not None:
        words = "pretraining makes no conformers: it reads a file of atoms in space"
        raise UnsupportedError(words, hint="leave conformers out, and give an SD, xyz or npz file")
    return config


def corpus_split(told: RunConfig) -> dict[str, Any]:
    """The split of a corpus without targets, where a recipe names none itself."""
    return {} if {"splitter", "fractions"} & told.split.model_fields_set else dict(CORPUS_SPLIT)


def _read(data: Any, config: RunConfig, learner: Trainable) -> Table:
    if get("objective", config.training.objective).tasks:
        return read_for_training(data, config, learner)
    if data is None:
        hint = "name a file, or put path = ... into the recipe's [data]"
        raise MissingOptionError("no data to learn from", hint=hint)
    asked = config.data
    beside = learner.learned_columns or None if isinstance(learner, NetworkGenerator) else None
    table = read_table(data, **entity_columns(config, data), targets=beside, id=asked.id, on_error=asked.on_error)
    if not len(table):
        raise EmptyError("the table has no rows", hint="give a file of molecules")
    table = table if asked.inputs is None else table.with_entities(asked.inputs)
    table = learner.as_read(table) if isinstance(learner, NetworkGenerator) else table
    check_reads(learner, table)
    for note in table.notes:
        logger.info(note)
    return table
