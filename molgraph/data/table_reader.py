"""Read a file, a frame or a list into a table, whole or chunk by chunk, with every row kept."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from typing import Any

import pyarrow as pa

from molgraph.base.table import Table, Target
from molgraph.data.chunks import MOLBLOCK, Chunk, Reader
from molgraph.data.column_roles import Targets, decide, make_plan, settled
from molgraph.data.delimited import DelimitedReader
from molgraph.data.formats import Held, reader_for
from molgraph.data.log import before_log, log_targets
from molgraph.data.sdf_smi_reader import RecordReader
from molgraph.data.table_builder import Rows, build, no_rows
from molgraph.data.value_column import OddCell, Reading
from molgraph.data.values import NUMERIC, decimal_commas, find_beside, tidy


def read_whole(
    source: Any,
    reading: Reading,
    *,
    targets: Targets = None,
    need_targets: bool = False,
    log: bool = False,
    **columns: Any,
) -> tuple[Table, list[OddCell]]:
    """The table of a source, and the cells that a lenient reading could not read.

    Args:
        source: a path, ``-``, a frame, a mapping of columns, or a list of SMILES.
        reading: how cells of values are read.
        targets, need_targets, log: as for ``molgraph.data.read.read_table``.
        columns: ``smiles``, ``id``, ``weight``, ``features`` and ``split``, as there.
    """
    reader = reader_for(source)
    if log and targets is not None:
        targets = before_log([targets] if isinstance(targets, str | Target) else targets, reader.names)
    plan = make_plan(reader, targets=targets, need_targets=need_targets, **columns)
    valued = [a.column for a in plan.asked if a.kind in NUMERIC and a.level == "row"]
    beside = find_beside(reader.names, plan.columns, valued)
    more = [name for each in beside.values() for name in each.values()]
    if isinstance(reader, RecordReader) and any(a.level != "row" for a in plan.asked):
        more.append(MOLBLOCK)  # whose order of atoms the values have
    read, notes, odd = [], [], []
    for chunk in reader.chunks(list(dict.fromkeys([*plan.columns, *more])), None):
        signs = dict.fromkeys(plan.numbers, reading.decimal)
        chunk, found = tidy(chunk, plan.asked, signs, beside, reading, guess=_parts_by_no_comma(reader))
        read.append(chunk)
        notes += found.notes
        odd += found.odd
    kinds = decide(plan.asked, read)
    table = next(iter([build(chunk, plan, kinds) for chunk in read] or [no_rows(plan, kinds)]))
    table = replace(table, notes=tuple(notes))
    return log_targets(table) if log else table, odd


def read_chunks(
    source: Any,
    *,
    chunk_rows: int,
    keep_columns: bool = False,
    molblocks: bool = False,
    targets: Targets = None,
    decimal: str | None = None,
    **columns: Any,
) -> Iterator[Rows]:
    """The tables of ``chunk_rows`` rows each, with the source's own columns beside them; one of no rows if it has none.

    Args:
        source: as for ``read_whole``.
        chunk_rows: rows a chunk.
        keep_columns: whether to give all columns of the source.
        molblocks: whether to give an SD file's structures too, as a column ``MOLBLOCK``.
        targets, decimal, columns: as for ``molgraph.data.read.read_table``.
    """
    reader = reader_for(source)
    plan = make_plan(reader, targets=targets, **columns)
    kept = [*reader.names] if keep_columns else []
    kept += [MOLBLOCK] if molblocks and isinstance(reader, RecordReader) else []
    wanted = list(dict.fromkeys([*plan.columns, *kept]))
    reading, guess = Reading(decimal), decimal is None and _parts_by_no_comma(reader)
    commas: set[str] = set()
    if guess and plan.numbers and reader.rereadable:  # by all rows, as a table that is read whole
        commas = decimal_commas(reader.chunks([*plan.numbers], chunk_rows), plan.numbers)
    found: tuple[Target, ...] | None = None
    if reader.rereadable or all(settled(a) for a in plan.asked):
        open_ones = [a.column for a in plan.asked if not settled(a)]
        found = decide(plan.asked, reader.chunks(open_ones, chunk_rows) if open_ones else [])
    none = Chunk(pa.table({name: pa.array([], pa.string()) for name in wanted}), 0)
    chunks = reader.chunks(wanted, chunk_rows)
    for chunk in chain([next(chunks, none)], chunks):
        if guess and not reader.rereadable:
            commas |= decimal_commas([chunk], plan.numbers)
        signs = {name: "," if name in commas else decimal for name in plan.numbers}
        read = tidy(chunk, (), signs, {}, reading, guess=False)[0]
        found = found if found is not None else decide(plan.asked, [read])
        yield Rows(build(read, plan, found), tuple(reader.names), chunk.columns.select(kept))


def _parts_by_no_comma(reader: Reader) -> bool:
    """Whether a comma in a cell can be a decimal sign: the file's columns are parted by something else."""
    reader = reader.reader if isinstance(reader, Held) else reader
    return isinstance(reader, DelimitedReader) and reader.delimiter != ","
