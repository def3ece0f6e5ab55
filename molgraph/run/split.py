"""Split the rows of a training run: by a splitter, a column, a file, or with a test table of its own."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.errors import DataError, MismatchError, MolgraphError
from molgraph.base.registry import get
from molgraph.base.run_config import RunConfig
from molgraph.data.levels import labelled
from molgraph.data.splits import Split, few_of_a_class, split_table
from molgraph.data.splits.make import usable_rows
from molgraph.data.splits.split import PARTS, LeftOut, row_contents, rows_hash
from molgraph.data.splits.structures import find_leaks
from molgraph.data.table import Table, concatenate
from molgraph.run.config import split_file, split_name
from molgraph.train.class_codes import coded

SHOWN = 3  # reasons why rows are in no part
logger = logging.getLogger("molgraph")


def with_split(config: RunConfig, table: Table) -> RunConfig:
    """The configuration, with a random split where it names none and the table has no molecules, thus no scaffolds."""
    if "splitter" in config.split.model_fields_set or "molecule" in [entity.kind for entity in table.entities]:
        return config
    return config.with_values("split", splitter="random")


def split_rows(clean: Table, raw: Table, config: RunConfig) -> Split:
    """The split that a configuration asks for: by a splitter's name, by the table's own column, or as a file says.

    Other people's splitters are asked of the ``raw`` rows, for a standardised molecule may have another scaffold; so
    is a file that was not made of standardised ones.

    Args:
        clean: standardised rows.
        raw: the same rows as they were read.
        config: of the run.
    """
    path, name, section = split_file(config), split_name(config), config.split
    params: dict[str, Any] = {} if path is None else {"path": path}
    as_raw = get("split", name).reproduces or (path is not None and _is_split_of_another(path, clean))
    table = raw if as_raw else clean
    split = split_table(table, name, fractions=section.fractions, seed=section.seed, quiet=True, **params)
    for note in few_of_a_class(clean, split):
        logger.info(note)
    return split


def split_before_test(n: int, clean: Table, raw: Table, config: RunConfig) -> Split:
    """Split the first n rows into train and valid; the others are the test part."""
    first, later = np.arange(n), np.arange(n, len(clean))
    train, valid, test = config.split.fractions  # of which the training part gets the test share
    config = config.with_values("split", fractions=(train + test, valid, 0.0))
    split = split_rows(clean.take(first), raw.take(first), config)
    if len(split.test):
        raise DataError(
            f"the split {split.splitter!r} has a test part of {len(split.test)} rows, beside the test table",
            hint="mark those rows train or valid, or give no test table",
        )
    rows, reasons, _ = usable_rows(clean.take(later), get("split", "column"))
    parts = {"train": split.train, "valid": split.valid, "test": rows + n}
    leaks = find_leaks(clean, np.sort(np.concatenate([split.train, split.valid])), parts["test"])
    left_out = (*split.left_out, *(LeftOut(row + n, reason) for row, reason in sorted(reasons.items())))
    settings = (split.splitter, split.seed, split.fractions, {**split.params, "test": "a table of its own"})
    return Split.of(clean, parts, *settings, leaks=leaks, left_out=left_out, groups=split.groups)


def append_test(table: Table, test: Table) -> Table:
    """The rows of both tables; those of ``test`` come last, with their classes coded as in ``table``."""
    test = coded(test.with_targets([t.name for t in table.targets]), table.targets)
    if [e.kind for e in test.entities] != [e.kind for e in table.entities]:
        raise MismatchError("the test table has other columns than the table", hint="give both the same columns")
    if test.feature_names != table.feature_names:
        raise MismatchError(
            f"the test table has the descriptors {list(test.feature_names)}, the table {list(table.feature_names)}",
            hint="give both the same columns",
        )
    return concatenate(table, test)


def log_split(split: Split, table: Table) -> None:
    """Log the rows of each part, why others are in no part, and molecules that are in two parts."""
    sizes = labelled_sizes(split, table)
    logger.info("split %s: %s", split.splitter, ", ".join(f"{n:,} {part}" for part, n in sizes.items() if n))
    for reason, n in Counter(row.reason for row in split.left_out).most_common(SHOWN):
        logger.info("left out: %s x %s", f"{n:,}", reason)
    if split.leaks:
        logger.warning("%s, such as: %s", split.leak_sentence, split.leaks[0])


def labelled_sizes(split: Split, table: Table) -> dict[str, int]:
    """The rows of each part that have a label, those of the parts that have none, and those in no part."""
    has_label = labelled(table)
    sizes = {part: int(has_label[getattr(split, part)].sum()) for part in PARTS}
    without = sum(len(getattr(split, part)) for part in PARTS) - sum(sizes.values())
    return sizes | {"without a label": without, "left out": len(split.left_out)}


def limit_counts(table: Table, parts: Mapping[str, np.ndarray]) -> dict[str, int]:
    """Labels of each part that are limits, such as >8; empty where there are none."""
    return {} if table.limits is None else {part: int(table.limited[rows].sum()) for part, rows in parts.items()}


def _is_split_of_another(path: Path, table: Table) -> bool:
    """Whether a file is a molgraph split that was made for other molecules than these."""
    try:
        return Split.load(path).content != rows_hash(row_contents(table))
    except MolgraphError:
        return False  # a list of row numbers, or nothing that can be read: who reads it says so
