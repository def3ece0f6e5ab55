"""Read files, DataFrames and lists into tables, whole or in chunks: open, assign roles, parse values, build."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from molgraph.base.contracts import Target
from molgraph.base.errors import LabelError
from molgraph.data.limits import with_limits
from molgraph.data.log import before_log
from molgraph.data.reading.cells import OddCell, Reading, commas, read_cell
from molgraph.data.reading.chunk import MOLBLOCK, Chunk, as_text
from molgraph.data.reading.delimited import DelimitedReader
from molgraph.data.reading.formats import reader_for
from molgraph.data.reading.roles import Targets, find_roles, find_side_columns
from molgraph.data.reading.smi_sdf import SDReader
from molgraph.data.reading.table import SourceRows, build
from molgraph.data.reading.targets import decide
from molgraph.data.reading.values import NUMERIC, read_numbers, read_values
from molgraph.data.table import Table


def read_rows(
    source: Any,
    reading: Reading,
    *,
    chunk_rows: int | None = None,
    keep_columns: bool = False,
    molblocks: bool = False,
    targets: Targets = None,
    log: bool = False,
    **columns: Any,
) -> Iterator[SourceRows]:
    """The rows of a source in tables of ``chunk_rows``, or in one; one table of no rows where it has none.

    Cells of targets are read as asked in a whole table; in chunks, decimal commas of weights and descriptors alone.
    """
    reader = reader_for(source)
    if log and targets is not None:
        targets = before_log([targets] if isinstance(targets, str | Target) else targets, reader.names)
    roles = find_roles(reader, targets=targets, **columns)
    whole, records = chunk_rows is None, isinstance(reader, SDReader)
    kept = [*(reader.names if keep_columns else ()), *([MOLBLOCK] if molblocks and records else ())]
    kinds = {t.column: t.kind for t in roles.targets if t.level == "row"} if whole else {}
    valued = [name for name, kind in kinds.items() if kind in NUMERIC]
    beside = find_side_columns(reader.names, roles.columns, valued)
    wanted = [*roles.columns, *(name for side in beside.values() for name in side if name)]
    if whole and records and any(t.level != "row" for t in roles.targets):
        wanted.append(MOLBLOCK)  # whose order of atoms the values have
    wanted = list(dict.fromkeys([*wanted, *kept]))
    # a comma in a cell can be a decimal sign where the file's columns are parted by something else
    guess = isinstance(reader, DelimitedReader) and reader.delimiter != ","
    ahead = not whole and reader.rereadable  # what all rows have to say is found in a first pass over them
    comma_columns, unsettled = set[str](), [t.column for t in roles.targets if not t.is_settled]
    if ahead and guess and roles.numbers and reading.decimal is None:
        comma_columns = _decimal_commas(reader.chunks(roles.numbers, chunk_rows), roles.numbers)
    decided = None
    if ahead or not unsettled:
        decided = decide(roles.targets, reader.chunks(unsettled, chunk_rows) if unsettled else [])
    empty = Chunk(pa.table({name: pa.array([], pa.string()) for name in wanted}), 0)
    chunks = reader.chunks(wanted, chunk_rows)
    for chunk in chain([next(chunks, empty)], chunks):
        if guess and not ahead and reading.decimal is None:
            comma_columns |= _decimal_commas([chunk], roles.numbers)
        values = read_values(chunk, kinds, beside, reading, guess=guess)
        table, notes, faults = values.columns, values.notes, [] if reading.lenient else values.odd
        for name in roles.numbers:
            column, number_notes, odd = read_numbers(chunk, name, "," if name in comma_columns else reading.decimal)
            table, notes = table.set_column(table.column_names.index(name), name, column), notes + number_notes
            faults = faults + odd
        tidy = replace(chunk, columns=table)
        if decided is None:
            limited = (
                replace(t, kind=t.kind or "regression") if t.column in values.limits else t for t in roles.targets
            )
            decided = decide(tuple(limited), [tidy])
        built, faults = build(tidy, roles, decided, faults)
        if whole:
            notes = [*roles.notes, *notes, *_fault_notes(built, faults)]
            built = with_limits(replace(built, notes=tuple(notes), units=values.units), values.limits)
        yield SourceRows(built, tuple(reader.names), chunk.columns.select(kept), values.odd)


def _fault_notes(table: Table, faults: Sequence[OddCell]) -> list[str]:
    """A note on the cells of each column that mark their rows.

    Raises:
        LabelError: the labels of a target are of another kind than it is: most of its cells are at fault.
    """
    notes = []
    for column in dict.fromkeys(cell.column for cell in faults):
        cells = [cell for cell in faults if cell.column == column]
        first, n = min(cells, key=lambda cell: cell.row), len(cells)
        many = f" ({n:,} such cells)" if n > 1 else ""
        for j, target in enumerate(table.row_targets):
            if target.name == column and table.y is not None and n > np.isfinite(table.y[:, j]).sum():
                raise LabelError(f"row {first.row + 1}: {first.reason}{many}", hint=first.hint)
        notes.append(f"row {first.row + 1} cannot be used: {first.reason}{many}; {first.hint}")
    return notes


def _decimal_commas(chunks: Iterable[Chunk], names: Collection[str]) -> set[str]:
    """The columns of numbers whose commas are decimal signs, as far as all rows leave no doubt."""
    sure, others = set[str](), set[str]()
    for chunk in chunks:
        for name in {*names} - others:
            texts = np.unique(as_text(chunk.cells(name)).astype(str)).tolist()
            possible, certain = commas(map(read_cell, texts))
            others |= set() if possible else {name}
            sure |= {name} if certain else set()
        if others >= {*names}:
            break
    return sure - others
