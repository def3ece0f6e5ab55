"""Predict the mean of the training rows, or the shares of their classes, for every molecule."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.auxiliary.targets import checked, described, whole
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.packed import Packed, offsets_of
from molgraph.base.registry import register
from molgraph.base.table import LevelName
from molgraph.chem.atom_order import kinds_of
from molgraph.data.featurize_geometry import read_geometry
from molgraph.data.labels import Labels, check_targets
from molgraph.data.levels import level_of, pooled, sizes_of
from molgraph.data.table import Table
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.train.archive import refused


@register(
    "method",
    "mean",
    summary="the training part's mean or class shares: what every model must beat",
    tags=("baseline",),
)
class MeanPredictor(Method):
    """Predicts the training rows' weighted mean for numbers, and the share of each class for labels.

    For targets of atoms it is the mean of each element, for those of bonds the mean of each type of bond. A method that
    does not beat it has learnt nothing about molecules. Rows that cannot be read get no value
    here either, so that all methods are judged on the same rows.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "C(C"], targets=(Target("y"),), y=[1.0, 3.0, float("nan")])
        >>> MeanPredictor().fit(table).predict(table).value.ravel().tolist()
        [2.0, 2.0, nan]
    """

    name = "mean"
    reads_features = False

    def __init__(self) -> None:
        pass

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Average the readable rows; ``valid`` and ``workdir`` are not used."""
        table, level, kinds, targets = checked(table), level_of(table.targets), np.zeros(0, np.int64), table.targets
        readable = table.ok
        if level != "row":
            row_kinds = _kinds(table, level, readable)
            rows = np.flatnonzero(readable & (np.array([*map(len, row_kinds), 0][:-1]) == sizes_of(table)))
            table, kinds = table.take(rows), np.concatenate([kinds, *(row_kinds[row] for row in rows)])
            readable = np.ones(len(kinds), dtype=bool)
        labels = check_targets(table, readable if level == "row" else None)
        flat = pooled(table)
        weights = np.ones(len(flat)) if flat.weights is None else flat.weights
        row = _averages(targets, labels, readable, weights)
        by_kind = {}
        for kind in np.unique(kinds).tolist():
            averages = _averages(targets, labels, kinds == kind, weights)
            by_kind[kind] = np.where(np.isnan(averages), row, averages)
        self._fitted = (targets, row, dict(labels.unlearned), by_kind)
        self.notes = notes_of(labels.unlearned)
        return self

    def predict(self, table: Table) -> Prediction:
        """The same value for every row that can be read, or for every atom of an element."""
        targets, row, unlearned, by_kind = whole(self)
        table, level, packed = checked(table), level_of(targets), {}
        value = np.where(table.ok[:, None], row, np.nan)
        if level != "row":
            row_kinds = _kinds(table, level, table.ok)
            value = np.array([by_kind.get(kind, row) for kind in np.concatenate([[], *row_kinds]).tolist()])
            value, offsets = value.reshape(-1, len(row)), offsets_of([*map(len, row_kinds)])
            names = [name for target in targets for name in target.columns]
            packed = {name: Packed(offsets, value[:, j]) for j, name in enumerate(names)}
            value = np.zeros((len(table), 0))
        more: dict[str, Any] = {"inputs": table.inputs, "unlearned": unlearned, "packed": packed}
        return Prediction(table.ids, targets, value, table.status, table.reason, **more)

    def state(self) -> State:
        """The row of values, and those of each element or type of bond where targets are of atoms or bonds."""
        targets, row, unlearned, by_kind = whole(self)
        arrays = {"row": np.nan_to_num(row)}
        if by_kind:
            arrays |= {"kinds": np.array([*by_kind]), "by_kind": np.nan_to_num(np.stack([*by_kind.values()]))}
        return State(arrays, described(self, targets, unlearned))

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the values do not fit the targets."""
        with refused("the model's description is not whole"):
            targets = targets_from_json(state.meta["targets"])
            row = np.asarray(state.arrays["row"], dtype=np.float64)
            unlearned = restore_unlearned(state.meta, targets)
            below = level_of(targets) != "row"
            kinds = np.asarray(state.arrays["kinds"] if below else [], dtype=np.int64)
            values = np.asarray(state.arrays["by_kind"] if below else np.zeros((0, len(row))), dtype=np.float64)
            n = sum(len(target.columns) for target in targets)
            if (row.shape, kinds.ndim, values.shape) != ((n,), 1, (len(kinds), n)):
                raise ValueError("the values do not fit the targets")
        method = cls()
        by_kind = dict(zip(kinds.tolist(), values, strict=True))
        method._fitted, method.notes = (targets, row, unlearned, by_kind), notes_of(unlearned)
        return method


def _averages(targets: Sequence[Target], labels: Labels, use: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted mean of each column over the rows to use; NaN where none of them has a label."""
    row: list[float] = []
    for j, target in enumerate(targets):
        y = labels.y[:, j, None]
        mask = use & ~np.isnan(y[:, 0]) & (weights > 0)
        if target.name in labels.unlearned or not mask.any():
            row.extend([np.nan] * len(target.columns))
            continue
        values = y == np.arange(len(target.classes)) if target.kind == "multiclass" else y
        row.extend(np.average(values[mask], axis=0, weights=weights[mask]))
    return np.array(row)


def _kinds(table: Table, level: LevelName, use: np.ndarray) -> list[np.ndarray]:
    """The elements of each row's atoms, or the types of its bonds; none in rows that are not to be used."""
    shapes = [e for e in table.entities if e.kind == "geometry"]
    if level == "atom" and shapes:
        return [read_geometry(v if ok else None)[0].numbers for v, ok in zip(shapes[0].values, use, strict=True)]
    return [kinds_of(text if ok else "", level) for text, ok in zip(table.smiles, use, strict=True)]
