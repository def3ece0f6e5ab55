"""Read cells that hold a list of values, one for each atom or bond of the row's molecule."""

from __future__ import annotations

import re

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.base.packed import Packed
from molgraph.data.columns import MISSING_WORDS, as_text
from molgraph.data.targets import numbers_of

_NUMBER = r"^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$"
_MARKER = re.compile(r"\[(\S+)\]\s+(?=\S)")  # RDKit's property lists may begin with their word for a missing value


def split_list(text: str) -> list[str] | None:
    """The values of a cell; None where the cell is missing.

    JSON (``[0.1, null]``), the texts of Python's and numpy's lists, and RDKit's property lists (``0.1 n/a``).

    Example:
        >>> split_list("[0.1, null]"), split_list("0.1 n/a\\n0.3"), split_list("[?] 1 ?"), split_list("[]")
        (['0.1', 'null'], ['0.1', 'n/a', '0.3'], ['1', ''], [])
        >>> split_list("NA") is None
        True
    """
    text = text.strip()
    if text.lower() in MISSING_WORDS:
        return None
    missing = None
    if found := _MARKER.match(text):
        missing, text = found[1], text[found.end() :]
    if text[0] in "[(" and text[-1] in "])":
        text = text[1:-1].strip()
    values = text.split(",") if "," in text else text.split()
    return ["" if value == missing else value.strip().strip("\"'") for value in values]


def flat_values(column: pa.ChunkedArray, *, numbers: bool) -> pa.ChunkedArray:
    """The values of all cells, one after another, as text; with ``numbers`` those alone that are some."""
    values = [value for cell in map(split_list, as_text(column)) if cell for value in cell]
    found = pa.chunked_array([pa.array(values, pa.string())])
    return found.filter(pc.match_substring_regex(found, _NUMBER)) if numbers else found


def read_lists(column: pa.ChunkedArray, target: Target, sizes: np.ndarray) -> tuple[Packed, np.ndarray]:
    """The values of a target below the row level; a cell that cannot be used has a reason and no values.

    Args:
        column: a cell for each row.
        target: what the column holds.
        sizes: int64 [n], the atoms (or bonds) of each row's molecule; -1 where there is no molecule.

    Returns:
        The values, and object [n] of reasons, empty where all is well.
    """
    cells = [split_list(text) for text in as_text(column)]
    reason = np.full(len(cells), "", dtype=object)
    for i, (cell, size) in enumerate(zip(cells, sizes, strict=True)):
        if cell is not None and len(cell) != size:
            if size >= 0:
                reason[i] = f"{target.name} has {len(cell)} values, the molecule {size} {target.level}s"
            cells[i] = None
    try:
        values = _numbers([value for cell in cells if cell for value in cell], target)
    except DataError:  # cell by cell, to find those that are at fault
        values = np.concatenate([np.zeros(0), *(_one(cells, i, target, reason) for i in range(len(cells)))])
    sizes = np.array([0 if cell is None else len(cell) for cell in cells], dtype=np.int64)
    return Packed(np.concatenate([[0], np.cumsum(sizes)]), values), reason


def _numbers(texts: list[str], target: Target) -> np.ndarray:
    return numbers_of(pa.chunked_array([pa.array(texts, pa.string())]), target, 0)


def _one(cells: list[list[str] | None], i: int, target: Target, reason: np.ndarray) -> np.ndarray:
    """The values of one cell; of one that cannot be read, none, and the reason is written down."""
    try:
        return _numbers(cells[i] or [], target)
    except DataError as error:
        reason[i] = error.message.replace(" in row ", f" in {target.level} ")
        cells[i] = None
        return np.zeros(0)
