"""The splitters that follow a column of the user's table: ``time``, ``group`` and ``column``."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from molgraph.base.errors import (
    BadValueError,
    CellError,
    FormatError,
    MissingColumnError,
    MissingOptionError,
    ShapeError,
    UnknownNameError,
    nearest,
)
from molgraph.base.packed import offsets_of
from molgraph.base.registry import get
from molgraph.data.splits.splitter import WORDS, Grouping, SplitParts, Task, number, register_split
from molgraph.data.table import Table

SHOWN = 10  # folds in a message
logger = logging.getLogger("molgraph")
_NOT_USED = {"", "nan", "none", "na", "-"}


def column_values(table: Table, column: Any) -> np.ndarray:
    """A column of the table by name, or the values themselves, one a row; None is the split column that was read."""
    if column is None:
        if table.split is None:
            raise MissingOptionError(
                "the split needs a column",
                hint='name it: --split-column NAME, in a benchmark params = { column = "NAME" }, in Python column=NAME',
            )
        return table.split
    if not isinstance(column, str):
        values = np.asarray(column)
        if values.shape != (len(table),):
            raise ShapeError(f"the column has shape {values.shape}, expected ({len(table)},): one value a row")
        return values.astype(object) if values.dtype.kind in "US" else values
    columns: dict[str, np.ndarray] = {"id": table.ids} | {e.name: e.values for e in table.entities}
    if table.features is not None:
        columns |= {name: table.features[:, j] for j, name in enumerate(table.feature_names)}
    if table.y is not None:
        columns |= {t.name: table.y[:, j] for j, t in enumerate(table.row_targets)}
    if table.split is not None:
        columns.setdefault("split", table.split)
    if column not in columns:
        hint = nearest(column, columns) + " (or read it with split=COLUMN)"
        raise MissingColumnError(f"the table has no column {column!r}", hint=hint)
    return columns[column]


@register_split(
    "partition",
    "time",
    "earlier rows train, later ones test",
    params={"column": None},
    asks="The future: later molecules from earlier ones.",
)
def split_by_time(task: Task) -> SplitParts:
    """Earlier rows train, later ones validate, the last ones test; rows of one time stay together.

    Numbers stay numbers; text is read as dates. Each cut falls between two times, at the place nearest to the
    fraction asked for.
    """
    times = _as_numbers(column_values(task.table, task.params["column"])[task.rows])
    timed = np.isfinite(times)
    left_out = dict.fromkeys(task.rows[~timed].tolist(), "no time in this row")
    rows = task.rows[timed]
    _, order, counts = np.unique(times[timed], return_inverse=True, return_counts=True)
    ends = offsets_of(counts)
    first, second = (int(np.abs(ends - cut).argmin()) for cut in np.cumsum(task.fractions)[:2] * len(rows))
    return SplitParts.of(rows, (order >= first).astype(int) + (order >= max(first, second)), left_out)


@register_split(
    "group",
    "group",
    "rows of one group stay together",
    params={"column": None},
    asks="New groups of the column, such as projects or plates.",
)
def group_by_column(task: Task) -> Grouping:
    """One group a value of the column; rows without a value are left out."""
    values = column_values(task.table, task.params["column"])[task.rows]
    missing = _empty(values)
    left_out = dict.fromkeys(task.rows[missing].tolist(), "no group in this row")
    return Grouping(task.rows[~missing], number(values[~missing]), left_out)


def folds_of_column(task: Task) -> Grouping:
    """The folds that the column numbers from 0; rows without one are left out."""
    folds = _fold_numbers(task, _words(task))
    if folds is None:
        raise FormatError(
            "the split column holds words, no fold numbers", hint="number the folds 0, 1, ..., or leave the folds out"
        )
    return folds


@register_split(
    "partition",
    "column",
    "the table's own column: words train, valid, test, or folds 0, 1, ...",
    own_folds=folds_of_column,
    uses_fractions=False,
    params={"column": None, "fold": None, "leave_out": None, "inner": None},
    asks="Whatever the table's own split column was made for.",
)
def split_by_column(task: Task) -> SplitParts:
    """The user's own words: train, valid (val, validation) or test; a row with none is left out.

    So is a row with the word of the setting ``leave_out``, such as a second test set.

    Of a column of fold numbers, 0 to k - 1, the fold that the setting ``fold`` names (0 if not given) is tested and,
    where there are three or more, the next one validates. The setting ``inner`` names the splitter that divides the
    training rows again, for early stopping and searches, such as ``scaffold/balanced``; random if not given.
    """
    words = _words(task)
    other = task.params["leave_out"]
    if other is not None and (not isinstance(other, str) or other.lower() not in words):
        message = f"leave_out is {other!r}, which no row of the split column says"
        raise UnknownNameError(message, hint="name one of its words")
    words = ["" if other and word == other.lower() else word for word in words]
    folds = _fold_numbers(task, words)
    if folds is None:
        return parts_of_words(task, words, "the split column")
    n, fold = int(folds.group_of.max()) + 1, task.params["fold"]
    if fold is None and n < 3:
        raise FormatError(
            f"the split column holds nothing but {' and '.join(map(str, range(n)))}: folds, or marks of the test rows?",
            hint="write the words train and test; or ask for both folds: --folds 2 (folds = 2 in a benchmark)",
        )
    fold = 0 if fold is None else fold
    if type(fold) is not int or not 0 <= fold < n:
        raise BadValueError(f"fold is {fold!r}, the split column holds the folds 0 to {n - 1}", hint="as in fold=0")
    valid = (fold + 1) % n if n >= 3 else -1
    validates = f", fold {valid} validates" if n >= 3 else ""
    logger.info("the split column holds the folds 0 to %d: fold %d is tested%s", n - 1, fold, validates)
    part_of = np.select([folds.group_of == fold, folds.group_of == valid], [2, 1], 0)
    return replace(folds.parts(part_of), params={"folds": n, "fold": fold})


def _words(task: Task) -> list[str]:
    """The column's words in small letters; an unknown splitter in the setting ``inner`` is refused."""
    if task.params["inner"] is not None:
        get("split", task.params["inner"])
    values = column_values(task.table, task.params["column"])
    return ["" if pd.isna(v) else str(v).strip().lower() for v in values]


