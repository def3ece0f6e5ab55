"""Read anything that holds molecules as a table, every input row kept: files, frames, lists, datasets by name."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa

from molgraph.base.errors import (
    BadValueError,
    CellError,
    LabelError,
    MissingOptionError,
    UnknownNameError,
    UnsupportedError,
    UnusedSettingError,
    nearest,
)
from molgraph.base.table import Gaps
from molgraph.data.curves import curve_of, find_concentration, group_curves
from molgraph.data.datasets import load_dataset
from molgraph.data.log import log_targets
from molgraph.data.reading.cells import Reading
from molgraph.data.reading.formats import reader_for
from molgraph.data.reading.roles import OPTIONS, Names, Targets
from molgraph.data.reading.rows import read_rows
from molgraph.data.reading.table import SourceRows
from molgraph.data.reading.targets import parse_targets
from molgraph.data.sources import builtin
from molgraph.data.standardise import check_molecules
from molgraph.data.table import Table, row_name

if TYPE_CHECKING:
    from molgraph.data.pyg_table import GraphColumns

OnError = Literal["keep", "drop", "stop"]


def read_table(
    source: Any,
    *,
    smiles: Names = None,
    sequence: Names = None,
    geometry: Names = None,
    reaction: Names = None,
    targets: Targets = None,
    id: str | None = None,
    weight: str | None = None,
    features: Sequence[str] = (),
    gaps: Gaps = "mark",
    split: str | None = None,
    on_error: OnError = "keep",
    need_targets: bool = False,
    decimal: str | None = None,
    qualifiers: str = "refuse",
    unit: str | None = None,
    log: bool = False,
    concentration: str | None = None,
) -> Table:
    """Read a whole source into a table; every input row stays a row, in order.

    Args:
        source: a path (csv, csv.gz, tsv, parquet, xlsx, sdf, smi, xyz, npz), ``book.xlsx::Sheet``, ``-`` for standard
            input, ``dataset:NAME``
            (one that has a card), ``builtin:NAME``, a pandas frame, a mapping of columns, a list of SMILES, or a table;
            a list of PyG's ``Data``, one of its datasets, or a frame with a column of ``Data``.
        smiles: the column of SMILES, or several; found by its name or by values that parse where not given.
        sequence: the columns of protein sequences, where there are any.
        geometry: the columns of atoms in space: mol blocks, texts of XYZ or PDB files, a mol block with a PDB text
            after it (a complex), or ``Geometry``; ``geometry`` stands for the structures of an SD, xyz or npz file.
            SMILES beside them are read where they are named; those of another molecule than the structure of their row
            mark it.
        reaction: the columns of reaction SMILES with atom maps, ``[CH3:1]Br>>[CH3:1]O``; ``reactants>>product`` names
            two columns, one for each side. Found by their values where no column of SMILES is named.
        targets: what is to be learnt: names, with a kind where it is not plain (``class:multiclass``), or a level:
            each cell of ``charge:atom`` (``order:bond``) is a list of values in the order of RDKit's atoms (bonds) of
            the row's SMILES, ``[0.1, null, -0.2]``. A list of another length marks its row. ``response:curve``: rows
            are points of dose-response curves, which become one row a molecule (``data.curves.group_curves``).
        id: the column of ids, kept verbatim; a column named id where not given, else the row's number, from 0.
        weight: a column of finite weights, not negative.
        features: columns of numbers that describe a row beside its molecule.
        gaps: rows that lack one of those are no rows to learn from or predict (``mark``), or are kept, with the
            column's mean (``mean``) or with their other features scaled up (``scale``, networks alone).
        split: a column of the source's own split words.
        on_error: ``keep`` rows that cannot be read, with a reason; ``drop`` them, or ``stop`` at the first.
            ``drop`` and ``stop`` parse every molecule here; ``keep`` leaves that to the featuriser and marks
            what needs no parsing.
        need_targets: whether to refuse, with the candidates listed, where ``targets`` is None.
        decimal: ``,`` where values have decimal commas; without it they are read where commas do not part the
            columns and every cell of a column fits.
        qualifiers: labels such as ``>8.0`` are refused, left out (``drop``), or read as the number (``strip``).
        unit: what values with units (``251 nM``, or a column ``units``) are brought to, such as ``nM``.
        log: whether regression targets become their decimal logarithms, named ``log10_...``.
        concentration: the column of concentrations beside ``response:curve``; found by its name where not given.

    Returns:
        The table; its ``notes`` say what was read otherwise than it stands there.

    Raises:
        DataError: a column that is missing, doubled, or cannot be what it should be.
        StorageError: a file that may not be read.

    Example:
        >>> table = read_table({"smiles": ["CCO", "", "CCN"], "y": ["1.5", "2", "NA"]}, targets=["y"])
        >>> list(table.status), table.y[:, 0]
        (['ok', 'missing', 'ok'], array([1.5, 2. , nan]))
    """
    columns: dict[str, Any] = {"smiles": smiles, "sequence": sequence, "geometry": geometry, "id": id, "weight": weight}
    columns |= {
        "reaction": reaction,
        "features": features,
        "split": split,
        **({} if gaps == "mark" else {"gaps": gaps}),
    }
    columns |= {"targets": targets, "need_targets": need_targets, "log": log}
    reading = Reading(decimal, qualifiers, unit)
    if (response := curve_of(targets)) is not None:
        return _handle(_read_curves(source, reading, response, concentration, columns), on_error)
    if concentration is not None:
        words = "concentrations belong to dose-response curves"
        raise UnusedSettingError(words, hint="name the column of responses: --target response:curve")
    return _handle(read_source(source, reading, **columns).table, on_error)


def _read_curves(
    source: Any, reading: Reading, response: str, concentration: str | None, columns: Mapping[str, Any]
) -> Table:
    """The table of dose-response curves whose points a source's rows are."""
    if columns["log"]:
        raise UnusedSettingError("the EC50 of a curve is its logarithm already", hint="leave --log out")
    if isinstance(source, Table) or is_named(source):
        words = "curves are made of the rows of a file or a frame"
        raise UnsupportedError(words, hint="give that, or leave :curve out")
    if concentration is None and isinstance(source, str) and source == "-":
        hint = "name it: --concentration COLUMN"
        raise MissingOptionError("no look at standard input finds the column of concentrations", hint=hint)
    dose = find_concentration(reader_for(source).names) if concentration is None else concentration
    columns = {**columns, "targets": [f"{response}:regression"], "features": (dose, *columns["features"])}
    points = read_source(source, reading, **columns).table
    return group_curves(points, points.feature_names[0])


