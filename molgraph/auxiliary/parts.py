"""Fit one part for each target of a table, predict with the parts, and store them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

import numpy as np

from molgraph.auxiliary.features import Features
from molgraph.auxiliary.reference import Reference
from molgraph.auxiliary.targets import target_meta, whole
from molgraph.base import progress
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.cores import cores
from molgraph.base.errors import ModelFileError
from molgraph.base.finite import check_finite
from molgraph.base.size import Shapes, Size, by_owner, together
from molgraph.data.labels import check_targets
from molgraph.data.table import Table
from molgraph.data.target_json import targets_from_json
from molgraph.data.unlearned import notes_of, restore_unlearned
from molgraph.train.outputs import ClassWeights, class_tables

BLOCK, BUDGET = 10_000, 2 << 30  # rows predicted at once, at most, and bytes that they may take
AGAIN = "fetch the file again"
Said = tuple[np.ndarray, np.ndarray | None]  # values [n, columns], and their standard deviations or None
M = TypeVar("M", bound=Method)


class Part(Protocol):
    """What was learned of one target."""

    def predict(self, x: np.ndarray) -> Said:
        """Features [n, width], or likenesses to the training rows [n, m]; in the target's units, or probabilities."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything that ``predict`` needs."""


@dataclass(frozen=True)
class Lesson:
    """The rows that have one target.

    Args:
        target: what to learn.
        x: float32 [n, width], the features.
        y: float64 [n], values or class codes; no NaN.
        weights: float64 [n], rows' weights times their classes', or None where all count alike.
        rows: int64 [n], the places of these in the reference, or among all the readable rows.
        reference: the training rows, where a part compares with them.
        advance: told of steps that are done, where ``learn`` was told how many there are.
    """

    target: Target
    x: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    rows: np.ndarray
    reference: Reference | None = None
    advance: Callable[[int], None] = lambda n: None


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves: a part for each target, or None for one that was not learned, with why.

    Args:
        reference: the training rows, where parts ask how like them a molecule is.
    """

    targets: tuple[Target, ...]
    features: Features
    parts: tuple[Part | None, ...]
    unlearned: dict[str, str]
    reference: Reference | None = None


def learn(
    method: Method,
    table: Table,
    features: Features,
    grow: Callable[[Lesson], Part],
    *,
    compare: bool = False,
    limit: int | None = None,
    class_weights: ClassWeights = None,
    steps: int | None = None,
) -> Fitted:
    """Learn each target from the readable rows that have it.

    Args:
        method: whose ``threads``, ``store`` and ``seed`` count; its ``notes`` are set.
        table: the training rows.
        features: the choice of features.
        grow: learns one target.
        compare: whether parts ask how like the training rows a molecule is; features are then bits.
        limit: the most rows that are compared with; None for all.
        class_weights: as for graph models.
        steps: how many steps of progress ``grow`` tells of a target; None where it tells none.
    """
    threads = cores(getattr(method, "threads", None))
    bare = replace(table, features=None, feature_names=()) if compare else table  # likeness is one of fingerprints
    own, matrix = features.fit(bare, threads, getattr(method, "store", None))
    targets, labels = table.row_targets, check_targets(table, np.isin(np.arange(len(table)), matrix.rows))
    y = labels.y[matrix.rows]
    classes = class_tables(targets, y, class_weights)
    weights = None if table.weights is None else table.weights[matrix.rows]
    seed = int(getattr(method, "seed", 0))
    made = Reference.of(matrix.x, y, limit, seed) if compare else None
    parts: list[Part | None] = []
    total = (len(targets) - len(labels.unlearned)) * (steps or 1)
    with progress.bar(type(method).name.replace("_", " "), total=total) as bar:
        for j, target in enumerate(targets):
            if target.name in labels.unlearned:
                parts.append(None)
                continue
            use = ~np.isnan(y[:, j])
            if made is not None:
                use[made.left_out] = False
            if weights is not None:
                use &= weights > 0
            w = None if weights is None else weights[use]
            if j in classes:
                w = classes[j][y[use, j].astype(np.int64)] * (1.0 if w is None else w)
            rows = np.flatnonzero(use)
            x = matrix.x if len(rows) == len(matrix.x) else matrix.x[use]
            place = rows if made is None else made.place[rows]
            grown = grow(Lesson(target, x, y[use, j], w, place, made, bar.advance))
            check_finite(grown.arrays())
            parts.append(grown)
            bar.advance(0 if steps else 1)
    notes = () if made is None else made.notes
    if table.feature_names and made is not None:
        notes += ("the table's own feature columns are not used: this method compares fingerprints",)
    method.notes = (*notes_of(labels.unlearned), *notes)
    return Fitted(targets, own, tuple(parts), dict(labels.unlearned), made)


def predict(method: Method, table: Table) -> Prediction:
    """Predict every row, in order."""
    fitted: Fitted = whole(method)
    threads, store = cores(getattr(method, "threads", None)), getattr(method, "store", None)
    width = sum(len(t.columns) for t in fitted.targets)
    value, spread = np.full((len(table), width), np.nan), np.full((len(table), width), np.nan)
    status, reason = table.status.copy(), table.reason.copy()
    n_reference = 0 if fitted.reference is None else len(fitted.reference)
    rows = max(1, min(BLOCK, BUDGET // row_bytes(fitted.features.width, n_reference, width)))
    for start in range(0, max(len(table), 1), rows):  # a table of no rows lacks columns as another does
        block = slice(start, start + rows)
        part = table if len(table) <= rows else table.take(np.arange(start, min(start + rows, len(table))))
        matrix = fitted.features.of(part, threads, store)
        status[block], reason[block] = matrix.status, matrix.reason
        if len(matrix.rows):
            value[start + matrix.rows], spread[start + matrix.rows] = _values(fitted, matrix.x)
    known = None if np.isnan(spread).all() else spread
    empty = fitted.unlearned
    return Prediction(
        table.ids, fitted.targets, value, status, reason, spread=known, inputs=table.smiles, unlearned=empty
    )


def state(method: Method) -> State:
    """The parts' arrays, the fill values and what the features are."""
    fitted: Fitted = whole(method)
    arrays = {"fill": fitted.features.fill}
    if fitted.reference is not None:
        arrays |= fitted.reference.arrays()
    for j, part in enumerate(fitted.parts):
        arrays |= {} if part is None else {f"target_{j}.{name}": array for name, array in part.arrays().items()}
    params = method.get_params() | (
        {"store": None} if "store" in method.param_names() else {}
    )  # no path of this machine
    meta = {
        "params": params,
        "features": fitted.features.meta(),
        "targets": [target_meta(t) for t in fitted.targets],
        "unlearned": fitted.unlearned,
        "notes": list(method.notes),
    }
    return State(arrays, meta)


