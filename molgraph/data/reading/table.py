"""Build ``Table`` objects from chunks of columns; a row with an odd cell is kept, with a status and a reason."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError
from molgraph.base.packed import Packed
from molgraph.base.table import EntityKind
from molgraph.chem.atom_order import counts_of, follow_block
from molgraph.chem.complexes import read_structure
from molgraph.chem.parallel import map_texts
from molgraph.chem.pose import heavy_atoms, why_other_ligand, why_other_molecule
from molgraph.chem.smiles import MAX_CHARACTERS, precheck
from molgraph.data.graph_values import Geometry
from molgraph.data.reading.cells import OddCell, is_missing
from molgraph.data.reading.chunk import MOLBLOCK, Chunk, as_text
from molgraph.data.reading.entity_columns import reaction_texts
from molgraph.data.reading.numbers import advice, parse_numbers
from molgraph.data.reading.roles import ColumnRoles
from molgraph.data.reading.targets import numbers_of, read_lists
from molgraph.data.table import MISSING, OK, UNREADABLE, Entities, Table

_ODD = r"[^!-=?-~]"  # blanks, ">", control characters, anything beyond ASCII: worth a closer look
Fault = tuple[int, str, str]  # a row, its status and its reason


class SourceRows(NamedTuple):
    """Some rows of a source."""

    table: Table  # the rows as a table
    names: tuple[str, ...]  # names of all the source's columns
    columns: pa.Table  # the source's own columns as they stand there, as far as they were asked for
    odd: Sequence[OddCell] = ()  # the cells that a lenient reading could not read

    def take(self, start: int, stop: int) -> SourceRows:
        """Some of the rows."""
        columns = self.columns.slice(start, stop - start)
        return self._replace(table=self.table.take(np.arange(start, stop)), columns=columns)


class _RowStatus:
    """The status and the reason of each row: those of the first fault that is found."""

    def __init__(self, n: int) -> None:
        self.status, self.reason = np.full(n, OK, dtype=object), np.full(n, "", dtype=object)

    @property
    def ok(self) -> np.ndarray:
        """bool [n]: the rows without a fault."""
        return self.status == OK

    def mark(self, faults: Iterable[Fault]) -> None:
        for row, status, reason in faults:
            if self.status[row] == OK:
                self.status[row], self.reason[row] = status, reason


def build(
    chunk: Chunk, roles: ColumnRoles, targets: tuple[Target, ...], odd: Sequence[OddCell] = ()
) -> tuple[Table, list[OddCell]]:
    """One chunk as a table, and the cells that mark their rows: those of ``odd``, and labels that no target can have.

    Columns of numbers are numbers already, NaN where a cell is odd.
    """
    start, rows = chunk.start, _RowStatus(len(chunk))
    if chunk.reasons is not None:
        rows.mark((row, UNREADABLE, reason) for row, reason in enumerate(chunk.reasons) if reason)
    texts = [Entities(name, kind, _texts(chunk.columns, name, kind, roles)) for name, kind in roles.entities]
    entities = []
    for column in texts:
        entity, faults = _entity(column, chunk.columns[roles.sources.get(column.name, (column.name,))[0]])
        entities.append(entity)
        before = f"{column.name}: " if len(texts) > 1 else ""
        rows.mark((row, status, before + reason) for row, status, reason in faults)
    rows.mark(_other_molecules(roles, texts, entities, rows.ok))
    columns = list(zip((t.column for t in roles.targets), targets, strict=True))
    labels = [numbers_of(chunk.cells(name), target, start) for name, target in columns if target.level == "row"]
    cells = [*odd, *(cell for _, faults in labels for cell in faults)]
    for cell in cells:
        hint = advice(cell.text.strip())
        rows.mark([(cell.row - start, UNREADABLE, f"{cell.reason}; {hint}" if hint else cell.reason)])
    weights = None if roles.weight is None else _weights(chunk, roles.weight, rows)
    lists = _lists(chunk, [(name, target) for name, target in columns if target.level != "row"], entities, rows)
    rows_from = range(start, start + len(chunk))
    ids = np.array([*map(str, rows_from)], dtype=object) if roles.id is None else as_text(chunk.columns[roles.id])
    y = np.column_stack([values for values, _ in labels]) if labels else None
    numbers = [parse_numbers(chunk.cells(name), name, finite=False)[0] for name in roles.features]
    features = np.column_stack(numbers) if numbers else None
    split = None if roles.split is None else as_text(chunk.cells(roles.split))
    row_columns = (ids, tuple(entities), rows.status, rows.reason)
    table = Table(*row_columns, targets, y, lists, weights, features, roles.features, split, gaps=roles.gaps)
    return table, cells


def _lists(
    chunk: Chunk, columns: Sequence[tuple[str, Target]], entities: Sequence[Entities], rows: _RowStatus
) -> dict[str, Packed]:
    """The values of atoms and bonds; rows whose molecule has another number of them are marked.

    Those of an SD file stand in the order of its structures, and are brought into that of their SMILES.
    """
    molecules = [e.values for e in entities if e.kind == "molecule"]
    if not columns:
        return {}
    if len(molecules) != 1:
        words = "targets of atoms or bonds need one column of molecules"
        raise AmbiguousColumnError(words, hint="leave the others out")
    smiles, out = molecules[0], {}
    for name, target in columns:
        codes, texts = pd.factorize(np.where(rows.ok, smiles, ""))
        counts = map_texts(counts_of, list(texts), label="molecules")
        sizes = np.array([getattr(count, target.level) for count in counts], dtype=np.int64)[codes]
        out[target.name], reasons = read_lists(chunk.cells(name), target, sizes)
        rows.mark((row, UNREADABLE, reason) for row, reason in enumerate(reasons) if reason)
    if MOLBLOCK not in chunk.columns.column_names:
        return out
    lists = {name: packed.lists() for name, packed in out.items()}
    blocks = chunk.columns[MOLBLOCK].to_pylist()
    for i in np.flatnonzero(rows.ok).tolist():
        order = follow_block(blocks[i])
        if order is None or order[0] != smiles[i]:
            order = None
            rows.mark([(i, UNREADABLE, "the structure's atoms cannot be followed into its SMILES")])
        for _, target in columns:
            if len(values := lists[target.name][i]):
                places = [] if order is None else getattr(order[1], target.level)
                lists[target.name][i] = values[np.asarray(places, dtype=np.int64)]
    return {name: Packed.of(values) for name, values in lists.items()}


def _texts(columns: pa.Table, name: str, kind: EntityKind, roles: ColumnRoles) -> np.ndarray:
    """The cells of an entity as text, or as the bytes of geometries that a reader made."""
    if kind != "geometry" or not pa.types.is_binary(columns[name].type):
        return reaction_texts(columns, name, roles.sources)
    out = np.empty(len(columns), dtype=object)
    out[:] = columns[name].to_pylist()
    return out


def _entity(entity: Entities, column: pa.ChunkedArray) -> tuple[Entities, list[Fault]]:
    """An entity column, and its rows that hold none as far as that shows without RDKit's parsing of a SMILES."""
    texts: np.ndarray = entity.values
    rows: Sequence[int] = range(len(texts))
    if entity.kind == "geometry":
        return _geometries(entity)
    if entity.kind in ("sequence", "reaction"):  # what its letters mean is left to the featuriser
        return entity, [(row, MISSING, f"no {entity.kind} in this row") for row in rows if is_missing(texts[row])]
    if pa.types.is_string(column.type):
        filled = pc.fill_null(column, "")
        bounds = pc.or_(pc.equal(filled, ""), pc.greater(pc.binary_length(filled), MAX_CHARACTERS))
        odd = pc.or_(pc.match_substring_regex(filled, _ODD), bounds)
        rows = np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist()
    faults = [(row, UNREADABLE if texts[row].strip() else MISSING, precheck(texts[row])) for row in rows]
    return entity, [fault for fault in faults if fault[2]]