def _fold_numbers(task: Task, words: list[str]) -> Grouping | None:
    """The fold of each row; None where more than a few rows have another word than a whole number."""
    used = np.array([words[row] not in _NOT_USED for row in task.rows], dtype=bool)
    texts = pd.Series([words[row] for row in task.rows[used]], dtype=object)
    values = pd.to_numeric(texts, errors="coerce").to_numpy()
    whole = values % 1 == 0
    if not whole.any() or not _few(~whole):
        return None
    used[used] = whole
    numbers, fold_of = np.unique(values[whole].astype(np.int64), return_inverse=True)
    if numbers[0] != 0 or numbers[-1] != len(numbers) - 1:
        shown = ", ".join(map(str, numbers[:SHOWN])) + (", ..." if len(numbers) > SHOWN else "")
        hint = f"number them 0 to {len(numbers) - 1}, without gaps"
        raise FormatError(f"the split column holds the folds {shown}", hint=hint)
    left_out = dict.fromkeys(task.rows[~used].tolist(), "in no fold of the split column")
    return Grouping(task.rows[used], fold_of, left_out)


def parts_of_words(task: Task, words: Sequence[str], source: str) -> SplitParts:
    """The parts that a word for each row of the table names; rows without one are left out."""
    unknown = np.array([words[row] not in WORDS and words[row] not in _NOT_USED for row in task.rows], dtype=bool)
    if not _few(unknown):
        row = task.rows[unknown][0]
        raise CellError(f"{source} says {words[row]!r} in row {row + 1}", hint="use train, valid or test")
    part_of = np.array([WORDS.get(words[row], -1) for row in task.rows], np.int64)
    return SplitParts.of(task.rows, part_of, dict.fromkeys(task.rows[part_of < 0].tolist(), f"in no part of {source}"))


def _few(wrong: np.ndarray) -> bool:
    """Whether cells that cannot be read are so few that each is a fault of its row, and none one of the column."""
    return bool(20 * wrong.sum() <= len(wrong))


def _empty(values: np.ndarray) -> np.ndarray:
    """bool [n]: rows without a value."""
    return np.asarray(pd.isna(values)) | np.array([isinstance(v, str) and not v.strip() for v in values], bool)


def _as_numbers(values: np.ndarray) -> np.ndarray:
    """float64: numbers as they are, dates as seconds; NaN where there is none."""
    numbers = pd.to_numeric(pd.Series(values), errors="coerce")
    filled = ~_empty(values)
    if _few(numbers[filled].isna().to_numpy()) and not np.issubdtype(np.asarray(values).dtype, np.datetime64):
        return numbers.to_numpy(np.float64)
    first = _day_first([str(v) for v in values[filled]])
    dates = pd.to_datetime(pd.Series(values).where(filled), errors="coerce", utc=True, format="mixed", dayfirst=first)
    unread = filled & dates.isna().to_numpy()
    hint = "write dates as 2026-01-31 or times as numbers"
    if not _few(unread[filled]):
        raise CellError(f"{values[unread][0]!r} is neither a number nor a date", hint=hint)
    if short := next((str(v) for v in values[filled & ~unread] if not re.search(r"\d{4}", str(v))), None):
        raise CellError(f"{short!r} has no year of four digits", hint=hint)
    return ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(seconds=1)).to_numpy(np.float64)


def _day_first(texts: list[str]) -> bool:
    """Whether dates such as 31/01/2026 have the day before the month: one order for the whole column.

    Raises:
        FormatError: both orders fit, or neither does.

    Example:
        >>> _day_first(["13/01/2026", "02/03/2026"]), _day_first(["2026-01-31"]), _day_first(["01/31/2026"])
        (True, False, False)
    """
    dates = [m for text in texts if (m := re.match(r"\s*(\d{1,2})([-/.])(\d{1,2})\2\d{2,4}", text))]
    day_first, month_first = any(int(m[1]) > 12 for m in dates), any(int(m[3]) > 12 for m in dates)
    if day_first == month_first and any(m[1] != m[3] for m in dates):
        cause = "both orders" if day_first else "no day after the 12th, so that their order is open"
        message = f"dates such as {dates[0].group().strip()} have {cause}: day or month first?"
        raise FormatError(message, hint="write dates as 2026-01-31")
    return day_first
