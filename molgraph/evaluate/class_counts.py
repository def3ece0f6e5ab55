"""Count the rows of each class in the parts of a table."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd

from molgraph.data.splits.split import PARTS
from molgraph.data.table import Table

SHOWN = 6  # targets on a terminal


def class_counts(table: Table, parts: Mapping[str, np.ndarray]) -> pd.DataFrame:
    """Rows of each class that can be read and are labelled, a row for each target and class, a column for each part.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.table import make_table
        >>> t = make_table(["C", "CC", "CCC"], targets=(Target("hit", "binary"),), y=[0.0, 1.0, 0.0])
        >>> class_counts(t, {"train": np.array([0, 1]), "test": np.array([2])}).to_dict("records")
        [{'target': 'hit', 'class': '0', 'train': 1, 'test': 1}, {'target': 'hit', 'class': '1', 'train': 1, 'test': 0}]
    """
    rows = []
    for j, target in enumerate(table.row_targets):
        if table.y is None or target.kind not in ("binary", "multiclass"):
            continue
        y = np.where(table.ok, table.y[:, j], np.nan)
        for code, label in enumerate(target.classes if target.kind == "multiclass" else ("0", "1")):
            counts = {part: int((y[take] == code).sum()) for part, take in parts.items()}
            rows.append({"target": target.name, "class": label, **counts})
    return pd.DataFrame(rows, columns=["target", "class", *parts])


def count_lines(counts: pd.DataFrame) -> dict[str, str]:
    """One line a target, by its name.

    Example:
        >>> counts = pd.DataFrame({"target": ["hit"] * 2, "class": ["0", "1"], "train": [752, 48], "test": [1099, 1]})
        >>> count_lines(counts)
        {'hit': 'rows of hit 0 | 1: train 752 | 48, test 1,099 | 1'}
    """
    lines, parts = {}, list(counts.columns.drop(["target", "class"]))
    parts.sort(key=[*PARTS, *parts].index)  # a model file has them by the alphabet
    for name, part in () if counts.empty else counts.groupby("target", sort=False):
        texts = [f"{p} {' | '.join(f'{n:,}' for n in part[p])}" for p in parts]
        lines[str(name)] = f"rows of {name} {' | '.join(part['class'])}: {', '.join(texts)}"
    return lines


def few_lines(counts: pd.DataFrame) -> list[str]:
    """The lines of the first targets, and how many more there are."""
    lines = list(count_lines(counts).values())
    more = len(lines) - SHOWN
    return [*lines[:SHOWN], *[f"and of {more:,} more targets with classes"] * (more > 0)]