def _geometries(entity: Entities) -> tuple[Entities, list[Fault]]:
    """A column of atoms in space, read from its texts; None where there is none, with the reason."""
    values, faults = np.full(len(entity.values), None, dtype=object), list[Fault]()
    for i, text in enumerate(entity.values):
        if not isinstance(text, bytes) and is_missing(text):
            faults.append((i, MISSING, "no geometry in this row"))
            continue
        try:
            values[i] = Geometry.from_bytes(text) if isinstance(text, bytes) else Geometry(*read_structure(text))
        except ValueError as error:
            faults.append((i, UNREADABLE, str(error)))
    return replace(entity, values=values), faults


def _other_molecules(
    roles: ColumnRoles, texts: Sequence[Entities], entities: Sequence[Entities], ok: np.ndarray
) -> list[Fault]:
    """The rows whose atoms in space, or whose complex's ligand, are another molecule than their SMILES.

    The ligand of a complex is compared in any column; other geometries where they are those of the file itself.
    """
    molecules, faults = [e for e in entities if e.kind == "molecule"], list[Fault]()
    if len(molecules) != 1:
        return faults
    smiles = molecules[0].values
    for text, entity in zip(texts, entities, strict=True):
        if entity.kind != "geometry":
            continue
        rows = np.flatnonzero(ok).tolist()
        plain = [row for row in rows if entity.values[row].residue is None]
        plain = plain if roles.pose == (molecules[0].name, entity.name) else []
        atoms = dict(zip(plain, map_texts(heavy_atoms, smiles[plain].tolist()), strict=True))
        for row in rows:
            geometry = entity.values[row]
            if geometry.residue is not None:
                reason = why_other_ligand(str(text.values[row]), str(smiles[row]))
            else:
                reason = why_other_molecule(atoms[row], geometry.numbers) if row in atoms else ""
            if reason:
                faults.append((row, UNREADABLE, reason))
    return faults


def _weights(chunk: Chunk, name: str, rows: _RowStatus) -> np.ndarray:
    """The weights; a row without a number of 0 or more is marked, and weighs nothing."""
    values, _ = parse_numbers(chunk.cells(name), name)
    for row in np.flatnonzero(~(values >= 0)).tolist():
        missing = (row, MISSING, f"no weight in column {name!r}")
        negative = (row, UNREADABLE, f"the weight {name!r} is {values[row]:g}, below 0")
        rows.mark([missing if np.isnan(values[row]) else negative])
    return np.where(values >= 0, values, 0.0)
