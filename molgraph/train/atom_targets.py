"""Match the values of atoms and bonds in a table with the rows of its graphs."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base import registry
from molgraph.base.errors import MissingOptionError, UnsupportedError
from molgraph.base.packed import offsets_of, spread
from molgraph.base.table import LevelName
from molgraph.chem.atom_order import bond_ends
from molgraph.data.graph_store import GraphStore
from molgraph.data.levels import level_of, sizes_of
from molgraph.data.table import OK, UNREADABLE, Entities, Table


def check_level(level: LevelName, chosen: Sequence[tuple[Entities, str]]) -> None:
    """Refuse targets of atoms or bonds where the network gives no states of them, before anything is computed."""
    if level == "row":
        return
    if len(chosen) > 1:
        names = [entity.name for entity, _ in chosen]
        raise MissingOptionError(
            f"targets of {level}s need one entity column, and here are {', '.join(names)}",
            hint=f"name one: --input {names[0]} (in Python inputs={names[:1]})",
        )
    entity, encoder = chosen[0]
    if level not in registry.get("encoder", encoder).needs or (level == "bond" and entity.kind != "molecule"):
        raise UnsupportedError(
            f"{encoder} gives no states of the {level}s of {entity.kind} {entity.name!r}",
            hint="dmpnn and most graph models give those of molecules' atoms, schnet those of atoms in space",
        )


def label_sizes(level: LevelName, store: GraphStore, graph: np.ndarray) -> np.ndarray:
    """int64 [n]: how many atoms or bonds the graph of each row has."""
    offsets = store.levels[level].offsets
    return (offsets[graph + 1] - offsets[graph]) // (2 if level == "bond" else 1)


def mark_sizes(table: Table, store: GraphStore, graph: np.ndarray) -> Table:
    """The table with those rows marked that have values of another number of atoms or bonds than their graph."""
    level, sizes = level_of(table.targets), sizes_of(table)
    expected = np.where(graph >= 0, label_sizes(level, store, np.maximum(graph, 0)), 0)
    bad = np.flatnonzero(table.ok & (graph >= 0) & (store.status[graph] == OK) & (sizes > 0) & (sizes != expected))
    reasons = [f"values of {sizes[row]} {level}s, the molecule has {expected[row]}" for row in bad]
    return table.with_status(bad, UNREADABLE, np.array(reasons, dtype=object))


def label_places(level: LevelName, store: GraphStore, graph: np.ndarray, texts: np.ndarray) -> np.ndarray:
    """int64 [labels]: the place in the table's order of each atom or bond in the network's order.

    A network gives atoms in the order of the SMILES (``texts``), and each bond once, in the order of its graph.
    """
    offsets = offsets_of(label_sizes(level, store, graph))
    out = np.arange(offsets[-1])
    if level == "bond":
        bonds, known = store.levels["bond"], dict[int, np.ndarray]()
        source, target = bonds.arrays["source"], bonds.arrays["target"]
        for i, (g, text) in enumerate(zip(graph.tolist(), texts, strict=True)):
            if g not in known:
                rows = spread(bonds.offsets, np.array([g]))
                low, high = source[rows], target[rows]
                in_graph, ends = np.lexsort((high[low < high], low[low < high])), bond_ends(text)
                known[g] = np.empty(len(ends), dtype=np.int64)
                known[g][in_graph] = np.lexsort((ends[:, 1], ends[:, 0]))
            out[offsets[i] : offsets[i + 1]] = offsets[i] + known[g]
    return out
