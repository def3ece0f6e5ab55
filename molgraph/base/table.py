"""Define ``Table``: rows with their entities, targets, status and reason, in the order of the input."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from molgraph.base.errors import MissingColumnError, ShapeError, UnsupportedError, nearest
from molgraph.base.packed import Packed as Packed
from molgraph.base.printable import count

if TYPE_CHECKING:
    import pandas as pd

Kind = Literal["regression", "binary", "multiclass", "bounded"]
LevelName = Literal["row", "atom", "bond"]
VALUES: tuple[Kind, ...] = ("regression", "bounded")  # kinds whose labels are measured, so that repeats may differ
EntityKind = Literal["molecule", "sequence", "graph", "geometry", "reaction"]
Gaps = Literal["mark", "mean", "scale"]
OK, UNREADABLE, MISSING = "ok", "unreadable", "missing"
NO_MOLECULE = "not a molecule"  # RDKit reads it, and it is none: an open attachment point, a bare ion, a metal complex
_COLUMNS = ("ids", "status", "reason", "y", "weights", "features", "split", "index", "limits")  # a value a row, or None
_SHOWN = 5  # rows and targets in a plain shell


@dataclass(frozen=True)
class Target:
    """One quantity to learn.

    Args:
        name: the column's name.
        kind: ``regression``, ``binary`` (labels 0 and 1), ``multiclass`` or ``bounded``.
        level: what carries a value: the table's ``row`` (a molecule), an ``atom`` or a ``bond``.
        classes: class labels of a ``multiclass`` target, in order of their code 0, 1, ...
        bounds: lowest and highest value of a ``bounded`` target.
    """

    name: str
    kind: Kind = "regression"
    level: LevelName = "row"
    classes: tuple[str, ...] = ()
    bounds: tuple[float, float] | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the columns a prediction has for this target: one, or one a class."""
        if self.kind == "multiclass":
            return tuple(f"{self.name}:{c}" for c in self.classes)
        return (self.name,)


@dataclass(frozen=True)
class Entities:
    """One entity column: for each row a molecule, sequence, graph, geometry or reaction.

    Args:
        name: the column's name in the file.
        kind: what the values are.
        values: object array [n_rows]: text for molecules, sequences and reactions; any object that the kind's
            featuriser reads for graphs and geometries.
    """

    name: str
    kind: EntityKind
    values: np.ndarray

    @property
    def shown(self) -> np.ndarray:
        """For display, object array [n]: text as it stands, else a description, such as ``complex of 420 atoms``."""
        texts = [value if isinstance(value, str) else "" if value is None else str(value) for value in self.values]
        return np.array(texts, dtype=object)


