"""Build tables from chunks of columns by a plan of which column is which, every row kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.base.packed import Packed
from molgraph.base.table import EntityKind
from molgraph.chem.atom_order import counts_of, follow_block
from molgraph.chem.parallel import map_texts
from molgraph.chem.smiles import MAX_CHARACTERS, precheck
from molgraph.data import columns as cols
from molgraph.data.cells import OddCell, is_missing
from molgraph.data.chunks import MOLBLOCK, Chunk
from molgraph.data.table import MISSING, OK, UNREADABLE, Entities, Table
from molgraph.data.targets import Asked, numbers_of, read_lists

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

    @property
    def columns(self) -> list[str]:
        """All columns that are read, each once."""
        one = [
            *(name for name, _ in self.entities),
            self.id,
            self.weight,
            self.split,
            *self.features,
            *(a.column for a in self.asked),
        ]
        return list(dict.fromkeys(name for name in one if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The columns of weights and descriptors."""
        return [*self.features, *([self.weight] if self.weight is not None else [])]


class Rows(NamedTuple):
    """Some rows of a source.

    Args:
        table: the rows as a table.
        names: names of all the source's columns.
        columns: the source's own columns as they stand there, as far as they were asked for.
        odd: the cells that a lenient reading could not read.
    """

    table: Table
    names: tuple[str, ...]
    columns: pa.Table
    odd: Sequence[OddCell] = ()

    def take(self, start: int, stop: int) -> Rows:
        """Some of the rows."""
        columns = self.columns.slice(start, stop - start)
        return self._replace(table=self.table.take(np.arange(start, stop)), columns=columns)


def build(chunk: Chunk, plan: ColumnRoles, targets: tuple[Target, ...]) -> Table:
    """One chunk as a table."""
    columns, n, start = chunk.columns, len(chunk), chunk.start
    entities = tuple(Entities(name, kind, cols.as_text(columns[name])) for name, kind in plan.entities)
    status, reason = np.full(n, OK, dtype=object), np.full(n, "", dtype=object)
    for entity in reversed(entities):  # the first column's reason is the one that stays
        judge = _judge if entity.kind == "molecule" else _judge_sequence
        own, why = judge(columns[entity.name], entity.values)
        bad = own != OK
        prefix = f"{entity.name}: " if len(entities) > 1 else ""
        status[bad], reason[bad] = own[bad], [f"{prefix}{text}" for text in why[bad]]
    if chunk.reasons is not None:
        bad = chunk.reasons != ""
        status[bad], reason[bad] = UNREADABLE, chunk.reasons[bad]
    ids = np.array([str(i) for i in range(start, start + n)], dtype=object)
    if plan.id is not None:
        ids = cols.as_text(columns[plan.id])
    named = [(chunk.cells(asked.column), target) for asked, target in zip(plan.asked, targets, strict=True)]
    values = [numbers_of(cells, target, start) for cells, target in named if target.level == "row"]
    below = [(cells, target) for cells, target in named if target.level != "row"]
    lists = _lists(below, entities, status, reason)
    if lists and MOLBLOCK in columns.column_names:
        lists = _in_smiles_order(lists, targets, columns[MOLBLOCK].to_pylist(), entities[0].values, status, reason)
    features = None
    if plan.features:
        features = np.column_stack([cols.as_numbers(chunk.cells(f), f, start, finite=False) for f in plan.features])
    return Table(
        ids,
        entities,
        status,
        reason,
        targets,
        np.column_stack(values) if values else None,
        packed=lists,
        weights=None if plan.weight is None else _weights(chunk, plan.weight),
        features=features,
        feature_names=plan.features,
        split=None if plan.split is None else cols.as_text(chunk.cells(plan.split)),
    )


def _lists(
    columns: list[tuple[pa.ChunkedArray, Target]], entities: Sequence[Entities], status: np.ndarray, reason: np.ndarray
) -> dict[str, Packed]:
    """The values of atoms and bonds; rows whose molecule has another number of them are marked."""
    molecules = [e.values for e in entities if e.kind == "molecule"]
    if columns and len(molecules) != 1:
        raise DataError("targets of atoms or bonds need one column of molecules", hint="leave the others out")
    out = {}
    for cells, target in columns:
        codes, texts = pd.factorize(np.where(status == OK, molecules[0], ""))
        counts = map_texts(counts_of, list(texts), label="molecules")
        sizes = np.array([getattr(count, target.level) for count in counts], dtype=np.int64)[codes]
        out[target.name], why = read_lists(cells, target, sizes)
        bad = np.flatnonzero((why != "") & (status == OK))
        status[bad], reason[bad] = UNREADABLE, why[bad]
    return out


def _in_smiles_order(
    lists: dict[str, Packed], targets: tuple[Target, ...], blocks: list[str], texts: np.ndarray,
    status: np.ndarray, reason: np.ndarray,
) -> dict[str, Packed]:  # fmt: skip
    """The values of an SD file, which stand in the order of its structures, in that of their SMILES."""
    cells = {name: packed.lists() for name, packed in lists.items()}
    for i in np.flatnonzero(status == OK):
        found = follow_block(blocks[i])
        if found is None or found[0] != texts[i]:
            status[i], reason[i] = UNREADABLE, "the structure's atoms cannot be followed into its SMILES"
        for target in targets:
            if target.name in cells and len(cells[target.name][i]):
                kept = [] if status[i] != OK or found is None else getattr(found[1], target.level)
                cells[target.name][i] = cells[target.name][i][np.asarray(kept, dtype=np.int64)]
    return {name: Packed.of(each) for name, each in cells.items()}


def _judge(column: pa.ChunkedArray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Status and reason of every row as far as they show without parsing."""
    status, reason = np.full(len(texts), OK, dtype=object), np.full(len(texts), "", dtype=object)
    if pa.types.is_string(column.type):
        filled = pc.fill_null(column, "")
        odd = pc.or_(
            pc.match_substring_regex(filled, _ODD),
            pc.or_(pc.equal(filled, ""), pc.greater(pc.binary_length(filled), MAX_CHARACTERS)),
        )
        look = np.flatnonzero(odd.to_numpy(zero_copy_only=False))
    else:
        look = np.arange(len(texts))
    for i in look:
        reason[i] = precheck(texts[i])
        if reason[i]:
            status[i] = UNREADABLE if texts[i].strip() else MISSING
    return status, reason


def _judge_sequence(column: pa.ChunkedArray, texts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows without a sequence; what its letters mean is left to the featuriser."""
    empty = np.array([is_missing(text) for text in texts], dtype=bool)
    status = np.where(empty, MISSING, OK).astype(object)
    return status, np.where(empty, "no sequence in this row", "").astype(object)


def _weights(chunk: Chunk, name: str) -> np.ndarray:
    values, start = cols.as_numbers(chunk.cells(name), name, chunk.start), chunk.start
    if chunk.torn is not None:
        values[chunk.torn] = 0.0
    wrong = np.flatnonzero(np.isnan(values) | (values < 0))
    if len(wrong):
        raise DataError(
            f"the weight column {name!r} is {values[wrong[0]]:g} in row {start + wrong[0] + 1}",
            hint="every row needs a weight of 0 or more",
        )
    return values
