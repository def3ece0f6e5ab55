"""Prepare a training run: decide its objective, rows, descriptors, split and parts, in the order of ``prepare``."""

from __future__ import annotations

import logging
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import UnusedSettingError
from molgraph.base.paths import store_folder
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.graph_cache import store_for
from molgraph.data.labels import check_targets
from molgraph.data.splits import Split
from molgraph.data.splits.inner import inner_splitter
from molgraph.data.standardise import no_molecule_note, standardise
from molgraph.data.table import Table, concatenate
from molgraph.data.target_json import notes_of
from molgraph.run.descriptors import add_descriptors
from molgraph.run.helpers import check_helpers, helped_parts, split_helpers
from molgraph.run.method import is_graph, method_of
from molgraph.run.objective import with_objective
from molgraph.run.rows import read_rows, read_test
from molgraph.run.split import append_test, log_split, split_before_test, split_rows, with_split
from molgraph.run.start import known_note, learnt_before
from molgraph.run.unlabelled import check_unlabelled, read_unlabelled
from molgraph.train.preparation import workers_for
from molgraph.train.training_molecules import molecule_hashes

logger = logging.getLogger("molgraph")


@dataclass(frozen=True)
class PreparedRun:
    """A run before anything learns.

    Args:
        config: of the run, with the objective and the split that the table allows.
        method: what is to learn.
        table: the whole input, molecules as they were given.
        clean: the same, standardised.
        split: which rows are learned from, watched and tested.
        parts: the rows of ``clean`` in each part.
        method_parts: the method's, which may have more rows or targets to learn from.
        hashes: those of the molecules of ``clean``.
        before: those of the molecules that the model has learnt which the training starts from.
    """

    config: RunConfig
    method: Method
    table: Table
    clean: Table
    split: Split
    parts: tuple[Table, ...]
    method_parts: tuple[Table, ...]
    hashes: np.ndarray
    before: np.ndarray

    @property
    def one_table(self) -> bool:
        """Whether the method learns from the rows and targets of the table alone."""
        return all(a is b for a, b in zip(self.method_parts, self.parts, strict=True))


def prepare(config: RunConfig, data: Any, *, test: Any = None, unlabelled: Any = None) -> PreparedRun:
    """Read the table that a configuration names, or ``data``, standardise and split it, and make the method.

    Args:
        config: of the run.
        data, test, unlabelled: tables in the place of those that the configuration names.
    """
    data, test, unlabelled = (
        source if source is not None else path
        for source, path in ((data, config.data.path), (test, config.data.test), (unlabelled, config.data.unlabelled))
    )
    config, method = with_objective(config, method_of(config))  # what is refused is so before an hour of reading
    if unlabelled is not None:
        check_unlabelled(method)
    if config.data.features and not all(part.reads_features for part in method.innermost):
        raise UnusedSettingError(f"{config.model.name} reads no columns of features", hint="leave them out (--feature)")
    helped = config.data.helpers is not None or get("objective", config.training.objective).helped
    if helped:
        check_helpers(config, method)

    table = full = read_rows(data, split_helpers(config)[0] if helped else config, method)
    if helped:
        table = table.with_targets([table.targets[0].name])
    config = with_split(config, table)
    # the configuration stays as it was asked for, so that another model can take it
    method = add_descriptors(config, method, table)
    n = len(table)
    if test is not None:
        table = append_test(table, read_test(test, config, table))
    clean = standardise(table, config.data.standardise)
    if note := no_molecule_note(clean, config.data.standardise):
        table = replace(table, notes=(*table.notes, note))
        logger.info(note)

    split = split_rows(clean, table, config) if test is None else split_before_test(n, clean, table, config)
    if method.follows_split and "split" not in config.model.params:
        method.set_params(split=inner_splitter(split))
    log_split(split, clean)
    hashes = molecule_hashes(clean)
    if note := known_note(config, hashes, split):
        logger.warning(note)
        table = replace(table, notes=(*table.notes, note))
    parts = tuple(clean.take(rows) for rows in (split.train, split.valid, split.test))
    for note in notes_of(check_targets(parts[0]).unlearned):  # now, once, and not after hours by each method
        logger.info(note)
    if config.training.store is not None and is_graph(method) and "molecule" in [e.kind for e in clean.entities]:
        workers = workers_for(clean, config.training.threads)
        store_for(clean, cache=store_folder(config.training.store), workers=workers)  # which serves each part

    method_parts = tuple(helped_parts(parts, full, config, (split.train, split.valid))) if helped else parts
    if unlabelled is not None:
        method_parts = (concatenate(parts[0], read_unlabelled(unlabelled, config, parts[0])), *parts[1:])
    return PreparedRun(config, method, table, clean, split, parts, method_parts, hashes, learnt_before(config))
