"""The recipe ``random``: rows at random, all forms of one molecule together."""

from __future__ import annotations

import numpy as np

from molgraph.data.splits.recipe import Grouping, Task, number, register_split
from molgraph.data.splits.structures import group_by_parent


@register_split(
    "group",
    "random",
    "rows at random, grouped by stereo-free parent",
    grouped=True,
    asks="New molecules of the same collection: near relatives of a tested molecule may have trained.",
)
@register_split(
    "group",
    "random/stratified",
    "rows at random, every class shared out evenly",
    stratified=True,
    grouped=True,
    asks="New molecules of the same collection, of every class as many as its share.",
)
def group_randomly(task: Task) -> Grouping:
    """Group rows by stereo-free parent; in a table without a lone molecule column, by their tuple of entities."""
    if [e.kind for e in task.table.entities] == ["molecule"]:
        return group_by_parent(task)[0]
    keys = np.empty(len(task.rows), dtype=object)
    columns = [e.values[task.rows] for e in task.table.entities]
    for i, row in enumerate(zip(*columns, strict=True)):
        # Values that are not text (graphs, geometries) are told apart by which object they are.
        keys[i] = tuple(v if isinstance(v, str) else id(v) for v in row)
    return Grouping(task.rows, number(keys))