@dataclass(frozen=True)
class Table:
    """Rows of a dataset; nothing edits one in place.

    A row that lacks one of its descriptors is not ``ok``, unless ``gaps`` says what stands there.

    Args:
        ids: object array [n] of text, verbatim from the file, or the row's number, from 0 as pandas counts.
        entities: one or more entity columns.
        targets: what is to be learnt; may be empty.
        y: float64 [n, number of row-level targets], in the order of ``row_targets``; NaN is missing.
        packed: values of the targets below the row level, by target name.
        weights: float64 [n] or None.
        features: float64 [n, f], extra descriptors of a row, or None.
        feature_names: the f names.
        split: object array [n] of the file's own split words, or None.
        status: object array [n]: ``ok``, ``unreadable`` or ``missing``.
        reason: object array [n]: one line where a row is not ``ok``, else empty.
        index: the labels of the rows in the pandas object that they came from, or None.
        notes: sentences on what was read otherwise than it stands in the source.
        units: the unit of each target whose values the source gives one, by target name.
        limits: float64 [n, number of row-level targets, 2] or None: the lowest and the highest value that a censored
            label leaves open, (8, inf) for >8; NaN elsewhere. ``y`` is NaN where there is one.
        gaps: what a method reads where a descriptor is NaN: nothing, the row is marked (``mark``); the column's usual
            value (``mean``); or nothing, with the row's other values scaled up (``scale``).
        points: float64 [points, 4] of each row's dose-response curve (``data.curves``), or None.
    """

    ids: np.ndarray
    entities: tuple[Entities, ...]
    status: np.ndarray
    reason: np.ndarray
    targets: tuple[Target, ...] = ()
    y: np.ndarray | None = None
    packed: Mapping[str, Packed] = field(default_factory=dict)
    weights: np.ndarray | None = None
    features: np.ndarray | None = None
    feature_names: tuple[str, ...] = ()
    split: np.ndarray | None = None
    index: pd.Index | None = None
    notes: tuple[str, ...] = ()
    units: Mapping[str, str] = field(default_factory=dict)
    limits: np.ndarray | None = None
    points: Packed | None = None
    gaps: Gaps = "mark"

    def __post_init__(self) -> None:
        n = len(self.ids)
        sized: dict[str, Any] = {name: getattr(self, name) for name in _COLUMNS}
        sized |= {f"column {e.name!r}": e.values for e in self.entities}
        sized |= {f"target {name!r}": packed for name, packed in self.packed.items()} | {"points": self.points}
        for name, values in sized.items():
            if values is not None and len(values) != n:
                raise ShapeError(f"{name} has {len(values)} rows, the table has {n}")
        if self.features is not None:
            self._mark_gaps(~np.isfinite(self.features) if self.gaps == "mark" else np.isinf(self.features))

    def _mark_gaps(self, gaps: np.ndarray) -> None:
        rows = np.flatnonzero(gaps.any(axis=1) & self.ok)
        if len(rows):
            status, reason = self.status.copy(), self.reason.copy()
            status[rows] = MISSING
            for row in rows:
                reason[row] = f"no finite value in the descriptor column {self.feature_names[gaps[row].argmax()]!r}"
            object.__setattr__(self, "status", status)
            object.__setattr__(self, "reason", reason)

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def row_targets(self) -> tuple[Target, ...]:
        """Targets at the row level, in the order of ``y``'s columns."""
        return tuple(t for t in self.targets if t.level == "row")

    @property
    def limited(self) -> np.ndarray:
        """bool [n, number of row-level targets]: labels that are a limit, such as >8."""
        if self.limits is None:
            return np.zeros((len(self), len(self.row_targets)), dtype=bool)
        return ~np.isnan(self.limits[..., 0])

    @property
    def ok(self) -> np.ndarray:
        """bool [n]: rows that could be read."""
        return self.status == OK

    def entity(self, kind: EntityKind = "molecule") -> Entities:
        """The first entity column of a kind; raises ``MissingColumnError`` where there is none."""
        if match := next((column for column in self.entities if column.kind == kind), None):
            return match
        raise MissingColumnError(f"the table has no {kind} column", hint=f"it has: {[e.kind for e in self.entities]}")

    def column(self, name: str) -> Entities:
        """The entity column of a name; raises ``MissingColumnError`` where there is none."""
        known = {column.name: column for column in self.entities}
        if name not in known:
            raise MissingColumnError(f"the table has no entity column {name!r}", hint=nearest(name, known))
        return known[name]

    def check_one_molecule(self, reader: str) -> None:
        """Refuse a table that holds more than one column of molecules and targets of whole rows.

        Raises:
            UnsupportedError: a second column of molecules, a column of another kind, or a target of atoms or bonds.
        """
        if below := [t for t in self.targets if t.level != "row"]:
            raise UnsupportedError(
                f"{reader} learns targets of whole rows, and {below[0].name!r} belongs to each {below[0].level}",
                hint="take a graph model, such as dmpnn",
            )
        first = next((e for e in self.entities if e.kind == "molecule"), None)
        unread = [e for e in self.entities if e is not first]
        if unread:
            if first is None:
                words, ways = f"not {unread[0].name!r} ({unread[0].kind})", ""
            else:
                words = f"and would ignore {unread[0].name!r} ({unread[0].kind})"
                ways = f"leave it out by name, --input {first.name} (in Python inputs=[{first.name!r}]), or "
            reads = f"take a model that reads a {unread[0].kind}: molgraph models --search {unread[0].kind}"
            raise UnsupportedError(f"{reader} reads one column of molecules, {words}", hint=ways + reads)

    def with_entities(self, names: Sequence[str]) -> Table:
        """The same rows with some of the entity columns alone, in the order of their names."""
        return replace(self, entities=tuple(self.column(name) for name in names))

    @property
    def inputs(self) -> np.ndarray:
        """The first entity column for display, object array [n]: text as it stands, else a description of each."""
        return self.entities[0].shown

    @property
    def smiles(self) -> np.ndarray:
        """The first molecule column's text, object array [n]."""
        return self.entity("molecule").values

    def take(self, rows: np.ndarray) -> Table:
        """The table of those rows (indices or a bool mask), in that order."""
        rows = np.asarray(rows)
        rows = np.flatnonzero(rows) if rows.dtype == bool else rows.astype(np.int64)
        columns = {name: getattr(self, name) for name in _COLUMNS}
        picked: dict[str, Any] = {name: None if array is None else array[rows] for name, array in columns.items()}
        return replace(
            self,
            entities=tuple(replace(e, values=e.values[rows]) for e in self.entities),
            packed={name: p.take(rows) for name, p in self.packed.items()},
            points=None if self.points is None else self.points.take(rows),
            **picked,
        )

    def with_status(self, rows: np.ndarray, status: str, reasons: np.ndarray) -> Table:
        """The same rows, those named marked with a status and their reasons; rows marked before keep theirs."""
        rows = np.asarray(rows, dtype=np.int64)
        fresh = self.status[rows] == OK
        new_status, new_reason = self.status.copy(), self.reason.copy()
        new_status[rows[fresh]] = status
        new_reason[rows[fresh]] = np.asarray(reasons, dtype=object)[fresh]
        return replace(self, status=new_status, reason=new_reason)

    def with_smiles(self, values: np.ndarray) -> Table:
        """The same rows with the first molecule column's text replaced."""
        old = self.entity("molecule")
        return replace(self, entities=tuple(replace(e, values=values) if e is old else e for e in self.entities))

    def with_targets(self, names: list[str]) -> Table:
        """The same rows with some of the targets alone."""
        known = {t.name: t for t in self.targets}
        for name in names:
            if name not in known:
                raise MissingColumnError(f"the table has no target {name!r}", hint=nearest(name, known))
        columns = [t.name for t in self.row_targets]
        order = [columns.index(name) for name in names if name in columns]
        y = None if self.y is None else self.y[:, order]
        limits = None if self.limits is None else self.limits[:, order]
        packed = {name: self.packed[name] for name in names if name in self.packed}
        return replace(self, targets=tuple(known[name] for name in names), y=y, packed=packed, limits=limits)

    def to_frame(self) -> pd.DataFrame:
        """A pandas frame of ids, entities, targets, features, weights, split, status and reason, by ``index``.

        A column of the source with one of the table's own names is called ``input_...``.
        """
        import pandas as pd

        pairs = [(e.name, e.values) for e in self.entities]
        pairs += zip([t.name for t in self.row_targets], () if self.y is None else self.y.T, strict=False)
        pairs += [(name, packed.lists()) for name, packed in self.packed.items()]
        pairs += zip(self.feature_names, () if self.features is None else self.features.T, strict=False)
        extras = {"weight": self.weights, "split": self.split, "status": self.status, "reason": self.reason}
        extras = {name: values for name, values in extras.items() if values is not None}
        out = {"id": self.ids}
        for name, values in pairs:
            while name in out or name in extras:
                name = f"input_{name}"
            out[name] = values
        return pd.DataFrame(out | extras, index=self.index)

    def __repr__(self) -> str:
        lost = f"{int((~self.ok).sum()):,} without a molecule" if self.entities else "no molecule column"
        words = [f"Table of {count(len(self), 'row')}, {lost}"]
        for j, target in enumerate(self.row_targets[:_SHOWN]):
            n_limits = int(self.limited[:, j].sum())
            gone = 0 if self.y is None else int(np.isnan(self.y[:, j]).sum()) - n_limits
            details = f", {n_limits:,} limits" * bool(n_limits) + f", {gone:,} without a value" * bool(gone)
            words.append(f"target {target.name} ({target.kind}{details})")
        more = len(self.row_targets) - _SHOWN
        rows = self.to_frame().head(_SHOWN).to_string(max_colwidth=32, max_cols=10)
        return f"{'; '.join(words + [f'{more} more targets'] * (more > 0))}\n{rows}"

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()
