"""Find targets that have only one class in a part or fold."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from molgraph.base.errors import MissingOptionError
from molgraph.base.printable import count
from molgraph.data.splits.split import PARTS, Split
from molgraph.data.table import Table

FEW = 10  # rows of a class below which a part says little about it
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
    part_of = np.full(len(table), -1)
    for number, part in enumerate(PARTS):
        part_of[getattr(split, part)] = number
    (targets,) = one_class_folds(table, np.arange(len(table)), part_of[None], PARTS)
    return {part: targets[part] for part in PARTS if part in targets and len(getattr(split, part))}


def one_class_folds(
    table: Table, rows: np.ndarray, parts: np.ndarray, names: Sequence[str] = ("train", "test")
) -> list[dict[str, list[str]]]:
    """``one_class`` of each fold, for the parts ``names``; ``parts`` [k, m] has the part of each of the rows [m]."""
    folds: list[dict[str, list[str]]] = [{} for _ in parts]
    for target, y in _labels(table, rows):
        measured = np.isfinite(y)
        _, codes = np.unique(y[measured], return_inverse=True)
        for fold, part_of in zip(folds, parts, strict=True):
            for name in names:
                of_part = codes[part_of[measured] == PARTS.index(name)]
                if np.count_nonzero(np.bincount(of_part)) < 2:
                    fold.setdefault(name, []).append(target)
    return folds


def hopeless(table: Table, rows: np.ndarray, group_of: np.ndarray, k: int) -> frozenset[str]:
    """Class targets that no division of whole groups into k folds can give two classes in every fold.

    A fold with two classes needs a row of any class but the commonest, and there must be k groups that have one.
    """
    targets = set()
    for name, y in _labels(table, rows):
        measured = np.isfinite(y)
        others = [len(np.unique(group_of[measured & (y != c)])) for c in np.unique(y[measured])]
        if len(others) < 2 or min(others) < k:
            targets.add(name)
    return frozenset(targets)


def class_counts(table: Table, rows: np.ndarray, group_of: np.ndarray) -> np.ndarray:
    """int64 [n_groups, 1 + n_classes]: rows of each group, then of each class of each class target.

    Raises:
        MissingOptionError: the table has no target of classes.
    """
    labels = _labels(table, rows)
    if not labels:
        raise MissingOptionError(
            "the split balances classes, and the table has no target of classes",
            hint="name one, as in --target active:binary, or use 'scaffold/balanced' or 'random'",
        )
    n = int(group_of.max(initial=-1)) + 1
    columns = [np.bincount(group_of, minlength=n)]
    columns += [np.bincount(group_of[y == c], minlength=n) for _, y in labels for c in np.unique(y[np.isfinite(y)])]
    return np.stack(columns, axis=1)


def few_of_a_class(table: Table, split: Split) -> list[str]:
    """A line for each part of a split with too few rows of a target's rarest class, and the splitter that balances.

    Example:
        >>> from molgraph.base.contracts import Target
        >>> from molgraph.data.splits import split_table
        >>> from molgraph.data.table import make_table
        >>> t = make_table(["C" * n for n in range(1, 101)], targets=(Target("hit", "binary"),), y=[0] * 80 + [1] * 20)
        >>> print(few_of_a_class(t, split_table(t, "column", column=["train"] * 89 + ["test"] * 11))[0])
        train has 9 rows of the rarer class of hit
        >>> few_of_a_class(t, split_table(t, "random/stratified", fractions=(0.5, 0.0, 0.5)))
        []
    """
    labels, notes = _labels(table, np.arange(len(table))), []
    for part in PARTS:
        rows, few = getattr(split, part), []
        for name, y in labels:
            classes = np.unique(y[np.isfinite(y)])
            least = min((int((y[rows] == c).sum()) for c in classes), default=0)
            if len(classes) > 1 and least < FEW and len(rows):
                few.append((least, name))
        if few:
            least, name = min(few)
            others = f" (fewer than {FEW}: {len(few)} targets)" if len(few) > 1 else ""
            notes.append(f"{part} has {count(least, 'row')} of the rarer class of {name}{others}")
    family = split.splitter.split("/")[0]
    if notes and family in ("random", "scaffold") and not split.splitter.endswith("/stratified"):
        notes[-1] += f"; the split {family}/stratified gives each part its share"
    return notes


def _labels(table: Table, rows: np.ndarray) -> list[tuple[str, np.ndarray]]:
    if table.y is None:
        return []
    return [(t.name, table.y[rows, j]) for j, t in enumerate(table.row_targets) if t.kind in _CLASSED]
