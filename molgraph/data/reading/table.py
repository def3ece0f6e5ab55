"""Build tables from chunks of columns by a plan of which column is which, every row kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError
from molgraph.base.packed import Packed
from molgraph.base.table import EntityKind, Gaps
from molgraph.chem.atom_order import counts_of, follow_block
from molgraph.chem.complexes import read_structure
from molgraph.chem.parallel import map_texts
from molgraph.chem.pose import heavy_atoms, why_other_ligand, why_other_molecule
from molgraph.chem.smiles import MAX_CHARACTERS, precheck
from molgraph.data.graph_values import Geometry
from molgraph.data.reading import columns as cols
from molgraph.data.reading.cells import OddCell, is_missing
from molgraph.data.reading.chunk import MOLBLOCK, Chunk
from molgraph.data.reading.numbers import advice, as_numbers
from molgraph.data.reading.reaction_columns import reaction_texts
from molgraph.data.reading.targets import Asked, numbers_of, read_lists
from molgraph.data.table import MISSING, OK, UNREADABLE, Entities, Table

_ODD = r"[^!-=?-~]"  # blanks, ">", control characters, anything beyond ASCII: worth a closer look


@dataclass(frozen=True)
class ColumnRoles:
    """Which column of a source is what."""

    entities: tuple[tuple[str, EntityKind], ...]
    id: str | None
    weight: str | None
    features: tuple[str, ...]
    split: str | None
    asked: tuple[Asked, ...]
    notes: tuple[str, ...] = ()  # on columns that are not read
    pose: tuple[str, str] | None = None  # a column of SMILES and one of atoms in space that are one molecule
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of entities that two columns hold
    gaps: Gaps = "mark"  # what becomes of rows that lack a feature

    @property
    def columns(self) -> list[str]:
        """All columns that are read, each once."""
        held = [part for name, _ in self.entities for part in self.sources.get(name, (name,))]
        named = [*held, self.id, self.weight, self.split, *self.features]
        return list(dict.fromkeys(name for name in [*named, *(a.column for a in self.asked)] if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The columns of weights and descriptors."""
        return [*self.features, *([self.weight] if self.weight is not None else [])]


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


def build(
    chunk: Chunk, plan: ColumnRoles, targets: tuple[Target, ...], odd: Sequence[OddCell] = ()
) -> tuple[Table, list[OddCell]]:
    """One chunk as a table, and the cells that mark their rows: those of ``odd``, and labels that no target can have.

    Columns of numbers are numbers already, NaN where a cell is odd.
    """
    columns, n, start = chunk.columns, len(chunk), chunk.start
    read = [Entities(name, kind, _values(columns, name, kind, plan)) for name, kind in plan.entities]
    judged = [_judge(each, columns[plan.sources.get(each.name, (each.name,))[0]]) for each in read]
    entities = tuple(entity for entity, _ in judged)
    status, reason = np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    for entity, wrong in reversed(judged):  # the first column's reason is the one that stays
        for row, own, why in wrong:
            status[row], reason[row] = own, f"{entity.name}: {why}" if len(entities) > 1 else why
    _check_poses(plan, read, entities, status, reason)
    if chunk.reasons is not None:
        bad = chunk.reasons != ""
        status[bad], reason[bad] = UNREADABLE, chunk.reasons[bad]
    ids = np.array([str(i) for i in range(start, start + n)], dtype=object)
    if plan.id is not None:
        ids = cols.as_text(columns[plan.id])
    rows_of = [
        (asked.column, target) for asked, target in zip(plan.asked, targets, strict=True) if target.level == "row"
    ]
    labels = [numbers_of(chunk.cells(column), target, start) for column, target in rows_of]
    faults = [*odd, *(cell for _, cells in labels for cell in cells)]
    for cell in faults:
        if status[cell.row - start] == OK:
            tip = advice(cell.text.strip())
            status[cell.row - start], reason[cell.row - start] = UNREADABLE, f"{cell.why}; {tip}" if tip else cell.why
    weights = None if plan.weight is None else _weights(chunk, plan.weight, status, reason)
    lists = _lists(chunk, plan, targets, entities, status, reason)
    features = None
    if plan.features:
        features = np.column_stack([as_numbers(chunk.cells(f), f, start, finite=False) for f in plan.features])
    y = np.column_stack([values for values, _ in labels]) if labels else None
    split = None if plan.split is None else cols.as_text(chunk.cells(plan.split))
    columns = (targets, y, lists, weights, features, plan.features, split)
    return Table(ids, entities, status, reason, *columns, gaps=plan.gaps), faults


