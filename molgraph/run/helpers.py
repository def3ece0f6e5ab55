"""Read the helper targets of a training run: further columns of its table, and columns of other tables."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from molgraph.base.contracts import Method
from molgraph.base.errors import ConflictError, MissingColumnError, MissingOptionError, UnsupportedError
from molgraph.base.printable import count
from molgraph.base.registry import get, names
from molgraph.base.run_config import RunConfig
from molgraph.data.standardise import standardise
from molgraph.data.table import Table, concatenate
from molgraph.run.rows import read_columns
from molgraph.run.unlabelled import check_same_kinds
from molgraph.train.method import GraphMethod

logger = logging.getLogger("molgraph")


def check_helpers(config: RunConfig, method: Method) -> None:
    """Refuse helpers where what learns has no use for them, or more than one target is the main one."""
    learner = method.objective if isinstance(method, GraphMethod) else method.title
    if not isinstance(method, GraphMethod) or not get("objective", method.objective).helped:
        able = [name for name in names("objective") if get("objective", name).helped]
        hint = f"choose one graph model and an objective that does: --objective {' or '.join(able)}"
        raise UnsupportedError(f"{learner} learns no helper targets", hint=hint)
    targets = config.data.targets or ()
    if len(targets) != 1:
        words = f"helpers are for one main target, and {len(targets)} are named"
        raise MissingOptionError(words, hint="name it: -t MAIN --helper A --helper B")
    if both := {*targets} & {*(config.data.helpers or ())}:
        words = f"{both.pop()} is the main target and a helper"
        raise ConflictError(words, hint="leave that --helper out (in Python helpers=[...])")


def split_helpers(config: RunConfig) -> tuple[RunConfig, list[tuple[str, str]]]:
    """The configuration whose targets are the main one and the helpers of its table; the others as (file, column).

    Raises:
        MissingOptionError: a table without the name of a column.
    """
    columns, in_files = list(config.data.targets or ()), list[tuple[str, str]]()
    for name in config.data.helpers or ():
        path, _, column = name.partition(":")
        if path in ("dataset", "builtin"):
            rest, _, column = column.partition(":")
            path = f"{path}:{rest}"
        if path.startswith(("dataset:", "builtin:")) or Path(path).is_file():
            if not column:
                hint = f"name it behind a colon: --helper {path}:COLUMN"
                raise MissingOptionError(f"the helper {path} is a table, and no column of it is named", hint=hint)
            in_files.append((path, column))
        else:
            columns.append(name)
    return config.with_values("data", targets=tuple(columns)), in_files


def with_files(table: Table, config: RunConfig, in_files: Sequence[tuple[str, str]]) -> Table:
    """The training part of a table with the helpers of other tables, in rows behind its own.

    Raises:
        MismatchError: another table holds other columns of entities. ConflictError: two helpers have one name.
    """
    for path, column in in_files:
        try:
            rows = standardise(read_columns(path, config, (column,)), config.data.standardise)
        except MissingColumnError as error:
            raise MissingColumnError(f"the helper {path}:{column}: {error.message}", hint=error.hint) from error
        check_same_kinds(rows, table, f"the helper {column} of {path} holds")
        if column in (names_before := [t.name for t in table.targets]):
            raise ConflictError(f"{path} has a helper {column}, as another table has", hint="rename one of the columns")
        assert table.y is not None and rows.y is not None
        y_before, y_more = np.full((len(rows), len(names_before)), np.nan), np.full((len(table), 1), np.nan)
        targets = (*table.targets, *rows.targets)
        logger.info(f"{count(len(rows), 'row')} of {path} for the helper {column}")
        table = concatenate(
            replace(table, targets=targets, y=np.hstack([table.y, y_more])),
            replace(rows, targets=targets, y=np.hstack([y_before, rows.y])),
        )
    return table


def helped_parts(parts: Sequence[Table], full: Table, config: RunConfig, rows: Sequence[np.ndarray]) -> list[Table]:
    """The parts as what learns from helpers reads them: training and validation with those, the test part without.

    Args:
        parts: train, valid and test, of the main target alone.
        full: the table with the helpers of its columns.
        config: of the run.
        rows: of the training and the validation part.
    """
    train, valid = (standardise(full.take(part), config.data.standardise) for part in rows)
    train = with_files(train, config, split_helpers(config)[1])
    if new := train.targets[len(full.targets) :]:
        assert valid.y is not None
        y = np.hstack([valid.y, np.full((len(valid), len(new)), np.nan)])
        valid = replace(valid, targets=train.targets, y=y)
    return [train, valid, parts[2]]
