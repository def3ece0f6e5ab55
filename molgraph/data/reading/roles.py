"""Assign roles to the columns of a table: molecule, target, id, weight, descriptor, split, unit or qualifier."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import pyarrow as pa

from molgraph.base.contracts import Target
from molgraph.base.errors import AmbiguousColumnError, LabelError, MissingColumnError
from molgraph.base.table import EntityKind, Gaps
from molgraph.data.reading.chunk import GEOMETRY, Reader
from molgraph.data.reading.entity_columns import (
    find_reaction,
    find_sequences,
    find_smiles,
    holds_reactions,
    resolve_reactions,
)
from molgraph.data.reading.names import find_id, plain, resolve
from molgraph.data.reading.numbers import numeric_columns
from molgraph.data.reading.targets import TargetColumn, parse_targets

Targets = str | Target | Iterable[str | Target] | None
Names = str | Sequence[str] | None
#: the option that names the columns of a kind of entity
OPTIONS: dict[EntityKind, str] = {
    "molecule": "smiles",
    "sequence": "sequence",
    "geometry": "geometry",
    "reaction": "reaction",
}
_LOGARITHM = re.compile(r"p[A-Z]|p_|pchembl|[lL]og|ln_")  # pIC50, pKi, logD, ...
_SIDE_NAMES = {
    "relation": ("relation", "operator", "qualifier", "modifier", "relationship"),
    "unit": ("unit", "units", "uom"),
}
_BEFORE = ("", "standard", "published", "activity", "value")  # such a name, where it is not a target's own


@dataclass(frozen=True)
class ColumnRoles:
    """Which column of a source is what."""

    entities: tuple[tuple[str, EntityKind], ...]
    id: str | None
    weight: str | None
    features: tuple[str, ...]
    split: str | None
    targets: tuple[TargetColumn, ...]
    notes: tuple[str, ...] = ()  # on columns that are not read
    pose: tuple[str, str] | None = None  # a column of SMILES and one of atoms in space that are one molecule
    sources: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # of entities that two columns hold
    gaps: Gaps = "mark"  # what becomes of rows that lack a feature

    @property
    def columns(self) -> list[str]:
        """All columns that are read, without a name twice."""
        parts = [part for name, _ in self.entities for part in self.sources.get(name, (name,))]
        named = [*parts, self.id, self.weight, self.split, *self.features, *(t.column for t in self.targets)]
        return list(dict.fromkeys(name for name in named if name is not None))

    @property
    def numbers(self) -> list[str]:
        """The columns of weights and descriptors."""
        return [*self.features, *([self.weight] if self.weight is not None else [])]


def find_roles(
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
    """Find every column, or raise ``DataError`` with what there is; arguments as of ``molgraph.read_table``."""
    names = reader.names
    target_columns = parse_targets(targets, names)
    values = [t.column for t in target_columns]
    weight = weight and resolve(weight, names, "weights")
    split = split and resolve(split, names, "split")
    descriptors = _descriptors(features, names, values)
    proteins = [resolve(name, names, "sequences") for name in _names(sequence)]
    in_space = [reader.geometry] if reader.geometry is not None else []
    if GEOMETRY in _names(geometry) and GEOMETRY not in map(str.lower, [*names, *in_space]):
        hint = "training makes them of SMILES by --conformers 1 (conformers=1); or give an SD, xyz or npz file, or "
        hint += f"name a column of mol blocks, XYZ or PDB texts: --geometry COLUMN; it has {', '.join(names)}"
        raise MissingColumnError("the table has no atoms in space, which are to be read", hint=hint[:500])
    geometries = [resolve(name, [*names, *in_space], "geometries") for name in _names(geometry)]
    sources = resolve_reactions(_names(reaction), names, None if in_space else reader.smiles)
    taken = [n for n in (weight, split, id, *descriptors, *proteins, *geometries, *values) if n]
    sample = reader.sample()
    if reaction is None and smiles is None and not geometries:
        sources = resolve_reactions(find_reaction(names, sample, taken, reader.smiles), names)
    taken += [column for parts in sources.values() for column in parts]
    molecules = [resolve(name, names, "SMILES") for name in _names(smiles)]
    if not molecules and not geometries and not sources:  # these have their atoms, and need no SMILES
        no_smiles = bool(in_space) and reader.smiles is None  # in the format itself
        needed = not proteins and not no_smiles
        molecules = [n for n in (reader.smiles or find_smiles(names, sample, taken, needed=needed),) if n]
        geometries = [GEOMETRY] if no_smiles and not molecules else []
    entities: list[tuple[str, EntityKind]] = [(name, "molecule") for name in molecules]
    entities += [(name, "sequence") for name in proteins] + [(name, "geometry") for name in geometries]
    entities += [(name, "reaction") for name in sources]
    entity_names = [name for name, _ in entities]
    for name, kind in entities:
        if name in values:
            words = f"column {name!r} holds the {kind}s, so it is no target"
            raise AmbiguousColumnError(words, hint="name a column of values")
        if entity_names.count(name) > 1:
            raise AmbiguousColumnError(f"column {name!r} is named twice as what is read", hint="name each column once")
    taken += molecules
    id = resolve(id, names, "ids") if id is not None else reader.id or find_id(names, taken)
    free = [n for n in names if n not in (*taken, id)]
    if need_targets and not target_columns:
        numeric = numeric_columns(sample, free)
        hint = f"say which: --target {shlex.quote(numeric[0]) if numeric else 'NAME'} (in Python targets=[NAME])"
        raise LabelError(f"no target was named; columns of numbers: {', '.join(numeric) or 'none'}"[:500], hint=hint)
    notes = _unread_sequences(sample, free, molecules) if need_targets and sequence is None else ()
    notes += _unread_reactions(sample, free, molecules) if need_targets and reaction is None else ()
    beside = [name for name in molecules if name != reader.smiles]  # an SD file's own are made of its structures
    pose = (beside[0], GEOMETRY) if len(beside) == 1 and geometries == [reader.geometry] else None
    return ColumnRoles(tuple(entities), id, weight, descriptors, split, target_columns, notes, pose, sources, gaps)


def _descriptors(features: Names, names: Sequence[str], targets: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(resolve(name, names, "features") for name in _names(features))
    for name in columns:
        if columns.count(name) > 1:
            raise AmbiguousColumnError(f"feature {name!r} is given twice", hint="name each feature once")
        if name in targets:
            words = f"column {name!r} is a feature and a target: the answer would be among the questions"
            raise AmbiguousColumnError(words, hint="leave it out of the features")
    return columns


def _unread_sequences(sample: pa.Table, names: Sequence[str], molecules: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns that look like proteins and are not read; those that are nothing else are refused."""
    notes = []
    for name, certain in find_sequences(sample, names).items():
        words = f"column {name!r} {'holds' if certain else 'looks like'} protein sequences, which would not be read"
        hint = f"read it: --sequence {shlex.quote(name)} -m dmpnn+deepdta (in Python sequence={name!r})"
        if molecules:
            hint += f"; or leave it out: --input {shlex.quote(molecules[0])} (in Python inputs=[{molecules[0]!r}])"
        if certain:
            raise AmbiguousColumnError(words, hint=hint)
        notes.append(f"{words}; {hint}")
    return tuple(notes)


