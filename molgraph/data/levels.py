"""Lay a table of atom or bond targets out with a row for each atom or bond, as scores and scales read it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from molgraph.base.contracts import Prediction, Target
from molgraph.base.errors import ConflictError, LabelError, ShapeError
from molgraph.base.packed import Packed, offsets_of
from molgraph.base.table import LevelName
from molgraph.data.table import Table


def level_of(targets: Sequence[Target]) -> LevelName:
    """The level that all targets share; ``row`` where there are none.

    Example:
        >>> level_of([Target("charge", level="atom"), Target("shift", level="atom")])
        'atom'
    """
    first = next(iter(targets), Target(""))
    for other in targets:
        if other.level != first.level:
            raise ConflictError(
                f"target {first.name!r} belongs to each {first.level}, {other.name!r} to each {other.level}",
                hint="train a model for each level",
            )
    return first.level


def sizes_of(table: Table) -> np.ndarray:
    """int64 [n]: how many atoms or bonds of each row have values; 0 where none of its cells has any."""
    sizes = np.zeros(len(table), dtype=np.int64)
    for target in table.targets:
        if target.level == "row":
            continue
        packed = table.packed.get(target.name)
        if packed is None or packed.values.ndim != 1:
            fault = "no list of values" if packed is None else "vectors as values, which are not learned"
            raise LabelError(
                f"target {target.name!r} belongs to each {target.level} and has {fault}",
                hint=f"in Python: packed={{{target.name!r}: Packed.of(lists)}}",
            )
        clash = np.flatnonzero((sizes > 0) & (packed.sizes > 0) & (sizes != packed.sizes))
        if len(clash):
            row = int(clash[0])
            raise ShapeError(
                f"target {target.name!r} has {packed.sizes[row]} values in row {row + 1}, another one {sizes[row]}",
                hint=f"give a value, or null, for each {target.level}",
            )
        sizes = np.maximum(sizes, packed.sizes)
    return sizes


def labelled(table: Table, besides: Collection[str] = ()) -> np.ndarray:
    """bool [n]: rows with a finite value, or a limit, of a target that is not among ``besides``."""
    out = np.zeros(len(table), dtype=bool)
    for j, target in enumerate(table.row_targets):
        known = table.y is not None and target.name not in besides
        out |= (np.isfinite(table.y[:, j]) | table.limited[:, j]) if known else False  # type: ignore[index]
    for name, packed in table.packed.items():
        if name not in besides:
            out[np.repeat(np.arange(len(table)), packed.sizes)[np.isfinite(packed.values)]] = True
    return out


def pooled(table: Table) -> Table:
    """The table with a row for each atom or bond that has values; itself where its targets are those of whole rows.

    Ids, entities and weights are repeated; the targets become targets of rows.

    Example:
        >>> from molgraph.data.table import make_table
        >>> charge = Target("charge", level="atom")
        >>> table = make_table(["CO", "C"], targets=(charge,), packed={"charge": Packed.of([[0.2, -0.4], [0.0]])})
        >>> pooled(table).ids.tolist(), pooled(table).y[:, 0].tolist()
        (['0', '0', '1'], [0.2, -0.4, 0.0])
    """
    if level_of(table.targets) == "row":
        return table
    sizes = sizes_of(table)
    bare = replace(table, targets=(), packed={}, y=None).take(np.repeat(np.arange(len(table)), sizes))
    y = np.column_stack([_filled(table.packed[t.name], sizes) for t in table.targets])
    return replace(bare, targets=tuple(replace(t, level="row") for t in table.targets), y=y)


def pooled_prediction(prediction: Prediction, table: Table) -> Prediction:
    """A prediction of ``table`` with the rows of ``pooled(table)``; NaN where it has other atoms than the table."""
    if level_of(prediction.targets) == "row":
        return prediction
    sizes = sizes_of(table)
    rows = np.repeat(np.arange(len(table)), sizes)
    names = [name for target in prediction.targets for name in target.columns]
    return Prediction(
        prediction.ids[rows],
        tuple(replace(t, level="row") for t in prediction.targets),
        np.column_stack([_filled(prediction.packed[name], sizes) for name in names]),
        prediction.status[rows],
        prediction.reason[rows],
        unlearned=prediction.unlearned,
    )


def _filled(packed: Packed, sizes: np.ndarray) -> np.ndarray:
    """Values of as many atoms as each row should have; NaN in rows that have other ones."""
    right = np.flatnonzero(packed.sizes == sizes)
    out = np.full(offsets_of(sizes)[-1], np.nan)
    out[np.repeat(packed.sizes == sizes, sizes)] = packed.take(right).values
    return out