def restore(
    cls: type[M],
    state: State,
    load: Callable[[Mapping[str, np.ndarray], Target, Fitted], Part],
    compare: bool = False,
) -> M:
    """Rebuild a fitted method; raises ``ModelFileError`` where the state is not whole.

    Args:
        cls: the method's class.
        state: what ``state`` gave.
        load: one target's part from its arrays; a missing array may raise ``KeyError``.
        compare: whether the state holds a reference.
    """
    try:
        given = state.meta["params"]  # an older molgraph's may lack one, or have one that is gone
        params = {name: given[name] for name in cls.param_names() if name in given}
        targets = targets_from_json(state.meta["targets"])
        features = Features.from_meta(state.meta["features"], np.asarray(state.arrays["fill"]))
        unlearned = restore_unlearned(state.meta, targets)
        notes = tuple(str(note) for note in state.meta.get("notes", notes_of(unlearned)))
        made = Reference.from_arrays(state.arrays, features) if compare else None
        base = Fitted(targets, features, (), unlearned, made)
        own, parts = by_owner(state.arrays), []
        for j, target in enumerate(targets):
            parts.append(None if target.name in unlearned else load(own.get(f"target_{j}", {}), target, base))
        method = cls(**params)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(f"the model's description is not whole: {error}", hint=AGAIN) from error
    method._fitted = Fitted(targets, features, tuple(parts), unlearned, made)  # type: ignore[attr-defined]
    method.notes = notes
    return method


