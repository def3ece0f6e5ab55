"""Read a file, a frame or a list into tables, whole or chunk by chunk, with every row kept."""

from __future__ import annotations

import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError, LabelError, MissingColumnError
from molgraph.base.table import EntityKind, Gaps
from molgraph.data.limits import with_limits
from molgraph.data.log import before_log
from molgraph.data.reading import cells
from molgraph.data.reading import columns as cols
from molgraph.data.reading import reaction_columns as reactions
from molgraph.data.reading.cells import OddCell, Reading
from molgraph.data.reading.chunk import GEOMETRY, MOLBLOCK, Chunk, Reader
from molgraph.data.reading.delimited import DelimitedReader
from molgraph.data.reading.formats import reader_for
from molgraph.data.reading.numbers import numeric_columns
from molgraph.data.reading.smi_sdf import RecordReader
from molgraph.data.reading.table import ColumnRoles, SourceRows, build
from molgraph.data.reading.targets import decide, is_settled, parse_targets
from molgraph.data.reading.values import NUMERIC, read_numbers, read_values
from molgraph.data.table import Table

Targets = str | Target | Iterable[str | Target] | None
Names = str | Sequence[str] | None
#: the option that names the columns of a kind of entity
OPTIONS: dict[EntityKind, str] = {
    "molecule": "smiles",
    "sequence": "sequence",
    "geometry": "geometry",
    "reaction": "reaction",
}


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
    roles = _find_roles(reader, targets=targets, **columns)
    asked, numbers, whole = roles.asked, roles.numbers, chunk_rows is None
    records = isinstance(reader, RecordReader)
    kept = [*reader.names] * keep_columns + [MOLBLOCK] * (molblocks and records)
    valued = {a.column: a.kind for a in asked if a.level == "row"} if whole else {}
    beside = cols.find_beside(reader.names, roles.columns, [name for name, kind in valued.items() if kind in NUMERIC])
    more = [name for each in beside.values() for name in each.values()]
    if whole and records and any(a.level != "row" for a in asked):
        more.append(MOLBLOCK)  # whose order of atoms the values have
    wanted = list(dict.fromkeys([*roles.columns, *more, *kept]))
    # a comma in a cell can be a decimal sign where the file's columns are parted by something else
    guess = isinstance(reader, DelimitedReader) and reader.delimiter != ","
    ahead = not whole and reader.rereadable  # what all rows have to say is found in a first pass over them
    commas, open_ones = set[str](), [a.column for a in asked if not is_settled(a)]
    if ahead and guess and numbers and reading.decimal is None:
        commas = _decimal_commas(reader.chunks(numbers, chunk_rows), numbers)
    found = None
    if ahead or not open_ones:
        found = decide(asked, reader.chunks(open_ones, chunk_rows) if open_ones else [])
    none = Chunk(pa.table({name: pa.array([], pa.string()) for name in wanted}), 0)
    chunks = reader.chunks(wanted, chunk_rows)
    for chunk in chain([next(chunks, none)], chunks):
        if guess and not ahead and reading.decimal is None:
            commas |= _decimal_commas([chunk], numbers)
        made, notes, odd, units, limits = read_values(chunk, valued, beside, reading, guess=guess)
        faults = [] if reading.lenient else odd
        for name in numbers:
            column, more_notes, wrong = read_numbers(chunk, name, "," if name in commas else reading.decimal)
            made, notes = made.set_column(made.column_names.index(name), name, column), notes + more_notes
            faults = faults + wrong
        tidy = replace(chunk, columns=made)
        numbers_too = tuple(replace(a, kind=a.kind or "regression") if a.column in limits else a for a in asked)
        found = decide(numbers_too, [tidy]) if found is None else found
        table, faults = build(tidy, roles, found, faults)
        if whole:
            table = replace(table, notes=(*roles.notes, *notes, *_fault_notes(table, faults)), units=units)
            table = with_limits(table, limits)
        yield SourceRows(table, tuple(reader.names), chunk.columns.select(kept), odd)


def _fault_notes(table: Table, faults: Sequence[OddCell]) -> list[str]:
    """A note on the cells of each column that mark their rows.

    Raises:
        LabelError: the labels of a target are of another kind than it is: most of its cells are at fault.
    """
    notes = []
    for column in dict.fromkeys(cell.column for cell in faults):
        these = [cell for cell in faults if cell.column == column]
        first, n = min(these, key=lambda cell: cell.row), len(these)
        many = f" ({n:,} such cells)" if n > 1 else ""
        for j, target in enumerate(table.row_targets):
            if target.name == column and table.y is not None and n > np.isfinite(table.y[:, j]).sum():
                raise LabelError(f"row {first.row + 1}: {first.why}{many}", hint=first.hint)
        notes.append(f"row {first.row + 1} cannot be used: {first.why}{many}; {first.hint}")
    return notes


def _decimal_commas(chunks: Iterable[Chunk], names: Collection[str]) -> set[str]:
    """The columns of numbers whose commas are decimal signs, as far as all rows leave no doubt."""
    sure, not_them = set[str](), set[str]()
    for chunk in chunks:
        for name in {*names} - not_them:
            found = cells.commas(map(cells.read_cell, np.unique(cols.as_text(chunk.cells(name)).astype(str)).tolist()))
            not_them |= set() if found[0] else {name}
            sure |= {name} if found[1] else set()
        if not_them >= {*names}:
            break
    return sure - not_them


