"""Say what a table's targets are learned as, and where logarithms or classes may be meant."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.data.labels import with_kind
from molgraph.data.profile import WIDE, decades_of
from molgraph.data.table import Table

SHOWN = 5  # targets in a line
MOST_CLASSES = 10  # different whole numbers that may be meant as classes


def range_notes(table: Table) -> list[str]:
    """A note on each regression target whose positive values go over many decades, or which holds two numbers alone."""
    notes = []
    for j, target in enumerate(table.row_targets):
        values = np.empty(0) if table.y is None else table.y[~np.isnan(table.y[:, j]), j]
        if target.kind != "regression" or not len(values):
            continue
        if (decades := decades_of(values)) > WIDE:
            notes.append(f"{target.name}: positive values over {decades:.1f} decades; --log learns their logarithms")
        if len(pair := np.unique(values)) == 2:
            classes = with_kind(target.name, "multiclass")
            words = f"holds {pair[0]:g} and {pair[1]:g} alone and is learned as numbers"
            notes.append(f"{target.name}: {words}; {classes} for classes")
    return notes


def describe_targets(table: Table, columns: Sequence[str] = ()) -> str:
    """What a table's targets are learnt as, and how to ask for classes where few whole numbers look like them.

    Args:
        table: with targets.
        columns: the targets as they were asked for, some with their kind, as in ``z:regression``.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> describe_targets(make_table(["C", "CC", "CCC"], targets=(Target("z"),), y=[0.0, 1.0, 2.0]))
        'z (regression; z:multiclass for classes)'
    """
    words = [f"{t.name} ({t.kind}, of each {t.level})" for t in table.targets if t.level != "row"]
    for j, target in enumerate(table.row_targets[:SHOWN]):
        classes = target.kind == "regression" and table.y is not None and _look_like_classes(table.y[:, j])
        advice = ""
        if classes and f"{target.name}:{target.kind}" not in columns:
            advice = f"; {with_kind(target.name, 'multiclass')} for classes"
        words.append(f"{target.name} ({target.kind}{advice})")
    more = len(table.targets) - len(words)
    return ", ".join(words) + (f" and {more:,} more" if more else "")


def _look_like_classes(values: np.ndarray) -> bool:
    distinct = np.unique(values[np.isfinite(values)])
    return len(distinct) != 2 and len(distinct) <= MOST_CLASSES and bool((distinct == np.round(distinct)).all())
