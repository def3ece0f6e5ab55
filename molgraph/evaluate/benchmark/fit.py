"""Fit a method to training rows, and strip the labels of rows to predict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from molgraph.base.contracts import Method
from molgraph.base.seeds import derive
from molgraph.data.splits import split_table
from molgraph.data.table import Table

VALID_SHARE = 0.1  # of the training rows, for methods that stop early by them


def strip_labels(table: Table, inputs: Sequence[str] | None = None) -> Table:
    """The same rows without labels, and without a word on what the targets are; of those entity columns alone.

    Example:
        >>> from molgraph.data.table import make_table
        >>> from molgraph.base.contracts import Target
        >>> hidden = strip_labels(make_table(["C"], targets=(Target("y"),), y=[1.0]))
        >>> hidden.y is None, hidden.targets
        (True, ())
    """
    return replace(_of(table, inputs), y=None, targets=(), packed={})


def fit(method: Method, train: Table, valid: Table | None, seed: int, inputs: Sequence[str] | None = None) -> None:
    """Fit on training rows; a method that stops early by validation rows gets a tenth of them where there are none.

    The tenth is drawn from whole rows, so that it does not depend on the entity columns (``inputs``) that are read.
    """
    if not method.uses_valid:
        method.fit(_of(train, inputs))
        return
    if valid is None or not len(valid):
        shares = (1 - VALID_SHARE, VALID_SHARE, 0.0)
        cut = split_table(train, "random", fractions=shares, seed=derive(seed, "valid") % 2**32)
        train, valid = train.take(cut.train), train.take(cut.valid)
    method.fit(_of(train, inputs), _of(valid, inputs))


def _of(table: Table, inputs: Sequence[str] | None) -> Table:
    return table if inputs is None else table.with_entities(inputs)
