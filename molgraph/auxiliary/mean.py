"""Predict the mean of the training rows, or the shares of their classes, for every molecule."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

import numpy as np

from molgraph.auxiliary.targets import reasons, target_meta, whole
from molgraph.base.contracts import Method, Prediction, State
from molgraph.base.errors import ModelFileError
from molgraph.base.registry import register
from molgraph.base.size import Shapes, Size
from molgraph.data.labels import check_targets
from molgraph.data.table import OK, UNREADABLE, Table
from molgraph.data.target_json import targets_from_json
from molgraph.data.unlearned import notes_of, restore_unlearned

AGAIN = "fetch the file again"


@register("method", "mean", summary="the training part's mean or class shares: what every model must beat")
class MeanPredictor(Method):
    """Predicts the training rows' weighted mean for numbers, and the share of each class for labels.

    A method that does not beat it has learnt nothing about molecules. Rows that cannot be read get no value
    here either, so that all methods are judged on the same rows.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC", "C(C"], targets=(Target("y"),), y=[1.0, 3.0, float("nan")])
        >>> MeanPredictor().fit(table).predict(table).value.ravel().tolist()
        [2.0, 2.0, nan]
    """

    name = "mean"

    def __init__(self) -> None:
        pass

    @classmethod
    def size_of(cls, meta: Mapping[str, Any], shapes: Shapes) -> Size:
        """What the stored state needs to predict: a value a column."""
        return Size(row_bytes=40 * math.prod(shapes["row"]), row_operations=math.prod(shapes["row"]))

    def fit(self, table: Table, valid: Table | None = None, *, workdir: Path | None = None) -> Self:
        """Average the readable rows; ``valid`` and ``workdir`` are not used."""
        readable = reasons(table) == ""
        targets, labels = table.row_targets, check_targets(table, readable)
        weights = np.ones(len(table)) if table.weights is None else table.weights
        row: list[float] = []
        for j, target in enumerate(targets):
            if target.name in labels.unlearned:
                row.extend([np.nan] * len(target.columns))
                continue
            y = labels.y[:, j, None]
            use = readable & ~np.isnan(y[:, 0]) & (weights > 0)
            values = y == np.arange(len(target.classes)) if target.kind == "multiclass" else y
            row.extend(np.average(values[use], axis=0, weights=weights[use]))
        self._fitted = (targets, np.array(row), dict(labels.unlearned))
        self.notes = notes_of(labels.unlearned)
        return self

    def predict(self, table: Table) -> Prediction:
        """The same value for every row that can be read."""
        targets, row, unlearned = whole(self)
        why = reasons(table)
        bad = np.flatnonzero(why != "")
        marked = table.with_status(bad, UNREADABLE, why[bad])
        value = np.where((marked.status == OK)[:, None], row, np.nan)
        return Prediction(
            table.ids, targets, value, marked.status, marked.reason, inputs=table.inputs, unlearned=unlearned
        )

    def state(self) -> State:
        """The row of values."""
        targets, row, unlearned = whole(self)
        described = [target_meta(t) for t in targets]
        return State({"row": np.nan_to_num(row)}, {"params": {}, "targets": described, "unlearned": unlearned})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """Rebuild; raises ``ModelFileError`` where the values do not fit the targets."""
        try:
            targets = targets_from_json(state.meta["targets"])
            row = np.asarray(state.arrays["row"], dtype=np.float64)
            unlearned = restore_unlearned(state.meta, targets)
        except (KeyError, TypeError, ValueError) as error:
            raise ModelFileError(
                f"the model's description is not whole: {error}", hint="fetch the file again"
            ) from error
        learned = np.array([t.name not in unlearned for t in targets for _ in t.columns])
        if row.shape != learned.shape or not np.isfinite(row[learned]).all():
            raise ModelFileError("the model's values do not fit its targets", hint=AGAIN)
        method = cls()
        method._fitted, method.notes = (targets, row, unlearned), notes_of(unlearned)
        return method
