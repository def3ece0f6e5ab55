"""Put a test table of its own behind the table that is learnt from, and split the latter into train and valid."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from molgraph.base.errors import DataError
from molgraph.base.recipe import Recipe
from molgraph.base.registry import get
from molgraph.data.splits import Split
from molgraph.data.splits.leaks import find_leaks
from molgraph.data.splits.make import usable_rows
from molgraph.data.splits.split import LeftOut, content_hash, digests_of, row_contents, split_hash
from molgraph.data.table import Table
from molgraph.train.model import coded


def append_test(table: Table, test: Table) -> Table:
    """The rows of both tables; those of ``test`` come last, with their classes coded as in ``table``.

    Raises:
        DataError: the test table lacks a target or descriptor, has a class that the table has not, or other entities.
    """
    test = coded(test.with_targets([t.name for t in table.row_targets]), table.row_targets)
    if [e.kind for e in test.entities] != [e.kind for e in table.entities] or table.packed:
        raise DataError("the test table has other columns than the table", hint="give both the same columns")
    if test.feature_names != table.feature_names:
        raise DataError(
            f"the test table has the descriptors {list(test.feature_names)}, the table {list(table.feature_names)}",
            hint="give both the same columns",
        )
    weights = [np.ones(len(part)) if part.weights is None else part.weights for part in (table, test)]
    weighed = table.weights is not None or test.weights is not None
    entities = zip(table.entities, test.entities, strict=True)
    return replace(
        table,
        ids=np.concatenate([table.ids, test.ids]),
        entities=tuple(replace(a, values=np.concatenate([a.values, b.values])) for a, b in entities),
        status=np.concatenate([table.status, test.status]),
        reason=np.concatenate([table.reason, test.reason]),
        y=_stacked(table.y, test.y),
        weights=np.concatenate(weights) if weighed else None,
        features=_stacked(table.features, test.features),
        split=None if table.split is None else np.concatenate([table.split, np.full(len(test), None, dtype=object)]),
        notes=tuple(dict.fromkeys((*table.notes, *test.notes))),
        index=None if table.index is None or test.index is None else table.index.append(test.index),
    )


def _stacked(first: np.ndarray | None, second: np.ndarray | None) -> np.ndarray | None:
    return None if first is None or second is None else np.concatenate([first, second])


def without_test(plan: Recipe) -> Recipe:
    """The recipe with its test share given to the training part."""
    train, valid, test = plan.split.fractions
    return plan.model_copy(update={"split": plan.split.model_copy(update={"fractions": (train + test, valid, 0.0)})})


def divide_before(n: int, clean: Table, table: Table, plan: Recipe, divide: Callable[..., Split]) -> Split:
    """Split the first n rows into train and valid; the others are the test part.

    Args:
        n: rows of the table that is learnt from.
        clean: all rows with standardised molecules.
        table: all rows with molecules as they were read.
        plan: the recipe.
        divide: splits the first n rows as a recipe asks (``molgraph.plan.divide``).

    Raises:
        DataError: the split has a test part of its own, or no test row can be read.
    """
    first = np.arange(n)
    split = divide(clean.take(first), without_test(plan), table.take(first))
    if len(split.test):
        raise DataError(
            f"the split {split.recipe!r} has a test part of {len(split.test)} rows, beside the test table",
            hint="mark those rows train or valid, or give no test table",
        )
    usable = usable_rows(clean.take(np.arange(n, len(clean))), get("split", "column"))
    test = usable.rows + n
    contents = row_contents(clean)
    parts = {"train": split.train, "valid": split.valid, "test": test}
    settings = {"recipe": split.recipe, "seed": split.seed, "fractions": list(split.fractions)}
    params: dict[str, Any] = dict(split.params) | {"test": "a table of its own"}
    return replace(
        split,
        test=test,
        n_rows=len(clean),
        params=params,
        content=content_hash(contents),
        digests=digests_of(contents),
        hash=split_hash(contents, parts, settings | {"params": params}),
        leaks=find_leaks(clean, np.sort(np.concatenate([split.train, split.valid])), test),
        left_out=(*split.left_out, *(LeftOut(row + n, why) for row, why in sorted(usable.left_out.items()))),
    )
