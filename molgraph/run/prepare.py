"""Read, standardise and split the table of a training run, and make its method."""

from __future__ import annotations

import logging
import os
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import UnsupportedError, UnusedSettingError
from molgraph.base.options import fill, optional
from molgraph.base.paths import store_folder
from molgraph.base.recipe_keys import KEYWORDS
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.curves import curve_of
from molgraph.data.graph_cache import store_for
from molgraph.data.labels import check_targets
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splitter
from molgraph.data.standardise import no_molecule_note
from molgraph.data.standardise import standardise as standardise_table
from molgraph.data.table import Table, concatenate
from molgraph.data.target_json import notes_of
from molgraph.run.baselines import add_descriptors, is_graph, method_of
from molgraph.run.config import as_its_start, recipe_of, with_start
from molgraph.run.helpers import check_helpers, helped_parts, split_helpers
from molgraph.run.objective import learning_curves, learning_limits
from molgraph.run.rows import read_for_training, read_test
from molgraph.run.split import append_test, labelled_sizes, split_before_test, split_run, with_split
from molgraph.run.unlabelled import check_unlabelled, read_unlabelled
from molgraph.train.model import Model
from molgraph.train.modelfile import load_start
from molgraph.train.preparation import workers_for
from molgraph.train.training_molecules import molecule_hashes

SHOWN = 3  # reasons why rows are in no part
TABLES = ("test", "unlabelled")  # a path, which a recipe can name, or a frame
TRAIN_KEYWORDS = {name: each for name, each in KEYWORDS.items() if name not in TABLES}
logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class PreparedRun:
    """A run before anything learns.

    Args:
        config: the recipe, with the split that the table's size allows.
        method: what is to learn.
        table: the whole input, molecules as they were given.
        clean: the same, standardised.
        split: which rows are learned from, watched and tested.
        parts: the rows of ``clean`` in each part.
        own: the method's own parts, which may have more rows or targets to learn from.
        hashes: those of the molecules of ``clean``.
        before: those of the molecules that the model has learnt which the training starts from.
    """

    config: RunConfig
    method: Method
    table: Table
    clean: Table
    split: Split
    parts: tuple[Table, ...]
    own: tuple[Table, ...]
    hashes: np.ndarray
    before: np.ndarray


def asked_config(
    data: Any,
    test: Any,
    unlabelled: Any,
    params: Mapping[str, Any] | None,
    recipe: RunConfig | str | Path | None,
    options: Mapping[str, Any],
) -> RunConfig:
    """The recipe that the arguments of ``train`` ask for; its file to start from decides what they leave open."""
    test, unlabelled = (os.fspath(each) if isinstance(each, os.PathLike) else each for each in (test, unlabelled))
    given = fill(optional(TRAIN_KEYWORDS), options) | {"params": params}
    given |= {name: each for name, each in zip(TABLES, (test, unlabelled), strict=True) if isinstance(each, str)}
    given = {name: value for name, value in given.items() if value is not None}
    if isinstance(data, str) and data.startswith("dataset:"):  # its card may recommend a split
        given["path"] = data
    config = as_its_start(with_start(recipe_of(recipe, given)))
    if not get("objective", config.training.objective).labelled:
        raise UnsupportedError(
            f"{config.training.objective} learns no targets, and train does", hint="molgraph pretrain trains by it"
        )
    return config


