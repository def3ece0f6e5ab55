"""Read a table without labels for semi-supervised training."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import MismatchError, UnsupportedError
from molgraph.base.printable import count
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.read import read_table
from molgraph.data.standardise import standardise
from molgraph.data.table import Table
from molgraph.run.rows import chosen_columns, entity_columns
from molgraph.train.method import GraphMethod

logger = logging.getLogger("molgraph")


def check_unlabelled(method: Method) -> None:
    """Refuse rows without labels where what learns does not read any, before anything is read."""
    for part in method.innermost:
        learner = part.objective if isinstance(part, GraphMethod) else part.model_name
        if not isinstance(part, GraphMethod) or not get("objective", learner).semi_supervised:
            able = [name for name in names("objective") if get("objective", name).semi_supervised]
            hint = f"choose a graph model and an objective that does: --objective {' or '.join(able)}"
            raise UnsupportedError(f"{learner} learns nothing from rows without labels", hint=hint)


def read_unlabelled(data: Any, config: RunConfig, train: Table) -> Table:
    """The rows of a source as rows of the training part whose labels are missing."""
    section = config.data
    columns = entity_columns(config, data)
    table = read_table(data, **columns, features=section.features, on_error=section.on_error)
    table = chosen_columns(table, config)
    check_same_kinds(table, train, "the rows without labels hold")
    y = None if train.y is None else np.full((len(table), train.y.shape[1]), np.nan)
    logger.info(f"{count(len(table), 'row')} without labels beside {count(len(train), 'training row')}")
    return replace(standardise(table, section.standardise), targets=train.targets, y=y, packed={}, weights=None)


def check_same_kinds(rows: Table, table: Table, words: str) -> None:
    """Refuse further rows of a training whose entities are of other kinds than the table's."""
    kinds, expected = ([entity.kind for entity in part.entities] for part in (rows, table))
    if kinds != expected:
        words = f"{words} {' and '.join(kinds)}, the table {' and '.join(expected)}"
        raise MismatchError(words, hint="name columns that both have, as in --smiles COLUMN")
