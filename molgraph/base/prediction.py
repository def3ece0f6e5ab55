"""Define ``Prediction``: one row for every row of a table, with a value or a reason."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from molgraph.base.finite import NO_VALUE, fail_rows
from molgraph.base.packed import Packed
from molgraph.base.printable import count, printable
from molgraph.base.table import Target

_SHOWN = 5  # rows and targets in a plain shell
_NAMED = 3  # targets in a reason
ENDS = ("_low", "_high")  # of an interval


@dataclass(frozen=True)
class Prediction:
    """One row for every input row, in order.

    Every method's predictions are made here, so this is the one place where a number that is not finite becomes NaN,
    and its row ``failed`` with a reason, and where a target that was not learned is left empty.

    Args:
        ids: the rows' ids, text, verbatim.
        targets: what was predicted.
        value: float64 [n, columns of all targets of whole rows]: a value, a probability of class 1, or one a class;
            NaN where there is none.
        status: ``ok``, ``unreadable`` or ``missing`` (see ``Table``), or ``failed``: the molecule was
            read, and the model gives no finite number for it.
        reason: one line for each row that lacks a value, else empty.
        spread: standard deviation over an ensemble's members (not calibrated), same shape as ``value``, or None.
        interval: (low, high), each of ``value``'s shape, or None.
        inputs: the molecules as they were given, for display.
        unlearned: why, for each target that the training labels could not teach; its columns are NaN, since a
            constant would look like a value that was learned.
        packed: the values of targets of atoms or bonds, by column, in the order of RDKit's atoms or bonds of the
            molecule as it was given; an ensemble's spread stands under ``COLUMN_spread``. NaN where an atom has none,
            as one that the standardiser removes.
        index: the labels of the rows in the pandas object that was predicted, which frames keep; or None.
    """

    ids: np.ndarray
    targets: tuple[Target, ...]
    value: np.ndarray
    status: np.ndarray
    reason: np.ndarray
    spread: np.ndarray | None = None
    interval: tuple[np.ndarray, np.ndarray] | None = None
    inputs: np.ndarray | None = None
    extra: Mapping[str, np.ndarray] = field(default_factory=dict)
    unlearned: Mapping[str, str] = field(default_factory=dict)
    packed: Mapping[str, Packed] = field(default_factory=dict)
    index: Any = None

    def __post_init__(self) -> None:
        n = len(self.ids)
        if self.value.shape != (n, len(self.columns)):
            raise ValueError(f"value has shape {self.value.shape}, expected {(n, len(self.columns))}")
        for name in ("status", "reason"):
            if len(getattr(self, name)) != n:
                raise ValueError(f"{name} has {len(getattr(self, name))} rows, expected {n}")
        value, status, reason = self.value, self.status, self.reason
        below = {name for t in self.targets if t.level != "row" and t.name in self.unlearned for name in t.columns}
        learned = np.array([t.name not in self.unlearned for t in self._row_targets for _ in t.columns], dtype=bool)
        if self.packed:
            status, reason = self._check_packed(below)
        if not learned.all() or below:
            value, reason = np.where(learned, value, np.nan), reason.copy()
            words = [f"{name} ({cause})" for name, cause in self.unlearned.items()]
            more = [f"and {len(words) - _NAMED} more"] * (len(words) > _NAMED)
            reason[(status == "ok") & (reason == "")] = "not learned: " + "; ".join(words[:_NAMED] + more)
        arrays = fail_rows(self.columns, value, learned, status, reason)
        for name, array in zip(("value", "status", "reason"), arrays, strict=True):
            object.__setattr__(self, name, array)  # frozen for everybody else
        if self.spread is not None:
            object.__setattr__(self, "spread", np.where(np.isfinite(self.spread), self.spread, np.nan))

    def __len__(self) -> int:
        return len(self.ids)

    def _check_packed(self, empty: Collection[str]) -> tuple[np.ndarray, np.ndarray]:
        """Empty columns that mean nothing, and mark rows none of whose atoms has a finite value."""
        status, reason, packed = self.status.copy(), self.reason.copy(), {}
        for name, item in self.packed.items():
            if len(item) != len(self.ids):
                raise ValueError(f"{name} has {len(item)} rows, expected {len(self.ids)}")
            use = np.isfinite(item.values) & (name.removesuffix("_spread") not in empty)
            packed[name] = Packed(item.offsets, np.where(use, item.values, np.nan))
            counts = np.bincount(np.repeat(np.arange(len(item)), item.sizes)[use], minlength=len(item))
            for row in np.flatnonzero((status == "ok") & (item.sizes > 0) & (counts == 0)) if name not in empty else ():
                status[row], reason[row] = NO_VALUE, f"the model gives no finite number for {name}"
        object.__setattr__(self, "packed", packed)
        return status, reason

    @property
    def _row_targets(self) -> tuple[Target, ...]:
        return tuple(t for t in self.targets if t.level == "row")

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of ``value``'s columns."""
        return tuple(c for t in self._row_targets for c in t.columns)

    @property
    def ok(self) -> np.ndarray:
        """bool [n]: rows that have a value (of every target that was learned)."""
        return self.status == "ok"

    def numbers(self, own: Collection[str]) -> dict[str, np.ndarray]:
        """Every column of numbers under a name of its own: a value, its spread and its interval, target by target.

        Probabilities of classes have no interval.

        A target of atoms or bonds is an object array of float64 arrays, None in rows without values.

        A target whose name, or the name of whose spread, is taken is called ``..._predicted`` in all its columns.

        Args:
            own: names that are taken by other columns.
        """
        parts = {"": self.value}
        if self.spread is not None:
            parts["_spread"] = self.spread
        if self.interval is not None:
            parts |= dict(zip(ENDS, self.interval, strict=True))
        numbers = [t.kind not in ("binary", "multiclass") for t in self._row_targets for _ in t.columns]
        out: dict[str, np.ndarray] = {}
        later = Counter(self.columns)
        for j, name in enumerate(self.columns):
            later[name] -= 1  # those that come keep their names where they can
            while any(f"{name}{end}" in own or f"{name}{end}" in out or later[f"{name}{end}"] for end in parts):
                name = f"{name}_predicted"
            own_parts = parts if numbers[j] else {end: part for end, part in parts.items() if end not in ENDS}
            out |= {f"{name}{end}": part[:, j] for end, part in own_parts.items()}
        for name, packed in self.packed.items():
            while name in own or name in out:
                name = f"{name}_predicted"
            out[name] = packed.lists()
            out[name][~self.ok] = None
        return out

    def to_frame(self) -> Any:
        """A pandas frame: id, input, a column a target, spread, interval, status, reason; indexed as the input was."""
        import pandas as pd

        out: dict[str, Any] = {"id": self.ids}
        if self.inputs is not None:
            out["input"] = self.inputs
        out |= {**self.numbers(("id", "input", "status", "reason", *self.extra)), **self.extra}
        return pd.DataFrame({**out, "status": self.status, "reason": self.reason}, index=self.index)

    def __repr__(self) -> str:
        more = f" and {len(self.targets) - _SHOWN} more" if len(self.targets) > _SHOWN else ""
        shown = ", ".join(target.name for target in self.targets[:_SHOWN]) + more
        lost = f"{int((~self.ok).sum()):,} without a value"
        unlearned = f", not learned: {', '.join(self.unlearned)}" if self.unlearned else ""
        rows = self.to_frame().head(_SHOWN).to_string(max_colwidth=32, max_cols=10)
        return printable(f"Prediction of {shown}: {count(len(self), 'row')}, {lost}{unlearned}\n{rows}")

    def _repr_html_(self) -> str:
        return self.to_frame()._repr_html_()
