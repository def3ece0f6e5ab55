"""A table's labels and the part or fold of each row in; the targets that have one class there, by name, out."""

from __future__ import annotations

import numpy as np

from molgraph.data.splits.split import PARTS, Split
from molgraph.data.table import Table

_CLASSED = ("binary", "multiclass")


def one_class(table: Table, split: Split) -> dict[str, list[str]]:
    """Class targets that have fewer than two classes among a part's measured rows: part to their names.

    Such a target cannot be learned (train) or judged by a ranking metric (test) on this split. Empty parts and parts
    without any of them have no entry.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.splits import split_table
        >>> from molgraph.data.table import make_table
        >>> t = make_table(["C", "CC", "CCC", "CCCC"], targets=(Target("toxic", "binary"),), y=[0, 1, 1, 1])
        >>> one_class(t, split_table(t, "column", column=["train", "train", "test", "test"]))
        {'test': ['toxic']}
    """
    found = {}
    for part in PARTS:
        rows = getattr(split, part)
        if len(rows):
            found[part] = [name for name, y in _labels(table, rows) if len(np.unique(y[np.isfinite(y)])) < 2]
    return {part: names for part, names in found.items() if names}


def one_class_folds(
    table: Table, rows: np.ndarray, fold_of: np.ndarray, k: int, with_valid: bool = False
) -> list[dict[str, list[str]]]:
    """``one_class`` of each fold of a cross-validation, of its train and test parts.

    Args:
        table: all rows.
        rows: int64 [m], the rows that are divided.
        fold_of: int64 [m], the fold in which each of them is tested.
        k: number of folds.
        with_valid: whether the next fold validates, so that it does not train.
    """
    found: list[dict[str, list[str]]] = [{} for _ in range(k)]
    for name, y in _labels(table, rows):
        known = np.isfinite(y)
        values, codes = np.unique(y[known], return_inverse=True)
        counts = np.zeros((k, len(values)), dtype=np.int64)
        np.add.at(counts, (fold_of[known], codes), 1)
        for fold in range(k):
            train = counts.sum(axis=0) - counts[fold] - (counts[(fold + 1) % k] if with_valid else 0)
            for part, there in (("train", train), ("test", counts[fold])):
                if np.count_nonzero(there) < 2:
                    found[fold].setdefault(part, []).append(name)
    return found


def hopeless(table: Table, rows: np.ndarray, group_of: np.ndarray, k: int) -> frozenset[str]:
    """Class targets that no division of whole groups into k folds can give two classes in every fold.

    A fold with two classes needs a row of any class but the commonest, and there must be k groups that have one.
    """
    out = set()
    for name, y in _labels(table, rows):
        known = np.isfinite(y)
        values, codes = np.unique(y[known], return_inverse=True)
        groups = [len(np.unique(group_of[known][codes != c])) for c in range(len(values))]
        if len(values) < 2 or min(groups) < k:
            out.add(name)
    return frozenset(out)


def _labels(table: Table, rows: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if table.y is None:
        return []
    return [(t.name, table.y[rows, j]) for j, t in enumerate(table.row_targets) if t.kind in _CLASSED]