def _find_roles(
    reader: Reader,
    smiles: Names = None,
    targets: Targets = None,
    id: str | None = None,
    weight: str | None = None,
    features: Names = None,
    split: str | None = None,
    need_targets: bool = False,
    sequence: Names = None,
    geometry: Names = None,
    reaction: Names = None,
    gaps: Gaps = "mark",
) -> ColumnRoles:
    """Find every column, or raise ``DataError`` with what there is."""
    names = reader.names
    asked = parse_targets(targets, names)
    values = [a.column for a in asked]
    weight = weight and cols.resolve(weight, names, "weights")
    split = split and cols.resolve(split, names, "split")
    described = tuple(cols.resolve(name, names, "features") for name in _several(features))
    for name in described:
        if described.count(name) > 1:
            raise AmbiguousColumnError(f"feature {name!r} is given twice", hint="name each feature once")
        if name in values:
            raise AmbiguousColumnError(
                f"column {name!r} is a feature and a target: the answer would be among the questions",
                hint="leave it out of the features",
            )
    proteins = [cols.resolve(name, names, "sequences") for name in _several(sequence)]
    held = [*names, *([] if reader.geometry is None else [reader.geometry])]
    shaped = reader.geometry is not None
    if GEOMETRY in _several(geometry) and GEOMETRY not in map(str.lower, held):
        hint = "training makes them of SMILES by --conformers 1 (conformers=1); or give an SD, xyz or npz file, or "
        hint += f"name a column of mol blocks, XYZ or PDB texts: --geometry COLUMN; it has {', '.join(names)}"
        raise MissingColumnError("the table has no atoms in space, which are to be read", hint=hint[:500])
    shapes = [cols.resolve(name, held, "geometries") for name in _several(geometry)]
    sources = reactions.resolve_reactions(_several(reaction), names, None if shaped else reader.smiles)
    taken = [n for n in (weight, split, id, *described, *proteins, *shapes, *values) if n]
    sample = reader.sample()
    if reaction is None and smiles is None and not shapes:
        held_there = reactions.find_reactions(names, sample, taken, reader.smiles)
        sources = reactions.resolve_reactions(reactions.one_reaction(held_there), names, None)
    taken += [column for held in sources.values() for column in held]
    molecules = [cols.resolve(name, names, "SMILES") for name in _several(smiles)]
    if not molecules and not shapes and not sources:  # geometries and reactions have their atoms, and need no SMILES
        given = reader.smiles is None and reader.geometry is not None  # the file is one of atoms in space
        found = reader.smiles or cols.find_smiles(names, sample, taken, needed=not proteins and not given)
        molecules = [found] if found else []
        shapes = [GEOMETRY] if given and not found else []
    entities: list[tuple[str, EntityKind]] = [(name, "molecule") for name in molecules]
    entities += [(name, "sequence") for name in proteins] + [(name, "geometry") for name in shapes]
    entities += [(name, "reaction") for name in sources]
    for name, kind in entities:
        if name in values:
            words = f"column {name!r} holds the {kind}s, so it is no target"
            raise AmbiguousColumnError(words, hint="name a column of values")
        if [each for each, _ in entities].count(name) > 1:
            raise AmbiguousColumnError(f"column {name!r} is named twice as what is read", hint="name each column once")
    taken += molecules
    id = cols.resolve(id, names, "ids") if id is not None else reader.id or cols.find_id(names, taken)
    if need_targets and not asked:
        numeric = numeric_columns(sample, [n for n in names if n not in (*taken, id)])
        raise LabelError(
            f"no target was named; columns of numbers: {', '.join(numeric) or 'none'}"[:500],
            hint=f"say which: --target {shlex.quote(numeric[0]) if numeric else 'NAME'} (in Python targets=[NAME])",
        )
    look = need_targets and sequence is None
    free = [n for n in names if n not in (*taken, id)]
    notes = _unread_sequences(sample, free, molecules) if look else ()
    notes += reactions.unread_reactions(sample, free, molecules) if need_targets and reaction is None else ()
    beside = [name for name in molecules if name != reader.smiles]  # an SD file's own are made of its structures
    pose = (beside[0], GEOMETRY) if len(beside) == 1 and shapes == [reader.geometry] else None
    return ColumnRoles(tuple(entities), id, weight, described, split, asked, notes, pose, sources, gaps)


def _unread_sequences(sample: pa.Table, names: Sequence[str], molecules: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns that look like proteins and are not read; those that are nothing else are refused."""
    notes = []
    for name, certain in cols.find_sequences(sample, names).items():
        words = f"column {name!r} {'holds' if certain else 'looks like'} protein sequences, which would not be read"
        ways = f"read it: --sequence {shlex.quote(name)} -m dmpnn+deepdta (in Python sequence={name!r})"
        if molecules:
            ways += f"; or leave it out: --input {shlex.quote(molecules[0])} (in Python inputs=[{molecules[0]!r}])"
        if certain:
            raise AmbiguousColumnError(words, hint=ways)
        notes.append(f"{words}; {ways}")
    return tuple(notes)


def _several(given: Names) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)