def _unread_reactions(sample: pa.Table, names: Sequence[str], molecules: Sequence[str]) -> tuple[str, ...]:
    """Notes on columns of reactions beside the molecules that are read."""
    columns = [name for name in names if molecules and holds_reactions(sample, name)]
    words = "column {0!r} holds reactions, which are not read; to read them: --reaction {1} (in Python reaction={0!r})"
    return tuple(words.format(name, shlex.quote(name)) for name in columns)


def _names(names: Names) -> tuple[str, ...]:
    return () if names is None else (names,) if isinstance(names, str) else tuple(names)


class SideColumns(NamedTuple):
    """The columns that say the relation (<, >, =) and the unit of each row of a target, where there are any."""

    relation: str | None = None
    unit: str | None = None
    shared_unit: str | None = None  # one of units that could be several targets'


def find_side_columns(
    names: Sequence[str], taken: Sequence[str | None], targets: Sequence[str]
) -> dict[str, SideColumns]:
    """The columns of relations and of units that belong to each target, by their names.

    Example:
        >>> find_side_columns(["smiles", "IC50", "IC50_relation", "standard_units"], ["smiles", "IC50"], ["IC50"])
        {'IC50': SideColumns(relation='IC50_relation', unit='standard_units', shared_unit=None)}
    """
    sides: dict[str, dict[str, str]] = {}
    free = {name: plain(name) for name in names if name not in {*taken}}
    for role, words in _SIDE_NAMES.items():
        others = [before for before in _BEFORE if role == "unit" and f"{before}value" in free.values()]  # not targets
        common = {before + word for word in words for before in _BEFORE if before not in others}
        columns: dict[str, str | None] = {}
        for target in targets:
            befores = [plain(target), *(before for before in _BEFORE if plain(target) == f"{before}value")]
            side_names = {before + word for word in words for before in befores}
            columns[target] = next((name for name, word in free.items() if word in side_names), None)
        shared = [name for name, word in free.items() if word in common and name not in columns.values()]
        for target, name in columns.items():
            if name is not None:
                sides.setdefault(target, {})[role] = name
            # a logarithm has no unit: the column belongs to the value that it was taken of
            elif shared and not (role == "unit" and _LOGARITHM.match(target)):
                several = role == "unit" and len(columns) > 1
                sides.setdefault(target, {})["shared_unit" if several else role] = shared[0]
    return {target: SideColumns(**side) for target, side in sides.items()}