def size_of(
    meta: Mapping[str, Any], shapes: Shapes, each: Callable[[Mapping[str, tuple[int, ...]], int], Size]
) -> Size:
    """What a stored method needs to predict.

    Args:
        meta: the JSON values of its state.
        shapes: the shapes of its arrays.
        each: what one target's part needs, by the shapes of its arrays and the width of the features.
    """
    features = Features.from_meta(meta["features"], np.zeros(shapes["fill"], dtype=np.float32))
    targets = targets_from_json(meta["targets"])
    n, columns = shapes.get("reference", (0,))[0], sum(len(target.columns) for target in targets)
    own = by_owner(shapes)
    found = together(each(own[name], features.width) for j in range(len(targets)) if (name := f"target_{j}") in own)
    return replace(
        found,
        row_bytes=found.row_bytes + row_bytes(features.width, n, columns),
        row_operations=found.row_operations + features.width * (n + 1),
    )


def row_bytes(width: int, n_reference: int, n_columns: int) -> int:
    """Bytes that a row takes while it is predicted: features, likenesses to the reference, values."""
    return 12 * width + 44 * n_reference + 40 * n_columns


def array(arrays: Mapping[str, np.ndarray], name: str, *shape: int | None, finite: bool = True) -> np.ndarray:
    """A file's array of numbers, of that shape (None for any length); raises ``ModelFileError`` where it is not."""
    if name not in arrays:
        raise ModelFileError(f"the model lacks its array {name!r}", hint=AGAIN)
    found = arrays[name]
    fits = found.ndim == len(shape) and all(want in (None, have) for want, have in zip(shape, found.shape, strict=True))
    if not fits or found.dtype.kind not in "iuf" or (finite and not np.isfinite(found).all()):
        raise ModelFileError(f"the model's array {name!r} is of shape {found.shape}, which cannot be", hint=AGAIN)
    return found


def rows_of(arrays: Mapping[str, np.ndarray], base: Fitted) -> np.ndarray:
    """A file's row numbers; raises ``ModelFileError`` where one is not in the reference."""
    rows = array(arrays, "rows", None)
    if base.reference is None or rows.dtype.kind not in "iu" or not len(rows) or (rows[1:] <= rows[:-1]).any():
        raise ModelFileError("the model's rows are not whole, or one is named twice", hint=AGAIN)
    if rows.min() < 0 or rows.max() >= len(base.reference):
        raise ModelFileError(f"the model asks for a row beyond its {len(base.reference)}", hint=AGAIN)
    return rows.astype(np.int64)


def classes_of(target: Target) -> int:
    """How many classes a target has; 0 for numbers."""
    return {"binary": 2, "multiclass": len(target.classes)}.get(target.kind, 0)


def shares(target: Target, each: np.ndarray) -> np.ndarray:
    """A binary or multiclass target's columns from one probability a class [n, classes]."""
    return each[:, 1:] if target.kind == "binary" else each


def inside(target: Target, value: np.ndarray) -> np.ndarray:
    """Values [n, 1], held within a bounded target's bounds."""
    return value if target.bounds is None or target.kind != "bounded" else np.clip(value, *target.bounds)


def _values(fitted: Fitted, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and spreads [n, columns of all targets]."""
    asked: Any = x if fitted.reference is None else fitted.reference.likeness(x)
    values, spreads = [], []
    for target, part in zip(fitted.targets, fitted.parts, strict=True):
        empty = np.full((len(x), len(target.columns)), np.nan)
        value, spread = (empty, None) if part is None else part.predict(asked)
        values.append(value)
        spreads.append(empty if spread is None else spread)
    return np.concatenate(values, axis=1), np.concatenate(spreads, axis=1)
