"""Assign roles to the columns of a source, and kinds to its targets."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence

from molgraph.base.contracts import Target
from molgraph.base.errors import DataError
from molgraph.base.table import EntityKind
from molgraph.data import columns as cols
from molgraph.data.chunks import Chunk, Reader
from molgraph.data.table_builder import ColumnRoles
from molgraph.data.targets import Asked, Findings, parse_targets
from molgraph.data.value_lists import flat_values

Targets = str | Target | Iterable[str | Target] | None
Names = str | Sequence[str] | None


def make_plan(
    reader: Reader,
    smiles: Names = None,
    targets: Targets = None,
    id: str | None = None,
    weight: str | None = None,
    features: Sequence[str] = (),
    split: str | None = None,
    need_targets: bool = False,
    sequence: Names = None,
) -> ColumnRoles:
    """Find every column, or raise ``DataError`` with what there is."""
    names = reader.names
    asked = parse_targets(targets, names)
    weight = weight and cols.resolve(weight, names, "weights")
    split = split and cols.resolve(split, names, "split")
    features = (features,) if isinstance(features, str) else tuple(features)
    described = tuple(cols.resolve(f, names, "features") for f in features)
    for name in described:
        if described.count(name) > 1:
            raise DataError(f"feature {name!r} is given twice", hint="name each feature once")
        if any(name == a.column for a in asked):
            raise DataError(
                f"column {name!r} is a feature and a target: the answer would be among the questions",
                hint="leave it out of the features",
            )
    proteins = [cols.resolve(name, names, "sequences") for name in _names(sequence)]
    taken = [n for n in (weight, split, id, *described, *proteins, *(a.column for a in asked)) if n]
    sample = reader.sample()
    molecules = [cols.resolve(name, names, "SMILES") for name in _names(smiles)]
    if not molecules:
        molecules = [reader.smiles or cols.find_smiles(names, sample, taken)]
    entities: list[tuple[str, EntityKind]] = [(name, "molecule") for name in molecules]
    entities += [(name, "sequence") for name in proteins]
    for name, kind in entities:
        if any(name == a.column for a in asked):
            words = "molecules" if kind == "molecule" else "sequences"
            raise DataError(f"column {name!r} holds the {words}, so it is no target", hint="name a column of values")
        if [each for each, _ in entities].count(name) > 1:
            raise DataError(f"column {name!r} is named twice as what is read", hint="name each column once")
    taken += molecules
    id = cols.resolve(id, names, "ids") if id is not None else reader.id or cols.find_id(names, taken)
    if need_targets and not asked:
        numeric = cols.numeric(sample, [n for n in names if n not in (*taken, id)])
        raise DataError(
            f"no target was named; columns of numbers: {', '.join(numeric) or 'none'}"[:500],
            hint=f"say which: --target {shlex.quote(numeric[0]) if numeric else 'NAME'} (in Python targets=[NAME])",
        )
    return ColumnRoles(tuple(entities), id, weight, described, split, asked)


def _names(given: Names) -> tuple[str, ...]:
    return () if given is None else (given,) if isinstance(given, str) else tuple(given)


def settled(asked: Asked) -> bool:
    """Whether a target needs no look at the rows."""
    if asked.kind == "multiclass":
        return asked.target is not None and bool(asked.target.classes)
    return asked.kind is not None


def decide(asked: tuple[Asked, ...], chunks: Iterable[Chunk]) -> tuple[Target, ...]:
    """The targets, with the kinds and classes that the rows show where they were not given."""
    findings = [Findings(a) for a in asked]
    for chunk in chunks:
        for one in findings:
            if settled(one.asked):
                continue
            column = chunk.cells(one.asked.column)
            if one.asked.level != "row":  # a cell that cannot be read is a matter of its row
                column = flat_values(column, numbers=one.asked.kind is None)
            one.look(column, chunk.start)
    return tuple(one.target() for one in findings)
