"""Group the rows of a table that hold forms of one molecule: those of one stereo-free parent."""

from __future__ import annotations

import numpy as np
import pandas as pd

from molgraph.chem.scaffold import stereo_free_parents
from molgraph.data.splits.recipe import Grouping, Task, number
from molgraph.data.table import Entities, Table


def group_by_parent(task: Task, column: Entities | None = None) -> tuple[Grouping, np.ndarray]:
    """Group rows by stereo-free parent; rows whose molecule cannot be read are left out with RDKit's reason.

    Args:
        task: the rows.
        column: the molecule column; the table's first one where not given.

    Returns:
        The grouping, and the stereo-free parent of each group (object array [n_groups]).
    """
    keys = stereo_free_parents((column or task.table.entity("molecule")).values[task.rows])
    bad = np.array([bool(r) for r in keys.reasons], dtype=bool)
    left_out = {int(row): str(why) for row, why in zip(task.rows[bad], keys.reasons[bad], strict=True)}
    parents = keys.values[~bad]
    group_of = number(parents)
    first = np.unique(group_of, return_index=True)[1]
    return Grouping(task.rows[~bad], group_of, left_out), parents[first]


def entity_keys(table: Table, rows: np.ndarray) -> np.ndarray:
    """A text for each of the rows, equal where all entities are forms of the same: molecules by their stereo-free
    parents, sequences by their letters; empty where one cannot be read or is neither.

    Example:
        >>> from molgraph.data.table import make_table
        >>> entity_keys(make_table(["CCO", "OCC.Cl", "C("]), np.arange(3)).tolist()
        ['CCO', 'CCO', '']
    """
    columns = []
    for entity in table.entities:
        if entity.kind not in ("molecule", "sequence"):
            return np.full(len(rows), "", dtype=object)
        code, texts = pd.factorize(entity.values[rows])
        same = stereo_free_parents(texts).values if entity.kind == "molecule" else [str(t).strip() for t in texts]
        columns.append(np.array([*same, ""], dtype=object)[code])
    joined = ["\0".join(parts) if all(parts) else "" for parts in zip(*columns, strict=True)]
    return np.array(joined, dtype=object)
