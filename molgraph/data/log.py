"""Turn targets into their decimal logarithms, named ``log10_...``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from decimal import Context, Decimal

import numpy as np

from molgraph.base.contracts import Target
from molgraph.base.errors import LabelError, UnsupportedError
from molgraph.data.table import Table

PREFIX = "log10_"
EXACT = Context(prec=25)


def log10(values: np.ndarray) -> np.ndarray:
    """Decimal logarithms, rounded correctly: the same bits on every processor, so that hashes of tables agree.

    numpy's own differ in the last bit between processors with and without AVX-512.

    Args:
        values: positive numbers, or nan.

    Example:
        >>> log10(np.array([10.0, 1000.0, np.nan]))
        array([ 1.,  3., nan])
    """
    distinct, at = np.unique(np.asarray(values, dtype=np.float64), return_inverse=True)
    exact = [float(EXACT.log10(Decimal(value))) for value in distinct.tolist()]
    return np.array(exact, dtype=np.float64)[at].reshape(np.shape(values))


def log_targets(table: Table) -> Table:
    """The table with log10 of every regression target; one whose name says that it is a logarithm stays.

    Raises:
        LabelError: a value that has no logarithm.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = log_targets(make_table(["C", "CC"], targets=(Target("IC50"),), y=[10.0, 1000.0]))
        >>> table.targets[0].name, table.y[:, 0]
        ('log10_IC50', array([1., 3.]))
    """
    if table.packed:
        raise UnsupportedError(
            "logarithms are taken of targets of whole rows", hint="write the logarithms of atoms' values into the file"
        )
    targets, notes, units = list(table.row_targets), list(table.notes), dict(table.units)
    y = None if table.y is None else table.y.copy()
    limits = None if table.limits is None else table.limits.copy()
    for j, target in enumerate(targets):
        if y is None or target.kind != "regression" or target.name.startswith(PREFIX):
            continue
        wrong = np.flatnonzero(y[:, j] <= 0)
        if len(wrong):
            raise LabelError(
                f"target {target.name!r} is {y[wrong[0], j]:g} in row {wrong[0] + 1}, which has no logarithm",
                hint="leave such cells empty, or learn the values as they are, without --log",
            )
        y[:, j] = log10(y[:, j])
        if limits is not None:
            limits[:, j] = log_limits(limits[:, j], target.name)
        targets[j] = replace(target, name=PREFIX + target.name)
        if (unit := units.pop(target.name, "")) != "":
            units[targets[j].name] = f"log10({unit})"
        notes.append(f"{target.name}: read as its decimal logarithm, {targets[j].name}")
    return replace(table, targets=tuple(targets), y=y, notes=tuple(notes), units=units, limits=limits)


def log_limits(limits: np.ndarray, name: str) -> np.ndarray:
    """float64 [n, 2]: decimal logarithms of limits; below 0 there is none, so an open end stays open.

    Raises:
        LabelError: a limit that no positive number meets, such as <0.
    """
    if (wrong := np.flatnonzero(limits[:, 1] <= 0)).size:
        words = f"target {name!r} is at most {limits[wrong[0], 1]:g} in row {wrong[0] + 1}, which has no logarithm"
        raise LabelError(words, hint="correct the cell, or learn the values as they are, without --log")
    with np.errstate(invalid="ignore"):
        finite = np.isfinite(limits) & (limits > 0)
    out = np.where(finite | np.isnan(limits) | (limits > 0), limits, -np.inf)
    out[finite] = log10(limits[finite])
    return out


def before_log(targets: Iterable[str | Target], names: Sequence[str]) -> list[str | Target]:
    """Targets as the columns to read: ``log10_IC50`` is made of ``IC50`` where the source has that one alone."""
    out: list[str | Target] = []
    for target in targets:
        name = target.name if isinstance(target, Target) else target
        source = name.removeprefix(PREFIX)
        if name in names or source not in names:
            out.append(target)
        else:
            out.append(replace(target, name=source) if isinstance(target, Target) else source)
    return out
