"""Fit one network for each kind of target of a table, predict with the networks, and store them."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Protocol, TypeVar

import numpy as np

from molgraph.auxiliary.targets import reasons, target_meta, whole
from molgraph.base.contracts import Method, Prediction, State, Target
from molgraph.base.errors import DataError, ModelFileError
from molgraph.base.finite import check_finite
from molgraph.base.ranges import Range
from molgraph.base.size import Shapes, Size, by_owner
from molgraph.data.labels import check_targets
from molgraph.data.table import UNREADABLE, Table
from molgraph.data.target_json import notes_of, restore_unlearned, targets_from_json
from molgraph.train.restore import A_USE, BONDS, bounded_by

AGAIN = "fetch the file again"
Width = Annotated[int, Range(1, 100_000)]
M = TypeVar("M", bound=Method)


class Peer(Protocol):
    """A fitted network of one group."""

    def predict(self, smiles: list[str], extra: np.ndarray) -> np.ndarray:
        """float64 [n, k]: scaled values, P(class 1) of each target, or one probability a class."""

    def arrays(self) -> dict[str, np.ndarray]:
        """Its weights."""


@dataclass(frozen=True)
class Group:
    """Targets that one network learns: all numbers, all binary ones, or one of several classes.

    Args:
        kind: ``regression``, ``binary`` or ``multiclass``.
        columns: their numbers among the table's targets.
        n_classes: of a multiclass target; 0 for others.
        d_extra: number of the table's own feature columns.
    """

    kind: str
    columns: tuple[int, ...]
    n_classes: int = 0
    d_extra: int = 0


@dataclass(frozen=True)
class Rows:
    """Readable rows for a group.

    Args:
        smiles: n molecules.
        y: float64 [n, targets of the group]: scaled values, or class codes; NaN where missing.
        weights: float64 [n], of mean 1.
        extra: float32 [n, d_extra], standardised.
    """

    smiles: list[str]
    y: np.ndarray
    weights: np.ndarray
    extra: np.ndarray


@dataclass(frozen=True)
class Fitted:
    """What a fit leaves.

    Args:
        scale: float64 [2, targets]: mean and deviation that numbers were standardised with.
        names: the table's own feature columns.
        extra: float64 [2, d_extra]: their mean and deviation.
    """

    targets: tuple[Target, ...]
    unlearned: dict[str, str]
    scale: np.ndarray
    names: tuple[str, ...]
    extra: np.ndarray
    groups: tuple[Group, ...]
    peers: tuple[Peer, ...]


def groups_of(targets: tuple[Target, ...], unlearned: Mapping[str, str], d_extra: int) -> tuple[Group, ...]:
    """The networks that a table needs."""
    learned = [j for j, t in enumerate(targets) if t.name not in unlearned]
    numbers = tuple(j for j in learned if targets[j].kind in ("regression", "bounded"))
    binary = tuple(j for j in learned if targets[j].kind == "binary")
    several = [j for j in learned if targets[j].kind == "multiclass"]
    found = [Group(kind, js, 0, d_extra) for kind, js in (("regression", numbers), ("binary", binary)) if js]
    return (*found, *(Group("multiclass", (j,), len(targets[j].classes), d_extra) for j in several))


def learn(
    method: Method, table: Table, valid: Table | None, train: Callable[[Group, Rows, Rows | None], Peer]
) -> Fitted:
    """Train a network a group; sets the method's ``notes``."""
    readable = reasons(table) == ""
    targets, labels = table.row_targets, check_targets(table, readable)
    scale = np.array([np.zeros(len(targets)), np.ones(len(targets))])
    for j, target in enumerate(targets):
        y = labels.y[readable & ~np.isnan(labels.y[:, j]), j]
        if target.kind in ("regression", "bounded") and len(y):
            scale[:, j] = y.mean(), y.std() or 1.0
    features = np.zeros((len(table), 0)) if table.features is None else table.features
    extra = np.array([features[readable].mean(axis=0), features[readable].std(axis=0)])
    extra[1][extra[1] == 0] = 1.0
    names = tuple(table.feature_names)
    groups = groups_of(targets, labels.unlearned, len(names))
    base = Fitted(targets, dict(labels.unlearned), scale, names, extra, groups, ())
    peers = []
    for group in groups:
        rows = _rows(base, table, readable, labels.y, group)
        judged = None
        if valid is not None and valid.y is not None:
            judged = _rows(base, valid, reasons(valid) == "", valid.y, group)
            judged = judged if judged.smiles else None
        assert rows.smiles
        peers.append(train(group, rows, judged))
        check_finite(peers[-1].arrays())
    method.notes = notes_of(labels.unlearned)
    return Fitted(targets, dict(labels.unlearned), scale, names, extra, groups, tuple(peers))


