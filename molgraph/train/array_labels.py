"""Add arrays of labels, such as positions of atoms, to the training's graphs for objectives and callbacks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from molgraph.base.parts import part_names
from molgraph.base.registry import get
from molgraph.base.table import EntityKind
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.position_labels import POSITION, with_positions
from molgraph.data.table import Entities, Table
from molgraph.train.callback import NONE
from molgraph.train.inputs import Input, input_column

Maker = Callable[..., tuple[CachedGraphs, tuple[str, ...]]]


class ArrayLabels(NamedTuple):
    """How an array of the level ``atom`` is made.

    Args:
        kind: of column that it is read from where the table has one, and which no encoder need read then.
        make: of a table, a column of molecules and its graphs; gives the graphs with the array, and notes.
    """

    kind: EntityKind
    make: Maker


MAKERS = {POSITION: ArrayLabels("geometry", with_positions)}


def arrays_of(objective: str, callback: str | None) -> tuple[str, ...]:
    """The arrays that an objective and callbacks learn, by their names.

    Example:
        >>> arrays_of("distogram", None), arrays_of("supervised", "lp-ft")
        (('position',), ())
    """
    learned = part_names(callback) if callback and callback != NONE else []
    parts = [("objective", part_names(objective)), ("callback", learned)]
    return tuple(dict.fromkeys(array for kind, names in parts for name in names for array in get(kind, name).arrays))


def kinds_beside(arrays: Sequence[str]) -> tuple[EntityKind, ...]:
    """The kinds of column that these arrays are read from, where the table has them."""
    return tuple(MAKERS[array].kind for array in arrays)


def with_arrays(
    table: Table,
    inputs: Sequence[Input],
    graphs: Sequence[CachedGraphs],
    arrays: Sequence[str],
    workers: int | None = None,
) -> tuple[tuple[CachedGraphs, ...], tuple[str, ...]]:
    """The graphs with these arrays in the columns of molecules, and notes on molecules without them."""
    new_graphs, notes = list(graphs), list[str]()
    for array in arrays:
        for k, input_ in enumerate(inputs):
            if input_.kind == "molecule":
                column: Entities = input_column(table, inputs, k)
                new_graphs[k], more = MAKERS[array].make(table, column, new_graphs[k], workers=workers)
                notes += more
    return tuple(new_graphs), tuple(notes)
