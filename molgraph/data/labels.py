"""Check that labels can be learned from, and drop or refuse those that cannot."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import CellError, EmptyError, LabelError
from molgraph.base.finite import LARGEST
from molgraph.data.levels import level_of, pooled, sizes_of
from molgraph.data.table import Table, row_name

SHOWN = 5


@dataclass(frozen=True)
class Labels:
    """What a table can teach."""

    # float64 [n, targets]: its labels; NaN where one is missing, and all over a target that cannot be learnt.
    # Targets of atoms or bonds have a row for each of them (``molgraph.data.levels.pooled``)
    y: np.ndarray
    unlearned: Mapping[str, str]  # why, for each target that cannot be learnt, by name


def with_kind(name: str, kind: str) -> str:
    """A target with its kind as it is typed in a shell.

    Example:
        >>> with_kind("pChEMBL mean", "multiclass")
        "'pChEMBL mean:multiclass'"
    """
    return shlex.quote(f"{name}:{kind}")


def check_targets(table: Table, readable: np.ndarray | None = None) -> Labels:
    """Find what a table can teach; every method asks this before it learns.

    One target among several that has no label, or the same in every row that has one, is left out with a reason:
    in a table of many sparse assays there is always one. Where nothing is left to learn, that is an error.

    Args:
        table: rows with targets.
        readable: bool [n], the rows whose molecule can be read; by default those that are ``ok``.

    Returns:
        The labels to learn from.

    Raises:
        DataError: no target, no readable row, no target that can be learnt; or a value that its target's kind cannot
            have (infinite, or 2 where labels are 0 and 1).

    Example:
        >>> from molgraph.data.table import make_table
        >>> check_targets(make_table(["C", "CC"], targets=(Target("y"),), y=[1.0, 1.0]))
        Traceback (most recent call last):
        ...
        molgraph.base.errors.LabelError: target 'y' is 1 in every row that has it: there is nothing to learn
          leave it out, or give rows in which it varies
    """
    level = level_of(table.targets)
    if not table.targets or (table.y is None and level == "row"):
        raise LabelError("the table has no target", hint="name one with --target NAME (in Python targets=[NAME])")
    ok, n, notes = table.ok if readable is None else table.ok & readable, len(table), table.reason[~table.ok]
    if level != "row":
        ok, table = np.repeat(ok, sizes_of(table)), pooled(table)
    assert table.y is not None
    rows = np.flatnonzero(ok)
    for target in table.targets:
        if target.kind == "multiclass" and not target.classes:
            raise LabelError(f"target {target.name!r} has no classes: no row has a label", hint="leave it out")
    if not len(rows):
        lacks, hint = (
            "that can be read",
            "is the SMILES column the right one? molgraph data audit FILE lists the reasons",
        )
        if level != "row":
            lacks, hint = f"with values of its {level}s", f"a cell holds a list, one value for each {level}"
        hint = f"the first row without: {notes[0]}" if len(notes) and (level != "row" or "column" in notes[0]) else hint
        raise EmptyError(f"none of the {n} rows holds a molecule {lacks}", hint=hint)
    check_labels(table.targets, table.y[rows], table.ids[rows])
    if table.weights is not None:  # a row that weighs nothing teaches nothing
        check_weights(table)
        rows = rows[table.weights[rows] > 0]
        if not len(rows):
            raise EmptyError("no readable row has a weight above 0", hint="choose another column of weights")
    limits = table.limited[rows].sum(axis=0) if table.limits is not None else np.zeros(len(table.targets), np.int64)
    faults = {t.name: _fault(t, table.y[rows, j], int(limits[j])) for j, t in enumerate(table.targets)}
    unlearned = {name: fault[1] for name, fault in faults.items() if fault is not None}
    if len(unlearned) == len(table.targets):
        if len(unlearned) == 1:
            alone, _, hint = next(filter(None, faults.values()))
            raise LabelError(f"target {table.targets[0].name!r} {alone}", hint=hint)
        text = "; ".join(f"{name}: {notes}" for name, notes in list(unlearned.items())[:SHOWN])
        raise LabelError(f"none of the {len(faults)} targets can be learnt ({text})"[:500], hint="choose other columns")
    y = table.y
    if unlearned:
        y = y.copy()
        y[:, [t.name in unlearned for t in table.targets]] = np.nan
    return Labels(y, unlearned)


def check_weights(table: Table) -> None:
    """Raise ``CellError`` for the first row whose weight is not a finite number of 0 or more."""
    weights = np.zeros(0) if table.weights is None else table.weights
    wrong = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(wrong):
        raise CellError(
            f"the weight of {row_name(int(wrong[0]), table.ids[wrong[0]])} is {weights[wrong[0]]:g}",
            hint="every row needs a finite weight of 0 or more",
        )


def check_labels(targets: Sequence[Target], y: np.ndarray, ids: np.ndarray) -> None:
    """Make sure that every label is one that its target can have; NaN is a missing one.

    Example:
        >>> import numpy as np
        >>> check_labels([Target("a", "binary")], np.array([[0.0], [2.0]]), np.array(["x", "007"], dtype=object))
        Traceback (most recent call last):
        ...
        molgraph.base.errors.LabelError: target 'a' is 2 in the row of id 007; a binary target has labels 0 and 1
          ask for a:multiclass or a:regression
    """
    for j, target in enumerate(targets):
        infinite = np.flatnonzero(np.isinf(y[:, j]))
        if len(infinite):
            raise LabelError(
                f"target {target.name!r} is infinite in {_rows(ids[infinite])}",
                hint="leave the cell empty where there is no value, or correct it",
            )
        large = np.flatnonzero(np.abs(y[:, j]) > LARGEST)
        if len(large):
            raise LabelError(
                f"target {target.name!r} is {y[large[0], j]:g} in {_rows(ids[large[:1]])}, beyond {LARGEST:.2g}",
                hint="correct the cell, or learn logarithms (--log)",
            )
        wrong, rule, hint = misfits(target, y[:, j])
        if len(wrong):
            first = y[wrong[0], j]
            same = wrong[y[wrong, j] == first]
            raise LabelError(f"target {target.name!r} is {first:g} in {_rows(ids[same])}; {rule}", hint=hint)


def misfits(target: Target, values: np.ndarray) -> tuple[np.ndarray, str, str]:
    """Numbers of the values that a target's kind cannot have, the rule that they break, and what to do.

    Example:
        >>> misfits(Target("a", "binary"), np.array([0, 2, np.nan]))[0].tolist()
        [1]
    """
    known = ~np.isnan(values)
    if target.kind == "binary":
        wrong, rule = known & ~np.isin(values, (0.0, 1.0)), "a binary target has labels 0 and 1"
        hint = f"ask for {with_kind(target.name, 'multiclass')} or {with_kind(target.name, 'regression')}"
    elif target.kind == "multiclass":
        wrong = known & ~np.isin(values, np.arange(len(target.classes)))
        rule, hint = f"its classes are numbered 0 to {len(target.classes) - 1}", "see the target's classes"
    elif target.kind == "bounded":
        low, high = bounds_of(target)
        wrong = (values < low) | (values > high)
        rule, hint = f"its bounds are {low:g} and {high:g}", "correct the value or the bounds"
    else:
        return np.zeros(0, dtype=np.int64), "", ""
    return np.flatnonzero(wrong), rule, hint


def bounds_of(target: Target) -> tuple[float, float]:
    """The lowest and the highest value of a bounded target; raises ``LabelError`` where it has none."""
    if target.bounds is None or not target.bounds[0] < target.bounds[1]:
        raise LabelError(
            f"target {target.name!r} is bounded, but has no bounds (lowest, highest)",
            hint="in Python: Target(name, 'bounded', bounds=(low, high)) as the target",
        )
    return target.bounds


def _fault(target: Target, values: np.ndarray, n_limits: int = 0) -> tuple[str, str, str] | None:
    """Why these labels teach nothing: of the only target, in a note on one among several, and what to do."""
    known = values[~np.isnan(values)]
    if n_limits and len(known) < 2:
        alone = f"has {n_limits:,} limits such as >8 and {len(known)} measured values: limits alone set no scale"
        return (alone, f"{n_limits:,} limits and {len(known)} measured values", "give measured values too, 2 or more")
    if not len(known):
        return ("has no value in any readable row", "no training label", "choose another column")
    if len(known) == 1:
        return ("has a value in one readable row alone", "one training label alone", "give more rows")
    if (known != known[0]).any():
        return None
    shown = target.classes[int(known[0])] if target.kind == "multiclass" else f"{known[0]:g}"
    note = f"all {len(known):,} training labels are {shown}"
    if target.kind in ("binary", "multiclass"):
        note = f"only class {shown} among {len(known):,} training labels"
    alone = f"is {shown} in every row that has it: there is nothing to learn"
    return (alone, note, "leave it out, or give rows in which it varies")


def _rows(ids: np.ndarray) -> str:
    """``the row of id 7`` or ``the rows of ids 1, 2, 3, 4, 5 and 12 more``; an id may be a row number from 0."""
    words = ", ".join(map(str, ids[:SHOWN])) + (f" and {len(ids) - SHOWN:,} more" if len(ids) > SHOWN else "")
    return f"the rows of ids {words}" if len(ids) > 1 else f"the row of id {words}"
