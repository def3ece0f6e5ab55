"""Add positions of the atoms to the graphs of molecules, for objectives that learn distances from them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from molgraph.base.errors import EmptyError
from molgraph.base.printable import count
from molgraph.chem.atom_positions import embedded_positions, matched_positions
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.graph_store import Level
from molgraph.data.graph_values import Geometry
from molgraph.data.table import Entities, Table

POSITION = "position"


def with_positions(
    table: Table, column: Entities, graphs: CachedGraphs, *, workers: int | None = None
) -> tuple[CachedGraphs, tuple[str, ...]]:
    """The graphs of a column of molecules with ``atom.position``, float32 [n, 3] in angstrom, NaN where none is known.

    Where the table has a column of atoms in space, they are its positions (of a molecule of several conformers those
    of the first row), else those of one ETKDG conformer. What the encoder reads stays as it is.

    Args:
        table: whose rows the graphs are of.
        column: its column of molecules.
        graphs: of that column.
        workers: processes for conformers.

    Returns:
        The graphs, and notes on molecules without positions.

    Raises:
        EmptyError: no molecule has positions.
    """
    store = graphs.store
    rows = np.flatnonzero(graphs.graph_of_row >= 0)
    used, first = np.unique(graphs.graph_of_row[rows], return_index=True)
    keep = store.status[used] == "ok"
    used, rows = used[keep], rows[first[keep]]
    texts = [str(text) for text in column.values[rows]]
    shapes = next((e.values for e in table.entities if e.kind == "geometry"), None)
    if shapes is None:
        positions = embedded_positions(texts, workers=workers)
    else:
        positions = [_of_geometry(text, shape) for text, shape in zip(texts, shapes[rows], strict=True)]
    atoms = store.levels["atom"]
    out = np.full((int(atoms.offsets[-1]), 3), np.nan, dtype=np.float32)
    lost = []
    for graph, position in zip(used, positions, strict=True):
        start, end = atoms.offsets[graph : graph + 2]
        if not isinstance(position, str) and len(position) != end - start:
            position = "the graph has other atoms than the SMILES"
        if isinstance(position, str):
            lost.append(position)
        else:
            out[start:end] = position
    if len(used) and len(lost) == len(used):
        raise EmptyError(f"no molecule has positions: {lost[0]}", hint="give molecules that RDKit can embed")
    level = Level(atoms.offsets, {**atoms.arrays, POSITION: out}, atoms.index)
    notes = (f"no distances are learned of {count(len(lost), 'molecule')} ({lost[0]})",) if lost else ()
    return replace(graphs, store=replace(store, levels={**store.levels, "atom": level})), notes


def _of_geometry(text: str, shape: object) -> np.ndarray | str:
    if not isinstance(shape, Geometry):
        return "no geometry in this row"
    return matched_positions(text, np.asarray(shape.numbers), np.asarray(shape.positions))
