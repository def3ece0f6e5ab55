"""Make the frozen splits of a cross-validation, once or repeated."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from molgraph.base.errors import BadValueError, DataError, EmptyError, UnsupportedError, UnusedSettingError
from molgraph.base.registry import get, names
from molgraph.base.seeds import derive
from molgraph.data.splits.assign import fill_evenly, fill_folds
from molgraph.data.splits.classes import class_counts, hopeless, one_class_folds
from molgraph.data.splits.make import begin, freeze
from molgraph.data.splits.split import Split, row_contents
from molgraph.data.splits.splitter import agreed
from molgraph.data.table import Table

MOST_DRAWS = 20  # drawing anew is cheap beside one model, but a target with too few positives never comes right


def kfold(
    table: Table,
    k: int = 5,
    splitter: str = "scaffold/balanced",
    seed: int = 0,
    *,
    with_valid: bool | None = None,
    **params: Any,
) -> list[Split]:
    """k splits for cross-validation: every usable row is tested exactly once, groups of the splitter stay whole.

    Folds in which a target has one class are drawn anew or marked, as ``repeated_kfold`` says.

    Args:
        table: the rows.
        k: number of folds, 2 or more.
        splitter: a splitter that groups: ``random``, ``scaffold/balanced``, ``scaffold/generic``, ``cluster/butina``,
            ``group``, ``cold-drug``, ``cold-protein``, ``cold-both``; or ``column``, whose own fold numbers are taken.
            Of ``cold-both`` a fold tests the pairs of its drugs with its proteins and learns from pairs that have
            neither; the others are left out of that fold.
        seed: what shuffling begins from.
        with_valid: whether the fold after the tested one validates; by default where k is 3 or more.
        **params: the splitter's own settings.

    Raises:
        UsageError: an unknown splitter, one that makes its own parts, or a k that is too small.
        DataError: fewer groups than folds.
    """
    return list(_folds(table, None, k, splitter, int(seed), k >= 3 if with_valid is None else with_valid, params))


def repeated_kfold(
    table: Table,
    repeats: int = 5,
    k: int = 5,
    splitter: str = "random",
    seed: int = 0,
    *,
    with_valid: bool = False,
    **params: Any,
) -> list[Split]:
    """Repeated grouped cross-validation: ``repeats`` times k folds, in each repeat every usable row tested once.

    Ash et al. 2025 (J. Chem. Inf. Model. 65:9398) compare methods on 5 x 5 such folds. A draw whose folds leave a
    binary or multiclass target with one class, in a test part or a training part, is drawn again from the next seed
    of a fixed sequence (``derive(seed, "repeat", repeat, "draw", draw)``; the first draw of the first repeat begins
    from ``seed`` itself), 20 draws at most; the draw with fewest such folds is kept. A target whose rarer class stands
    in fewer groups than there are folds cannot come right and asks for no second draw: it is marked.

    Args:
        table: the rows.
        repeats: how often all rows are divided anew.
        k: number of folds, 2 or more.
        splitter: a splitter that groups.
        seed: what shuffling begins from.
        with_valid: whether the fold after the tested one validates.
        **params: the splitter's own settings.

    Returns:
        ``repeats * k`` splits, folds of one repeat together. ``params`` of each has ``k``, ``fold``, ``repeat`` and
        ``draws`` (how many were made), and ``one_class`` where targets are marked: part to their names, with commas.

    Raises:
        UsageError: an unknown splitter, one that makes its own parts, a k or a number of repeats that is too small.
        DataError: fewer groups than folds.

    Example:
        >>> from molgraph.data.table import make_table
        >>> splits = repeated_kfold(make_table(["C" * n for n in range(1, 11)]), repeats=2, k=5)
        >>> len(splits), splits[-1].params["repeat"], splits[-1].params["fold"], splits[-1].sizes["test"]
        (10, 1, 4, 2)
    """
    if repeats < 1:
        raise BadValueError(f"repeats is {repeats}", hint="repeat once or more")
    return list(_folds(table, repeats, k, splitter, int(seed), with_valid, params))


def _folds(
    table: Table, repeats: int | None, k: int, name: str, seed: int, with_valid: bool, params: dict[str, Any]
) -> Iterator[Split]:
    """The folds of each repeat; ``repeats`` is None for plain folds, which are not numbered by repeat."""
    if k < 2 + with_valid:
        raise BadValueError(f"k is {k}", hint=f"use {2 + with_valid} folds or more")
    splitter, task = begin(table, name, (1 - 1 / k, 0.0, 1 / k), seed, params)
    group, drawn = splitter.own_folds or splitter.group, splitter.own_folds is None
    if group is None:
        able = [name for name in names("split") if get("split", name).group or get("split", name).own_folds]
        raise UnsupportedError(f"the split {splitter.name!r} has no folds", hint="use one of " + ", ".join(able))
    grouping = group(task)
    group_of, n = grouping.group_of, min(map(len, grouping.sizes))
    if not drawn and n != k:
        raise DataError(f"{k} folds were asked for, the split column holds {n}", hint=f"ask for {n}")
    if n < k:
        hint = "use fewer folds" + ("" if splitter.name == "random" else " or another splitter, such as 'random'")
        message = f"{k} folds need {k} groups, {splitter.name!r} finds {n} in {len(grouping.rows)} rows"
        raise EmptyError(message, hint=hint)
    if (repeats or 1) > 1 and not drawn:
        raise UnusedSettingError("folds of the table's own column are not drawn anew", hint="leave the repeats out")
    counts = class_counts(table, grouping.rows, group_of) if splitter.stratified else None

    def draw(fold_seed: int) -> np.ndarray:
        """int8 [k, rows]: the part of each row in each fold."""
        if not drawn:
            folds = [group_of]
        elif counts is not None:
            folds = [fill_evenly(counts, [1 / k] * k, fold_seed)[group_of]]
        else:
            folds = grouping.fill(lambda sizes, its_seed: fill_folds(sizes, k, its_seed), fold_seed)
        return agreed(*(_parts(fold_of, k, with_valid) for fold_of in folds))

    contents, lost = row_contents(table), hopeless(table, grouping.rows, group_of, k)
    for repeat in range(repeats or 1):
        fewest = draws = 0
        while not draws or (fewest and draws < (MOST_DRAWS if drawn else 1)):
            trial = draw(seed if draws == repeat == 0 else derive(seed, "repeat", repeat, "draw", draws))
            lonely = one_class_folds(table, grouping.rows, trial)
            faults = sum(len(set(targets) - lost) for fold in lonely for targets in fold.values())
            if not draws or faults < fewest:
                fewest, parts, marks = faults, trial, lonely
            draws += 1
        # One draw without a mark is told only where repeats are asked for: hashes of plain folds stay what they were.
        numbered = {} if repeats is None else {"repeat": repeat}
        numbered |= {} if repeats is None and draws == 1 else {"draws": draws}
        for fold in range(k):
            extra: dict[str, Any] = {"k": k, "fold": fold, **numbered}
            if marks[fold]:
                extra["one_class"] = {part: ", ".join(targets) for part, targets in marks[fold].items()}
            n_groups = sum(map(len, grouping.sizes))
            yield freeze(task, splitter, grouping.parts(parts[fold]), n_groups, extra, contents)


def _parts(fold_of: np.ndarray, k: int, with_valid: bool) -> np.ndarray:
    """int8 [k, rows]: the part of each row in each fold, from the fold that tests it."""
    fold, valid = np.arange(k)[:, None], np.array(1 if with_valid else 0, np.int8)
    return np.select([fold_of == fold, fold_of == (fold + 1) % k], [np.array(2, np.int8), valid], np.int8(0))
