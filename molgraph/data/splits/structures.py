"""Group the rows of a table that hold forms of one molecule, and find such rows on both sides of a split."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import MissingColumnError
from molgraph.chem.connectivity import connectivity_key
from molgraph.chem.identity import molecule_keys, relate
from molgraph.chem.parallel import map_molecules
from molgraph.chem.reaction import reactants_of, reaction_key
from molgraph.data.content import value_digest
from molgraph.data.graph_values import Geometry
from molgraph.data.splits.split import Leak
from molgraph.data.splits.splitter import Grouping, Task, number
from molgraph.data.table import Entities, Table

MOST_PER_TEST_ROW = 10  # a molecule that stands in training a thousand times is named ten times


def reasons_by_row(rows: np.ndarray, reasons: np.ndarray) -> dict[int, str]:
    """Row and reason of the rows that have one."""
    return {int(row): str(reason) for row, reason in zip(rows, reasons, strict=True) if reason}


def group_by_parent(task: Task, column: Entities | None = None) -> tuple[Grouping, np.ndarray]:
    """Group rows by stereo-free parent; rows whose molecule cannot be read are left out with RDKit's reason.

    Of a reaction that is the parent of its largest reactant.
    """
    kinds = [e.kind for e in task.table.entities]
    if column is None and kinds == ["reaction"]:
        texts = [reactants_of(str(text)) for text in task.table.entities[0].values]
        column = Entities("reactants", "molecule", np.array(texts, dtype=object))
    if column is None and "molecule" not in kinds:
        raise MissingColumnError(
            "this split needs a column of molecules",
            hint="take another one, as in --split random",
        )
    keys = molecule_keys((column or task.table.entity("molecule")).values[task.rows], stereo=False)
    use = keys.reasons == ""
    parents = keys.values[use]
    group_of = number(parents)
    first = np.unique(group_of, return_index=True)[1]
    return Grouping(task.rows[use], group_of, reasons_by_row(task.rows, keys.reasons)), parents[first]


def reaction_keys(texts: Sequence[Any] | np.ndarray) -> np.ndarray:
    """object [n]: a text that writings of one reaction share; empty where it cannot be read."""
    return np.array(
        map_molecules(reaction_key, [str(t) for t in texts], lambda *_: "", label="reactions"), dtype=object
    )


def geometry_key(value: Any) -> str:
    """A text that conformers share, of a ``Geometry``; empty of anything else."""
    return connectivity_key(value.numbers, value.positions) if isinstance(value, Geometry) else ""


def entity_keys(table: Table, rows: np.ndarray) -> np.ndarray:
    """A text for each of the rows, equal where all entities are forms of the same: molecules by their stereo-free
    parents, reactions by both sides, sequences by their letters, geometries by what is bonded; empty where one cannot
    be read or is a graph.

    Example:
        >>> from molgraph.data.table import make_table
        >>> entity_keys(make_table(["CCO", "OCC.Cl", "C("]), np.arange(3)).tolist()
        ['CCO', 'CCO', '']
    """
    columns = []
    for entity in table.entities:
        if entity.kind == "graph":
            return np.full(len(rows), "", dtype=object)
        if entity.kind == "geometry":
            columns.append(np.array([geometry_key(value) for value in entity.values[rows]], dtype=object))
            continue
        if entity.kind == "reaction":
            columns.append(reaction_keys(entity.values[rows]))
            continue
        code, texts = pd.factorize(entity.values[rows])
        is_molecule = entity.kind == "molecule"
        same = molecule_keys(texts, stereo=False).values if is_molecule else [str(t).strip() for t in texts]
        columns.append(np.array([*same, ""], dtype=object)[code])
    joined = ["\0".join(parts) if all(parts) else "" for parts in zip(*columns, strict=True)]
    return np.array(joined, dtype=object)


def find_leaks(
    table: Table, train: np.ndarray, test: np.ndarray, parents: np.ndarray | None = None
) -> tuple[Leak, ...]:
    """Pairs of a training and a test row with the same stereo-free parent, in order of the test rows.

    Args:
        table: all rows. In a table of pairs both entities must be the same; graphs have no such pairs.
        train: int64, training rows.
        test: int64, test rows.
        parents: object array [n], stereo-free parents of all rows, where they are known already.

    Returns:
        The pairs, at most ten training rows for each test row, with what ties them: ``duplicate``, ``salt form``,
        ``stereoisomer`` or ``isotopologue``; of geometries ``duplicate`` or ``conformer``.
    """
    shapes = next((e.values for e in table.entities if e.kind == "geometry"), None)
    smiles = next((e.values for e in table.entities if e.kind == "molecule"), None)
    if parents is None or len(table.entities) > 1:
        rows = np.concatenate([train, test]).astype(np.int64)
        parents = np.full(len(table), "", dtype=object)
        parents[rows] = entity_keys(table, rows)
    rows_of: dict[str, list[int]] = defaultdict(list)
    for row in train:
        if parents[row] and len(rows_of[parents[row]]) < MOST_PER_TEST_ROW:
            rows_of[parents[row]].append(int(row))
    leaks = []
    for row in test:
        for other in rows_of.get(parents[row], ()) if parents[row] else ():
            tie = "duplicate" if smiles is None else relate(smiles[other], smiles[row])
            if smiles is None and shapes is not None and value_digest(shapes[other]) != value_digest(shapes[row]):
                tie = "conformer"
            leaks.append(Leak(str(table.ids[other]), str(table.ids[row]), tie))
    return tuple(leaks)