def read_source(
    source: Any,
    reading: Reading,
    *,
    targets: Targets = None,
    need_targets: bool = False,
    log: bool = False,
    keep_columns: bool = False,
    **columns: Any,
) -> SourceRows:
    """The whole table of a source, as ``read_table`` reads it, with the cells that a lenient reading could not read.

    With ``keep_columns``, all columns of the source come too, as they stand there.
    """
    if is_named(source):
        source = _load_named(source)
        if targets is None:
            targets = source.targets
    if isinstance(source, Table):
        _check_ready(source, reading, columns)
        rows = _rows_of(_choose(source, targets))
        if need_targets and not rows.table.targets:
            raise LabelError("the table has no target", hint="read another one, or make it with targets")
    else:
        options: dict[str, Any] = {"need_targets": need_targets, "log": log, "keep_columns": keep_columns, **columns}
        graphs = _pyg_columns(source)
        if graphs is not None:
            source, options["sequence"] = graphs.columns, (graphs.name,)
            targets = graphs.targets or None if targets is None and need_targets else targets
        (rows,) = read_rows(source, reading, targets=targets, **options)
        if graphs is not None:
            rows = rows._replace(table=graphs.table(rows.table))
    return rows._replace(table=log_targets(rows.table)) if log else rows


def iter_rows(
    source: Any,
    *,
    chunk_rows: int,
    keep_columns: bool = False,
    molblocks: bool = False,
    targets: Targets = None,
    **options: Any,
) -> Iterator[SourceRows]:
    """Read a source in tables of ``chunk_rows`` rows (the last may have fewer), in constant memory.

    A source without rows gives one table of no rows. Kinds and classes of targets that were not given are found in a
    first pass over those columns; standard input can be read only once, so there the first chunk decides.

    Args:
        source: as for ``read_table``.
        chunk_rows: rows a chunk.
        keep_columns: whether to give all columns of the source.
        molblocks: whether to give an SD file's structures too, as a column ``MOLBLOCK``.
        targets: as for ``read_table``.
        options: ``smiles``, ``id``, ``weight``, ``features``, ``split`` and ``decimal``, as for ``read_table``.
    """
    if chunk_rows < 1:
        raise BadValueError(f"chunk_rows is {chunk_rows}", hint="give at least 1")
    if isinstance(source, Table) or is_named(source):
        if keep_columns:
            raise UnsupportedError("the columns of a ready table cannot be kept", hint="give a file or a frame")
        whole = _rows_of(read_table(source, targets=targets, **options))
        for start in range(0, max(len(whole.table), 1), chunk_rows):
            yield whole.take(start, min(start + chunk_rows, len(whole.table)))
        return
    options |= {"chunk_rows": chunk_rows, "keep_columns": keep_columns, "molblocks": molblocks}
    yield from read_rows(source, Reading(options.pop("decimal", None)), targets=targets, **options)


