"""Read numeric columns, and report the cells that are not numbers."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.errors import FormatError
from molgraph.data.reading.cells import MISSING_WORDS, WORDS

_ADVICE = (
    (r"[+-]?\d+,\d+\Z", "write decimals with a point, or say --decimal , (in Python decimal=',')"),
    (r"[\u2010-\u2015\u2212]\d", "write a minus sign as -, the plain hyphen"),
    (r"\[.*\]$", "a list of values, one for each atom or bond, is asked for as NAME:atom or NAME:bond"),
    (r"[<>~=]", "leave a cell with a bound (<, >) empty, or write a number that stands for it"),
)
CORRECT = "correct the cell, or leave it empty where there is no value"


def parse_numbers(
    column: pa.ChunkedArray, name: str, *, finite: bool = True, words: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """A column as float64 [n], and the rows (int64) of the cells that are no numbers, which are NaN.

    So are missing ones: empty, NA, N/A, #N/A, NaN, null, None, -.

    Args:
        column: text or numbers.
        name: the column's name, for messages.
        finite: whether an infinite value is none.
        words: whether such words as true and false are 1 and 0.

    Raises:
        FormatError: a column of another type.

    Example:
        >>> parse_numbers(pa.chunked_array([["1.5", "n.d.", "", "1e999"]]), "y")
        (array([1.5, nan, nan, nan]), array([1, 3]))
    """
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if is_text:
        column = pc.utf8_trim_whitespace(column)
        lower = pc.ascii_lower(column)
        if words:
            places = pc.index_in(lower, pa.array(list(WORDS), column.type))
            column = pc.coalesce(pc.take(pa.array(list(WORDS.values()), column.type), places), column)
        missing = pc.is_in(lower, pa.array(MISSING_WORDS, column.type))
        column = pc.if_else(missing, pa.scalar(None, column.type), column)
    try:
        values = pc.fill_null(pc.cast(column, pa.float64(), safe=False), np.nan)
        numbers = values.to_numpy(zero_copy_only=False).astype(np.float64)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if not is_text:
            text = f"column {name!r} holds {column.type}, not numbers"
            raise FormatError(text, hint="choose another column") from None
        numbers = np.array([_number(text) for text in column.to_pylist()], dtype=np.float64)
    wrong = pc.is_valid(column).to_numpy(zero_copy_only=False) & np.isnan(numbers)
    wrong &= not pa.types.is_floating(column.type)  # whose NaN is a missing value
    if finite:
        wrong |= np.isinf(numbers)
    return np.where(wrong, np.nan, numbers), np.flatnonzero(wrong)


def _number(text: str | None) -> float:
    """A number with one of the signs that Arrow refuses (+1.5); NaN where it is none."""
    try:  # float() would take 1_000 and other scripts' digits
        return np.nan if text is None or "_" in text or not text.isascii() else float(text)
    except ValueError:
        return np.nan


def no_number(name: str, text: str) -> str:
    """Why a cell cannot be read as a finite number."""
    infinite = text.lstrip("+-").lower() in ("inf", "infinity") or np.isinf(_number(text))
    return f"column {name!r} is infinite" if infinite else f"column {name!r} holds {text[:60]!r}, which is no number"


def advice(text: str) -> str:
    """What to do about a cell that is no number; empty where nothing better is known than to correct it."""
    return next((hint for pattern, hint in _ADVICE if re.match(pattern, text)), "")


def numbers_or_none(column: pa.ChunkedArray, *, finite: bool = False) -> np.ndarray | None:
    """The column as numbers; None where it holds anything else."""
    try:
        values, wrong = parse_numbers(column, "", finite=finite)
    except FormatError:
        return None
    return None if len(wrong) else values


def numeric_columns(sample: pa.Table, names: Sequence[str]) -> list[str]:
    """Those columns whose sampled cells are numbers, at least one of them."""
    columns = {name: numbers_or_none(sample[name]) for name in names}
    return [name for name, values in columns.items() if values is not None and not np.isnan(values).all()]
