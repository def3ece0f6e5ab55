"""A method and rows in; the method fitted on those rows, or the same rows without their labels, out."""

from __future__ import annotations

from dataclasses import replace

from molgraph.base.contracts import Method
from molgraph.base.seeds import derive
from molgraph.data.splits import split_table
from molgraph.data.table import Table

VALID_SHARE = 0.1  # of the training rows, for methods that stop early by them


def blind(table: Table) -> Table:
    """The same rows without labels, and without a word on what the targets are.

    Example:
        >>> from molgraph.data.table import make_table
        >>> from molgraph.base.contracts import Target
        >>> hidden = blind(make_table(["C"], targets=(Target("y"),), y=[1.0]))
        >>> hidden.y is None, hidden.targets
        (True, ())
    """
    return replace(table, y=None, targets=(), packed={})


def fit(method: Method, train: Table, valid: Table | None, seed: int) -> None:
    """Fit on training rows; a method that stops early by validation rows gets a tenth of them where there are none."""
    if not method.uses_valid:
        method.fit(train)
        return
    if valid is None or not len(valid):
        shares = (1 - VALID_SHARE, VALID_SHARE, 0.0)
        cut = split_table(train, "random", fractions=shares, seed=derive(seed, "valid") % 2**32)
        train, valid = train.take(cut.train), train.take(cut.valid)
    method.fit(train, valid)