def _pyg_columns(source: Any) -> GraphColumns | None:
    """The columns of a source of PyG's graphs, which nobody has who has not loaded PyG."""
    if "torch_geometric.data" not in sys.modules:
        return None
    from molgraph.data.pyg_table import graph_columns

    return graph_columns(source)


def is_named(source: Any) -> bool:
    """Whether a source is a name of a table instead of a place of one."""
    return isinstance(source, str) and source.startswith(("builtin:", "dataset:"))


def _rows_of(table: Table) -> SourceRows:
    """A table that is read already, as rows; it has no other columns."""
    names = (*(e.name for e in table.entities), *(t.name for t in table.targets), *table.feature_names)
    return SourceRows(table, names, pa.table({}))


def _load_named(source: str) -> Table:
    kind, _, name = source.partition(":")
    return builtin.load(name) if kind == "builtin" else load_dataset(name).table


def _check_ready(table: Table, reading: Reading, columns: Mapping[str, Any]) -> None:
    """Refuse options that say how a file is read, where the table is read already."""
    known = {option: [e.name for e in table.entities if e.kind == kind] for kind, option in OPTIONS.items()}
    known["features"] = list(table.feature_names)
    for name, value in columns.items():
        asked = (value,) if isinstance(value, str) else tuple(value or ())
        if others := [column for column in asked if column not in known.get(name, ())]:
            there = f"its own: {', '.join(known[name])}" if known.get(name) else "none of its own"
            words = f"{name} is {others[0]!r}, but a dataset or ready table has {there}"
            raise UnusedSettingError(words, hint=f"leave out {name}")
    for name in ("decimal", "qualifiers", "unit"):
        if getattr(reading, name) != getattr(Reading(), name):
            words = f"{name} says how a file is read, and a dataset or ready table is read already"
            raise UnusedSettingError(words, hint=f"leave out {name}")


def _choose(table: Table, targets: Targets) -> Table:
    """A ready table with the targets asked for; a kind may be named again, not changed."""
    if targets is None:
        return table
    kinds = {t.name: t.kind for t in table.targets}
    columns = parse_targets(targets, list(kinds))
    for name, kind in ((target.column, target.kind) for target in columns):
        if kind not in (None, kinds[name]):
            words = f"target {name!r} of this table is {kinds[name]}, not {kind}"
            raise LabelError(words, hint="leave the kind out")
    return table.with_targets([target.column for target in columns])


def _handle(table: Table, on_error: OnError) -> Table:
    """Apply ``on_error``; what is not kept is decided by RDKit itself."""
    if on_error not in ("keep", "drop", "stop"):
        raise UnknownNameError(f"on_error is {on_error!r}", hint=nearest(on_error, ["keep", "drop", "stop"]))
    if on_error == "keep":
        return table
    table = check_molecules(table)
    faulty = np.flatnonzero(~table.ok)
    if on_error == "stop" and len(faulty):
        words = f"{row_name(faulty[0], table.ids[faulty[0]])}: {table.reason[faulty[0]]}"
        hint = "correct it, or use on_error='keep' (--on-error keep) to carry on with a reason in its row"
        raise CellError(words, hint=hint)
    return table.take(table.ok)
