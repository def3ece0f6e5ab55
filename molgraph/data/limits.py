"""Keep labels that are limits, such as >8, beside those that are measured values."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from molgraph.base.errors import LabelError
from molgraph.base.table import Table


def with_limits(table: Table, limits: Mapping[str, np.ndarray]) -> Table:
    """The table with the limits of its targets.

    Args:
        table: rows with targets.
        limits: float64 [n, 2] by target name, the lowest and the highest value that a label leaves open; NaN elsewhere.

    Raises:
        LabelError: a target with limits whose values are no plain numbers.

    Example:
        >>> from molgraph.base.table import Target
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["C", "CC"], targets=(Target("y"),), y=[1.0, np.nan])
        >>> with_limits(table, {"y": np.array([[np.nan, np.nan], [8.0, np.inf]])}).limited[:, 0].tolist()
        [False, True]
    """
    if not limits:
        return table
    out = np.full((len(table), len(table.row_targets), 2), np.nan)
    for j, target in enumerate(table.row_targets):
        if target.name not in limits:
            continue
        if target.kind != "regression":
            words = f"target {target.name!r} is {target.kind}, and limits such as >8 belong to numbers"
            raise LabelError(words, hint=f"ask for {target.name}:regression, or leave such labels out")
        out[:, j] = limits[target.name]
    return replace(table, limits=out)


def take_limits(values: np.ndarray, side: np.ndarray) -> tuple[np.ndarray | None, str]:
    """The limits among numbers, and a note on them; in ``values`` they become NaN. About a value (~) is the value.

    Args:
        values: float64 [n], changed.
        side: int8 [n], 1 where the value lies above the number, -1 where it lies below, else 0.

    Returns:
        float64 [n, 2], NaN where there is no limit; None where there are none at all.

    Example:
        >>> numbers = np.array([8.0, 5.0])
        >>> take_limits(numbers, np.array([1, 0]))[0].tolist(), numbers.tolist()
        ([[8.0, inf], [nan, nan]], [nan, 5.0])
    """
    at = np.flatnonzero((side != 0) & ~np.isnan(values))
    if not len(at):
        return None, ""
    limits = np.full((len(values), 2), np.nan)
    limits[at, 0] = np.where(side[at] > 0, values[at], -np.inf)
    limits[at, 1] = np.where(side[at] < 0, values[at], np.inf)
    values[at] = np.nan
    above = int((side[at] > 0).sum())
    counts = f"{above:,} above and {len(at) - above:,} below a value"
    return limits, f"{len(at):,} labels are limits ({counts}), and are learnt and judged as such"


def without_limits(table: Table) -> Table:
    """The table without its limits, for a method that learns measured values alone."""
    return table if table.limits is None else replace(table, limits=None)


def limits_as_values(table: Table) -> Table:
    """The table with each limit as a measured value: its finite end, or the middle of two."""
    if table.limits is None or table.y is None:
        return table
    return replace(table, y=np.where(table.limited, middle_of(table.limits), table.y), limits=None)


def middle_of(limits: np.ndarray) -> np.ndarray:
    """float64 [...]: the finite end of limits [..., 2], or the middle of two; NaN where there is no limit.

    Example:
        >>> middle_of(np.array([[8.0, np.inf], [-np.inf, 2.0], [1.0, 3.0]])).tolist()
        [8.0, 2.0, 2.0]
    """
    low, high = limits[..., 0], limits[..., 1]
    with np.errstate(invalid="ignore"):
        return np.where(np.isinf(high), low, np.where(np.isinf(low), high, (low + high) / 2))


def refuse_limits(table: Table, learner: str, way: str) -> None:
    """Raise ``LabelError`` where a table has limits, which the learner would leave out in silence."""
    if n := int(table.limited.sum()):
        words = f"{n:,} labels are limits such as >8, which {learner} cannot take"
        raise LabelError(
            words, hint=f"{way}; qualifiers='drop' leaves them out (on the command line --qualifiers drop)"
        )
