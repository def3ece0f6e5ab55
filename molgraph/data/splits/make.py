"""Make one frozen split of a table by a splitter's name."""

from __future__ import annotations

import math
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from molgraph.base.errors import BadValueError, EmptyError
from molgraph.base.parts import read_part
from molgraph.base.registry import get
from molgraph.chem.identity import molecule_keys
from molgraph.data.splits.assign import fill_evenly, fill_parts
from molgraph.data.splits.classes import class_counts
from molgraph.data.splits.split import PARTS, LeftOut, Split, check_parts
from molgraph.data.splits.splitter import Grouping, SplitParts, Splitter, Task, agreed
from molgraph.data.splits.structures import find_leaks, reasons_by_row
from molgraph.data.table import Table


def split_table(
    table: Table,
    splitter: str = "scaffold/balanced",
    *,
    fractions: tuple[float, float, float] = (0.8, 0.1, 0.1),
    seed: int = 0,
    quiet: bool = False,
    **params: Any,
) -> Split:
    """Split a table's rows into train, valid and test by a named splitter.

    Args:
        table: the rows; those that are not ``ok`` or whose molecule cannot be read are in no part, with the reason.
        splitter: a name of kind ``split``; ``molgraph.base.registry.names("split")`` lists them.
        fractions: train, valid and test; they sum to 1.
        seed: what shuffling begins from.
        quiet: keep the leaks of other people's splitters off standard error; ``Split.leaks`` has them in any case.
        **params: the splitter's own settings, such as ``column`` or ``similarity``.

    Returns:
        The split, with its hash and the leaks that it contains.

    Raises:
        UsageError: an unknown splitter or setting, or fractions that do not sum to 1.
        EmptyError: a part that was asked for would be empty.

    Example:
        >>> from molgraph.data.table import make_table
        >>> table = make_table(["CCO", "OCC", "c1ccccc1", "CCN", "CCC", "C1CC"])
        >>> split = split_table(table, "random", fractions=(0.5, 0.25, 0.25), seed=1)
        >>> sum(split.sizes.values())
        6
        >>> split.left_out[0].row
        5
    """
    known, task = begin(table, splitter, _checked(fractions), seed, params)
    groups, n_rows = None, len(task.rows)
    if known.group is not None:
        grouping = known.group(task)
        if not len(grouping.rows):
            reasons = {row: ":".join(reason.split(":")[:2]) for row, reason in grouping.left_out.items()}
            first = {reason: row + 1 for row, reason in sorted(reasons.items(), reverse=True)}
            counts = Counter(reasons.values()).most_common(5)
            words = "; ".join(f"{n:,} x {reason} (from row {first[reason]})" for reason, n in counts)
            raise EmptyError(f"none of {n_rows:,} rows can be used: {words}", hint="molgraph data audit FILE")
        parts, groups, n_rows = _fill(grouping, known, task), sum(map(len, grouping.sizes)), len(grouping.rows)
    elif known.partition is not None:
        parts = known.partition(task)
    check_parts([getattr(parts, name) for name in PARTS], len(table), f"the split {known.name!r}")
    asked = task.fractions if known.uses_fractions else (1.0, 0.0, task.fractions[2])
    for name, fraction in zip(PARTS, asked, strict=True):
        if fraction > 0 and not len(getattr(parts, name)):
            whole = "" if groups is None else f" in {groups} groups that stay whole"
            raise EmptyError(
                f"the split {known.name!r} would leave {name} empty: {n_rows} usable rows{whole}",
                hint=_advice(name, asked, known.name, groups or n_rows, table),
            )
    split = freeze(task, known, parts, groups, parts.params)
    if known.reproduces and split.leaks and not quiet:
        print(split.text(n_leaks=20), file=sys.stderr)
    return split


def begin(
    table: Table, name: str, fractions: tuple[float, float, float], seed: int, params: Mapping[str, Any]
) -> tuple[Splitter, Task]:
    """The splitter that a name such as ``cluster/butina(radius=3)`` stands for, and its task.

    Raises:
        UsageError: an unknown splitter or setting, or a seed that it cannot take.
        EmptyError: no row can be used.
    """
    params = dict(params)
    part = read_part(params.pop("recipe", name), "split")  # its former keyword
    splitter: Splitter = get("split", part.name)
    if splitter.reproduces and not 0 <= int(seed) < 2**32:
        raise BadValueError(f"seed is {seed}, {part.name!r} takes 0 to {2**32 - 1}", hint="as in seed 0")
    settings = splitter.settings({**part.settings, **params})
    rows, left_out, parents = usable_rows(table, splitter)
    return splitter, Task(table, rows, fractions, int(seed), settings, left_out, parents)