def predict(method: Method, table: Table) -> Prediction:
    """Predict every row, in order."""
    fitted: Fitted = whole(method)
    why = reasons(table)
    bad = np.flatnonzero(why != "")
    table = table.with_status(bad, UNREADABLE, why[bad])
    rows = np.flatnonzero(table.ok)
    edges = np.cumsum([0] + [len(t.columns) for t in fitted.targets])
    value = np.full((len(table), edges[-1]), np.nan)
    extra = _extra(fitted, table)[rows]
    if len(rows):
        smiles = list(table.smiles[rows])
        for group, peer in zip(fitted.groups, fitted.peers, strict=True):
            found = peer.predict(smiles, extra)
            for i, j in enumerate(group.columns):
                target, columns = fitted.targets[j], slice(edges[j], edges[j + 1])
                if group.kind == "multiclass":
                    value[rows, columns] = found
                    continue
                one = found[:, [i]] * fitted.scale[1, j] + fitted.scale[0, j]
                if target.kind == "bounded" and target.bounds is not None:
                    one = np.clip(one, *target.bounds)
                value[rows, columns] = one
    empty = fitted.unlearned
    return Prediction(
        table.ids, fitted.targets, value, table.status, table.reason, inputs=table.smiles, unlearned=empty
    )


def state(method: Method) -> State:
    """The networks' weights as arrays, the rest as JSON."""
    fitted: Fitted = whole(method)
    arrays = {"scale": fitted.scale, "extra": fitted.extra}
    for i, peer in enumerate(fitted.peers):
        arrays |= {f"group_{i}.{name}": array for name, array in peer.arrays().items()}
    meta = {
        "params": method.get_params(),
        "targets": [target_meta(t) for t in fitted.targets],
        "unlearned": fitted.unlearned,
        "feature_names": list(fitted.names),
    }
    return State(arrays, meta)


def restore(cls: type[M], state: State, load: Callable[[M, Group, Mapping[str, np.ndarray]], Peer]) -> M:
    """Rebuild a fitted method; raises ``ModelFileError`` where the state is not whole."""
    try:
        method = cls(**state.meta["params"])
        targets = targets_from_json(state.meta["targets"])
        unlearned = restore_unlearned(state.meta, targets)
        names = tuple(str(name) for name in state.meta["feature_names"])
        scale, extra = np.asarray(state.arrays["scale"]), np.asarray(state.arrays["extra"])
        if scale.shape != (2, len(targets)) or extra.shape != (2, len(names)):
            raise ValueError("the scales do not fit the targets")
        if not (np.isfinite(scale).all() and np.isfinite(extra).all() and (extra[1] > 0).all()):
            raise ValueError("the scales are not finite")
        groups = groups_of(targets, unlearned, len(names))
        own, peers = by_owner(state.arrays), []
        for i, group in enumerate(groups):
            arrays = own.get(f"group_{i}", {})
            with bounded_by({name: array.shape for name, array in arrays.items()}):
                peer = load(method, group, arrays)
            peer.predict(["CO"], np.zeros((1, len(names)), dtype=np.float32))  # settings that no prediction can use
            peers.append(peer)
    except (LookupError, TypeError, ValueError, AttributeError, RuntimeError, ArithmeticError, AssertionError) as error:
        raise ModelFileError(f"the model's description is not whole: {error}"[:500], hint=AGAIN) from error
    method._fitted = Fitted(targets, unlearned, scale, names, extra, groups, tuple(peers))  # type: ignore[attr-defined]
    method.notes = notes_of(unlearned)
    return method


def size_of(meta: Mapping[str, Any], shapes: Shapes, repeats: str = "") -> Size:
    """What stored networks need: their weights twice, and each weight once for a bond and a use.

    Args:
        meta: the JSON values of a state.
        shapes: the shapes of its arrays.
        repeats: the parameter that says how often the same weights are used.
    """
    numbers = sum(math.prod(shape) for shape in shapes.values())
    columns = sum(len(target.columns) for target in targets_from_json(meta["targets"]))
    uses = int(meta["params"].get(repeats, 1))
    return Size(bytes=8 * numbers, row_bytes=40 * columns, row_operations=uses * (BONDS * numbers + A_USE))


def _rows(fitted: Fitted, table: Table, readable: np.ndarray, y: np.ndarray, group: Group) -> Rows:
    js = np.array(group.columns)
    weights = np.ones(len(table)) if table.weights is None else table.weights
    use = np.flatnonzero(readable & ~np.isnan(y[:, js]).all(axis=1) & (weights > 0))
    scaled = (y[np.ix_(use, js)] - fitted.scale[0, js]) / fitted.scale[1, js]
    mean = weights[use].mean() if len(use) else 1.0
    return Rows(list(table.smiles[use]), scaled, weights[use] / mean, _extra(fitted, table)[use])


def _extra(fitted: Fitted, table: Table) -> np.ndarray:
    have = list(table.feature_names)
    lacking = [name for name in fitted.names if name not in have]
    if lacking:
        raise DataError(
            f"the model was trained with the feature columns {list(fitted.names)}, the table lacks {lacking}",
            hint="give the same columns with features=",
        )
    if not fitted.names or table.features is None:
        return np.zeros((len(table), 0), dtype=np.float32)
    picked = table.features[:, [have.index(name) for name in fitted.names]]
    return ((picked - fitted.extra[0]) / fitted.extra[1]).astype(np.float32)
