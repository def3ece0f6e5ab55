"""Translate a table's class codes to those of a model, by the labels of the classes."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import MismatchError
from molgraph.data.table import Table


def coded(table: Table, targets: tuple[Target, ...]) -> Table:
    """The table with the model's own targets; class codes are translated by their labels.

    A file that lacks a class, or holds numbers as labels, codes its classes otherwise than the training file did.
    """
    if table.y is None:
        if [t.classes for t in targets] != [t.classes for t in table.targets]:
            raise MismatchError("the table's classes of atoms are not the model's", hint="read it from a file")
        return table
    y = table.y.copy()
    for j, (ours, theirs) in enumerate(zip(targets, table.row_targets, strict=True)):
        if ours.kind != "multiclass" or ours.classes == theirs.classes:
            continue
        known = np.flatnonzero(~np.isnan(y[:, j]))
        labels = [theirs.classes[int(v)] if theirs.classes else f"{v:g}" for v in y[known, j]]
        unknown = sorted(set(labels) - set(ours.classes))
        if unknown:
            raise MismatchError(
                f"target {ours.name!r} has the class {unknown[0]!r}, which the model does not know",
                hint=f"its classes: {', '.join(ours.classes)}",
            )
        y[known, j] = [ours.classes.index(label) for label in labels]
    return replace(table, targets=targets, y=y)