def prepare(config: RunConfig, data: Any, *, test: Any = None, unlabelled: Any = None) -> PreparedRun:
    """Read the table that a recipe names, or ``data``, standardise and split it, and make the recipe's method."""
    test, unlabelled = (os.fspath(each) if isinstance(each, os.PathLike) else each for each in (test, unlabelled))
    method = method_of(config)  # what it refuses is refused before an hour of reading
    if curve_of(config.data.targets) is not None:
        config, method = learning_curves(config, method)
    if config.data.qualifiers == "learn":
        config, method = learning_limits(config, method)
    if unlabelled is not None or config.data.unlabelled is not None:
        check_unlabelled(config, method)
    if config.data.features and not all(part.reads_features for part in method.innermost):
        raise UnusedSettingError(f"{config.model.name} reads no columns of features", hint="leave them out (--feature)")
    helped = config.data.helpers is not None or get("objective", config.training.objective).helped
    if helped:
        check_helpers(config, method)
    source = data if data is not None else config.data.path
    table = full = read_for_training(source, split_helpers(config)[0] if helped else config, method)
    if helped:
        table = table.with_targets([table.targets[0].name])
    config = with_split(config, table)
    # the recipe stays as it was asked for, so that another model can take it
    method = add_descriptors(config, method, table)
    n, tested = len(table), config.data.test if test is None else test
    more = config.data.unlabelled if unlabelled is None else unlabelled
    if tested is not None:
        table = append_test(table, read_test(tested, config, table))
    clean = standardise_table(table, config.data.standardise)
    if note := no_molecule_note(clean, config.data.standardise):
        table = replace(table, notes=(*table.notes, note))
        logger.info(note)
    divided = split_run(clean, table, config) if tested is None else split_before_test(n, clean, table, config)
    if method.follows_split and "split" not in config.model.params:
        method.set_params(split=inner_splitter(divided))
    sizes = labelled_sizes(divided, clean)
    logger.info("split %s: %s", divided.splitter, ", ".join(f"{n:,} {part}" for part, n in sizes.items() if n))
    for reason, rows_left in Counter(out.reason for out in divided.left_out).most_common(SHOWN):
        logger.info("left out: %s x %s", f"{rows_left:,}", reason)
    if divided.leaks:
        logger.warning("%s, such as: %s", divided.leak_sentence, divided.leaks[0])
    hashes, before = molecule_hashes(clean), learnt_before(config)
    if known := known_words(hashes, divided, config.model.init):
        logger.warning(known)
        table = replace(table, notes=(*table.notes, known))
    parts = [clean.take(rows) for rows in (divided.train, divided.valid, divided.test)]
    for note in notes_of(check_targets(parts[0]).unlearned):  # now, once, and not after hours by each method
        logger.info(note)
    molecules = "molecule" in [e.kind for e in clean.entities]
    if config.training.store is not None and is_graph(method) and molecules:  # the whole table's serves each part
        threads = config.training.threads
        store_for(clean, cache=store_folder(config.training.store), workers=workers_for(clean, threads))
    own = helped_parts(parts, full, config, (divided.train, divided.valid)) if helped else parts
    if more is not None:
        own = [concatenate(parts[0], read_unlabelled(more, config, parts[0])), *parts[1:]]
    return PreparedRun(config, method, table, clean, divided, tuple(parts), tuple(own), hashes, before)


def learnt_before(config: RunConfig) -> np.ndarray:
    """Hashes of the molecules whose labels the model learnt that the training starts from; none without one."""
    start = None if config.model.init is None else load_start(config.model.init)
    known = None if start is None or not knows_values(start) else start.trained_on
    return np.zeros(0, np.uint64) if known is None else known


def knows_values(start: Model) -> bool:
    """Whether a model has learnt values of molecules, and not their structures alone."""
    objective = getattr(start.method, "objective", None)
    return bool(start.targets) or (objective is not None and bool(get("objective", objective).tasks))


def known_words(hashes: np.ndarray, divided: Split, init: str | None) -> str:
    """How many valid and test rows hold molecules of the model that the training starts from; empty where none."""
    start = None if init is None else load_start(init)
    if start is None or start.trained_on is None:
        return ""
    counts = {part: int(np.isin(hashes[getattr(divided, part)], start.trained_on).sum()) for part in ("valid", "test")}
    if not any(counts.values()):
        return ""
    rows = " and ".join(f"{n:,} of {len(getattr(divided, part)):,} {part} rows" for part, n in counts.items() if n)
    if knows_values(start):
        return (
            f"{rows} hold molecules whose values {init} learnt from: the scores flatter the model that starts from it"
        )
    return f"{rows} hold molecules that {init} was pretrained on, without their values"