def _lists(
    chunk: Chunk, plan: ColumnRoles, targets: tuple[Target, ...], entities: Sequence[Entities],
    status: np.ndarray, reason: np.ndarray,
) -> dict[str, Packed]:  # fmt: skip
    """The values of atoms and bonds; rows whose molecule has another number of them are marked.

    Those of an SD file stand in the order of its structures, and are brought into that of their SMILES.
    """
    below = [(asked.column, t) for asked, t in zip(plan.asked, targets, strict=True) if t.level != "row"]
    molecules = [e.values for e in entities if e.kind == "molecule"]
    if below and len(molecules) != 1:
        words = "targets of atoms or bonds need one column of molecules"
        raise AmbiguousColumnError(words, hint="leave the others out")
    out = {}
    for column, target in below:
        codes, texts = pd.factorize(np.where(status == OK, molecules[0], ""))
        counts = map_texts(counts_of, list(texts), label="molecules")
        sizes = np.array([getattr(count, target.level) for count in counts], dtype=np.int64)[codes]
        out[target.name], why = read_lists(chunk.cells(column), target, sizes)
        bad = np.flatnonzero((why != "") & (status == OK))
        status[bad], reason[bad] = UNREADABLE, why[bad]
    if not below or MOLBLOCK not in chunk.columns.column_names:
        return out
    cells = {name: packed.lists() for name, packed in out.items()}
    blocks = chunk.columns[MOLBLOCK].to_pylist()
    for i in np.flatnonzero(status == OK):
        found = follow_block(blocks[i])
        if found is None or found[0] != molecules[0][i]:
            found = None
            status[i], reason[i] = UNREADABLE, "the structure's atoms cannot be followed into its SMILES"
        for _, target in below:
            if len(each := cells[target.name][i]):
                kept = [] if found is None else getattr(found[1], target.level)
                cells[target.name][i] = each[np.asarray(kept, dtype=np.int64)]
    return {name: Packed.of(each) for name, each in cells.items()}


def _values(columns: pa.Table, name: str, kind: EntityKind, plan: ColumnRoles) -> np.ndarray:
    """The cells of an entity as text, or as the bytes of geometries that a reader made."""
    if kind != "geometry" or not pa.types.is_binary(columns[name].type):
        return reaction_texts(columns, name, plan.sources)
    out = np.empty(len(columns), dtype=object)
    out[:] = columns[name].to_pylist()
    return out


def _judge(entity: Entities, column: pa.ChunkedArray) -> tuple[Entities, list[tuple[int, str, str]]]:
    """An entity column, and its rows that hold none as far as that shows without RDKit's parsing of a SMILES."""
    texts: np.ndarray = entity.values
    look: Sequence[int] = range(len(texts))
    if entity.kind == "geometry":
        return _geometries(entity)
    if entity.kind in ("sequence", "reaction"):  # what its letters mean is left to the featuriser
        return entity, [(i, MISSING, f"no {entity.kind} in this row") for i in look if is_missing(texts[i])]
    if pa.types.is_string(column.type):
        filled = pc.fill_null(column, "")
        bounds = pc.or_(pc.equal(filled, ""), pc.greater(pc.binary_length(filled), MAX_CHARACTERS))
        odd = pc.or_(pc.match_substring_regex(filled, _ODD), bounds)
        look = np.flatnonzero(odd.to_numpy(zero_copy_only=False)).tolist()
    found = [(i, UNREADABLE if texts[i].strip() else MISSING, precheck(texts[i])) for i in look]
    return entity, [each for each in found if each[2]]


def _geometries(entity: Entities) -> tuple[Entities, list[tuple[int, str, str]]]:
    """A column of atoms in space, read from its texts; None where there is none, with the reason."""
    values, wrong = np.full(len(entity.values), None, dtype=object), []
    for i, text in enumerate(entity.values):
        if not isinstance(text, bytes) and is_missing(text):
            wrong.append((i, MISSING, "no geometry in this row"))
            continue
        try:
            values[i] = Geometry.from_bytes(text) if isinstance(text, bytes) else Geometry(*read_structure(text))
        except ValueError as error:
            wrong.append((i, UNREADABLE, str(error)))
    return replace(entity, values=values), wrong


def _check_poses(
    plan: ColumnRoles, read: Sequence[Entities], entities: Sequence[Entities], status: np.ndarray, reason: np.ndarray
) -> None:
    """Mark the rows whose atoms in space, or whose complex's ligand, are another molecule than their SMILES.

    The ligand of a complex is compared in any column; other geometries where they are those of the file itself.
    """
    molecules = [each for each in entities if each.kind == "molecule"]
    if len(molecules) != 1:
        return
    texts = molecules[0].values
    for held, entity in zip(read, entities, strict=True):
        if entity.kind != "geometry":
            continue
        rows = np.flatnonzero(status == OK)
        plain = [row for row in rows if entity.values[row].residue is None]
        plain = plain if plan.pose == (molecules[0].name, entity.name) else []
        atoms = dict(zip(plain, map_texts(heavy_atoms, texts[plain].tolist()), strict=True))
        for row in rows:
            value = entity.values[row]
            if value.residue is not None:
                why = why_other_ligand(str(held.values[row]), str(texts[row]))
            else:
                why = why_other_molecule(atoms[row], value.numbers) if row in atoms else ""
            if why:
                status[row], reason[row] = UNREADABLE, why


def _weights(chunk: Chunk, name: str, status: np.ndarray, reason: np.ndarray) -> np.ndarray:
    """The weights; a row without a number of 0 or more is marked, and weighs nothing."""
    values = as_numbers(chunk.cells(name), name, chunk.start)
    for row in np.flatnonzero(~(values >= 0) & (status == OK)).tolist():
        gone = np.isnan(values[row])
        status[row] = MISSING if gone else UNREADABLE
        reason[row] = f"no weight in column {name!r}" if gone else f"the weight {name!r} is {values[row]:g}, below 0"
    return np.where(values >= 0, values, 0.0)