def fewest_rows(fractions: Sequence[float]) -> int:
    """The number of distinct rows from which on each part that is asked for has one, when rows are drawn at random.

    Example:
        >>> fewest_rows((0.95, 0.05, 0.0)), fewest_rows((0.8, 0.1, 0.1))
        (11, 8)
    """
    share = np.asarray(fractions, dtype=np.float64)
    sizes = np.arange(1, math.ceil(1 / share[share > 0].min()) + 2)
    edges = np.rint(np.cumsum([0.0, *share]) * sizes[:, None])
    enough = (np.diff(edges)[:, share > 0] > 0).all(axis=1)
    return int(sizes[~enough].max(initial=0)) + 1


def _advice(name: str, fractions: tuple[float, float, float], splitter: str, n_groups: int, table: Table) -> str:
    """How to have the part ``name``, or to go without it."""
    fewest = fewest_rows(fractions)
    advice = f"give at least {fewest} distinct molecules" if n_groups < fewest else "give more distinct rows"
    advice += "" if splitter == "random" else ", or the splitter 'random'"
    if name != "train" and n_groups >= sum(fraction > 0 for fraction in fractions) - 1:
        rest = dict(zip(PARTS, fractions, strict=True)) | {name: 0.0}
        rest["train"] = 1 - rest["valid"] - rest["test"]
        without = ",".join(f"{rest[part]:g}" for part in PARTS)
        advice += f"; or go without a {name} part: fractions {without} (--fractions {without} at the shell)"
    if any(entity.kind == "geometry" for entity in table.entities):  # one molecule in many geometries
        advice += "; frames of a trajectory are divided by random/frames"
    return advice


def _checked(fractions: Any) -> tuple[float, float, float]:
    values = [float(f) for f in fractions]
    if len(values) != 3:
        raise BadValueError(f"fractions has {len(values)} values, expected train, valid, test")
    if min(values) < 0 or not math.isclose(sum(values), 1.0, abs_tol=1e-6):
        raise BadValueError(
            f"the fractions {values} sum to {sum(values):g}", hint="give three parts of 1, such as 0.8, 0.1, 0.1"
        )
    return values[0], values[1], values[2]


def usable_rows(table: Table, splitter: Splitter) -> tuple[np.ndarray, dict[int, str], np.ndarray | None]:
    """The rows that a splitter may use, why the others may not, and stereo-free parents where a leak is possible.

    Raises:
        EmptyError: there are none.
    """
    left_out = {int(i): str(table.reason[i]) or str(table.status[i]) for i in np.flatnonzero(~table.ok)}
    rows, parents = np.flatnonzero(table.ok), None
    # A splitter that groups reads every molecule itself; for the others it is done here, and used again for leaks.
    if not (splitter.grouped or splitter.reads) and [e.kind for e in table.entities] == ["molecule"]:
        keys = molecule_keys(table.smiles[rows], stereo=False)
        parents = np.full(len(table), "", dtype=object)
        parents[rows] = keys.values
        left_out |= reasons_by_row(rows, keys.reasons)
        rows = rows[keys.reasons == ""]
    if not len(rows):
        first = f"; row 1: {left_out[0]}" if 0 in left_out else ""
        raise EmptyError(f"none of the table's {len(table)} rows can be used{first}", hint="look at their reasons")
    return rows, left_out, parents


def _fill(grouping: Grouping, splitter: Splitter, task: Task) -> SplitParts:
    """The parts, filled with whole groups."""
    if splitter.stratified:
        counts = class_counts(task.table, grouping.rows, grouping.group_of)
        return grouping.parts(fill_evenly(counts, task.fractions, task.seed)[grouping.group_of])
    fill = partial(fill_parts, fractions=task.fractions, balanced=splitter.balanced)
    return grouping.parts(agreed(*grouping.fill(lambda sizes, seed: fill(sizes, seed=seed), task.seed)))


def freeze(
    task: Task,
    splitter: Splitter,
    parts: SplitParts,
    groups: int | None,
    extra: Mapping[str, Any],
    contents: Sequence[str] | None = None,
) -> Split:
    """Parts as a split with its hash and leaks; ``contents`` are the table's ``row_contents`` where they are known."""
    arrays = {name: np.sort(np.asarray(getattr(parts, name), dtype=np.int64)) for name in PARTS}
    plain = {k: v for k, v in task.params.items() if k not in splitter.sources and isinstance(v, str | int | float)}
    leaks = () if splitter.grouped else find_leaks(task.table, arrays["train"], arrays["test"], task.parents)
    left_out = tuple(LeftOut(*item) for item in sorted({**task.left_out, **parts.left_out}.items()))
    settings = (splitter.name, task.seed, task.fractions, plain | dict(extra))
    return Split.of(task.table, arrays, *settings, contents, leaks=leaks, left_out=left_out, groups=groups)
