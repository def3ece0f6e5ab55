"""Which encoder reads which entity column of a table, and the graphs that it reads."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, islice
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from molgraph.base import registry
from molgraph.base.errors import (
    BadValueError,
    MissingColumnError,
    UnknownNameError,
    UnsupportedError,
    UnusedSettingError,
    nearest,
)
from molgraph.base.parts import make_part
from molgraph.base.printable import count
from molgraph.data.featuriser import Featuriser
from molgraph.data.featurize_complex import SERINE
from molgraph.data.graph_cache import CachedGraphs, graphs_of
from molgraph.data.graph_store import InputSpec
from molgraph.data.reading.roles import OPTIONS
from molgraph.data.sides import lacking, of_complexes
from molgraph.data.table import OK, UNREADABLE, Entities, Table
from molgraph.data.view import View, ViewedColumn, check_views


@dataclass(frozen=True)
class Input:
    """An entity column, its kind, the encoder that reads it, and what the encoder was built to find in its graphs.

    ``part``: the featuriser with its settings that was asked for by name; empty for the encoder's own.
    ``whole``: whether it learned from complexes, so that a ligand or a protein alone is a marked row.
    """

    column: str
    kind: str
    encoder: str
    spec: InputSpec
    part: str = ""
    whole: bool = False

    @property
    def featuriser(self) -> Featuriser:
        """The one that makes the column's graphs, of the version that the encoder was built for."""
        base = make_part("featuriser", self.part) if self.part else featuriser_of(self.encoder, self.kind)
        featuriser: Featuriser = base.as_of(self.spec.featuriser)
        return featuriser

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        plain = {name: getattr(self, name) for name in ("column", "kind", "encoder", *["part"] * bool(self.part))}
        plain |= {"whole": True} if self.whole else {}
        return plain | {"spec": self.spec.to_json()}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Input:
        """From plain values."""
        column, kind, encoder = (str(values[name]) for name in ("column", "kind", "encoder"))
        more = str(values.get("part", "")), bool(values.get("whole", False))
        return cls(column, kind, encoder, InputSpec.from_json(values["spec"]), *more)


def featuriser_of(encoder: str, kind: str, params: Mapping[str, Any] | None = None) -> Featuriser:
    """The featuriser that an encoder of these hyper-parameters asks for, or the kind's own."""
    return registry.get("featuriser", registry.get("encoder", encoder).featuriser(kind, params or {}))()


def trial_inputs(encoder: str, params: Mapping[str, Any] = MappingProxyType({})) -> tuple[Input, ...]:
    """Inputs of example entities, by which an encoder's parameters can be tried without a table."""
    names = encoder_names(encoder)
    kinds = {name: registry.get("encoder", name).reads[0] for name in names}
    makers = {name: featuriser_of(name, kind, own_params(params, name, len(names))) for name, kind in kinds.items()}
    return tuple(Input(kinds[n], kinds[n], n, maker.featurise(maker.examples).spec) for n, maker in makers.items())


def encoder_names(encoder: str) -> tuple[str, ...]:
    """The encoders that a name such as ``dmpnn`` or ``dmpnn+deepdta`` asks for."""
    return tuple(encoder.split("+"))


def own_params(params: Mapping[str, Any], owner: str, n_encoders: int) -> dict[str, Any]:
    """Those of the hyper-parameters that are one encoder's, or the joiner's.

    Example:
        >>> own_params({"dmpnn.depth": 4, "deepdta.width": 8}, "dmpnn", 2), own_params({"depth": 4}, "dmpnn", 1)
        ({'depth': 4}, {'depth': 4})
    """
    overrides = {k.removeprefix(f"{owner}."): value for k, value in params.items() if k.startswith(f"{owner}.")}
    plain = {name: value for name, value in params.items() if "." not in name} if n_encoders == 1 else {}
    return {**plain, **overrides}


def choose_columns(
    table: Table, encoder: str, columns: Sequence[str] | None, beside: Collection[str] = ()
) -> list[tuple[Entities, str]]:
    """The entity columns that a model reads, each with its encoder.

    A column's encoder is the first of ``dmpnn+deepdta`` that reads its kind and has no column yet, or else the last
    that reads it. Without ``columns`` all are read; naming some leaves the others out on purpose, and so does a kind
    ``beside``, which something else than an encoder reads.

    Raises:
        UsageError: a column that no encoder reads, an encoder without a column, an unknown column.
    """
    known = [entity.name for entity in table.entities]
    for name in columns or ():
        if name not in known:
            raise UnknownNameError(f"the table has no entity column {name!r}", hint=nearest(name, known))
    names = encoder_names(encoder)
    reads = {name: registry.get("encoder", name).reads for name in names}
    chosen: list[tuple[Entities, str]] = []
    for entity in table.entities:
        if columns is not None and entity.name not in columns:
            continue
        able = [name for name in names if entity.kind in reads[name]]
        if not able and entity.kind in beside:
            continue
        if not able:
            readers = [n for n in registry.names("encoder") if entity.kind in registry.get("encoder", n).reads]
            others = [e.name for e in table.entities if any(e.kind in kinds for kinds in reads.values())]
            named = " ".join(f"--input {other}" for other in others)
            raise UnsupportedError(
                f"{encoder} does not read the column {entity.name!r} ({entity.kind})",
                hint=f"choose a model that does ({', '.join(readers)})"
                + f", or leave it out by name: {named} (in Python inputs={others})" * bool(others),
            )
        free = [name for name in able if name not in {taken for _, taken in chosen}]
        chosen.append((entity, [*free, able[-1]][0]))
    for name in names:
        if name not in (used for _, used in chosen):
            raise UnsupportedError(
                f"{name} has no column to read: it reads {' or '.join(reads[name])}",
                hint="the table's columns: " + ", ".join(f"{e.name} ({e.kind})" for e in table.entities),
            )
    return chosen


def train_graphs(
    table: Table,
    chosen: Sequence[tuple[Entities, str]],
    *,
    cache: Path | None,
    workers: int,
    specs: Mapping[str, InputSpec] | None = None,
    params: Mapping[str, Any] | None = None,
    featuriser: str | None = None,
) -> tuple[tuple[Input, ...], tuple[CachedGraphs, ...]]:
    """The inputs of a fit and their graphs.

    ``params``: hyper-parameters, which may say what makes an encoder's graphs; of several encoders each has its
    encoder's name before it. An encoder of ``specs`` reads graphs with the settings of that spec, as far as any row
    fits them: how many labels occur in these rows does not decide. ``featuriser``: a registered one with its settings,
    which makes the graphs of its kind's columns in place of the encoders' own.

    Raises:
        UnusedSettingError: a featuriser of a kind that no column has.
    """
    inputs, graphs, n_encoders = [], [], len({encoder for _, encoder in chosen})
    asked_for: Featuriser | None = make_part("featuriser", featuriser) if featuriser else None
    if asked_for is not None and asked_for.kind not in (kinds := [entity.kind for entity, _ in chosen]):
        words = f"{featuriser} makes graphs of a {asked_for.kind}, and the columns read are: {', '.join(kinds)}"
        raise UnusedSettingError(words, hint="leave params.featuriser out")
    for entity, encoder in chosen:
        part = featuriser if featuriser and asked_for is not None and asked_for.kind == entity.kind else ""
        default = featuriser_of(encoder, entity.kind, own_params(params or {}, encoder, n_encoders))
        how = table, entity, asked_for if part and asked_for is not None else default
        cached = graphs_of(*how, cache=cache, workers=workers)
        spec, asked = cached.store.spec, (specs or {}).get(encoder)
        if asked is not None and asked.featuriser == spec.featuriser and asked.settings != spec.settings:
            again = graphs_of(*how, spec=asked, cache=cache, workers=workers)
            if (again.store.status == OK).any():
                cached, spec = again, asked
        inputs.append(Input(entity.name, entity.kind, encoder, spec, part, of_complexes(entity.values)))
        graphs.append(cached)
    return tuple(inputs), tuple(graphs)


def input_graphs(table: Table, inputs: Sequence[Input], *, cache: Path | None = None) -> tuple[CachedGraphs, ...]:
    """The graphs of other rows for a model's inputs: columns of the same names, else as many of the kind, in order."""
    columns = [input_column(table, inputs, k) for k in range(len(inputs))]
    pairs = zip(columns, inputs, strict=True)
    return tuple(graphs_of(table, entity, input_.featuriser, spec=input_.spec, cache=cache) for entity, input_ in pairs)


def input_column(table: Table, inputs: Sequence[Input], k: int = 0) -> Entities:
    """The column of a table that is a model's k-th input; raises ``DataError`` where it is lacking or open."""
    input_ = inputs[k]
    entities = {e.name: e for e in table.entities if e.kind == input_.kind}
    asked = [other.column for other in inputs if other.kind == input_.kind]
    if set(asked) <= set(entities):
        return entities[input_.column]
    if len(entities) == len(asked):
        return list(entities.values())[sum(other.kind == input_.kind for other in inputs[:k])]
    have = ", ".join(f"{e.name} ({e.kind})" for e in table.entities) or "none"
    names = ", ".join(map(repr, asked))
    message = f"the table lacks the {input_.kind} columns that the model reads: {names}"
    raise MissingColumnError(message, hint=f"it has: {have}")


def named_columns(read: Sequence[tuple[str, str]], given: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """The columns of a file that a model reads: those that are named, else several by their names in the training.

    Args:
        read: kind and name of each column of the training; one of molecules is found in any file.
        given: ``smiles``, ``sequence``, ``geometry``, ``reaction``, where they are named, in the training's order.

    Example:
        >>> named_columns([("molecule", "drug"), ("sequence", "protein")], {"smiles": "ligand"})
        {'smiles': ('ligand',), 'sequence': ('protein',)}
    """
    columns: dict[str, tuple[str, ...]] = {}
    for kind, option in OPTIONS.items():
        names = tuple(column for k, column in read if k == kind)
        named = given.get(option)
        if named is None:
            columns |= {option: names} if names and (len(read) > 1 or kind != "molecule") else {}
            continue
        named = (named,) if isinstance(named, str) else tuple(named)
        if len(named) != len(names):
            raise BadValueError(
                f"the model reads {count(len(names), f'{kind} column')}; the names are {len(named)}: "
                f"{', '.join(map(str, named))}",
                hint=f"it was trained on {', '.join(column for _, column in read)}",
            )
        if named != names and set(named) == set(names):
            raise BadValueError(
                f"the columns {', '.join(named)} are named in another order than the model's",
                hint=f"name them as {', '.join(names)}; to exchange them, rename the columns of the file",
            )
        columns[option] = named
    return columns


def graph_of_rows(graphs: Sequence[CachedGraphs]) -> np.ndarray:
    """int64 [rows, inputs]: the graph of each row's entity in each input, -1 where a row has none."""
    return np.stack([cached.graph_of_row for cached in graphs], axis=1)


def viewed_columns(
    views: Sequence[View], table: Table, inputs: Sequence[Input], graphs: Sequence[CachedGraphs]
) -> tuple[ViewedColumn, ...]:
    """Each input's column as training sees it; a view that changes none of them is a ``UsageError``."""
    makers, columns = [input_.featuriser for input_ in inputs], list[ViewedColumn]()
    check_views(views, makers)
    for maker, input_, data in zip(makers, inputs, graphs, strict=True):
        column, values, rows = table.column(input_.column), np.empty(len(data.store), object), data.graph_of_row >= 0
        values[data.graph_of_row[rows]] = column.values[rows]
        views_of = tuple(view for view in views if view.changes(maker))
        columns.append(ViewedColumn(views_of, replace(column, values=values), maker, input_.spec))
    return tuple(columns) if views else ()


def row_status(table: Table, inputs: Sequence[Input], graphs: Sequence[CachedGraphs]) -> tuple[np.ndarray, np.ndarray]:
    """Status and reason of every row: a row is ``ok`` where each of its entities has a graph.

    Where a model learned from complexes, one that lacks its ligand or its protein is ``unreadable``.
    """
    status, reason = table.status.copy(), table.reason.copy()
    for k, (input_, cached) in enumerate(zip(inputs, graphs, strict=True)):
        fresh = np.flatnonzero((cached.graph_of_row >= 0) & (status == OK))
        status[fresh] = cached.store.status[cached.graph_of_row[fresh]]
        reasons = cached.store.reason[cached.graph_of_row[fresh]]
        if len(inputs) > 1:
            reasons = np.array([f"{input_.column}: {text}" if text else "" for text in reasons], dtype=object)
        reason[fresh] = reasons
        for row in np.flatnonzero(status == OK) if input_.whole else ():
            if side := lacking(input_column(table, inputs, k).values[row]):
                words = f"a complex without its {side}, and the model learned from whole ones"
                status[row], reason[row] = UNREADABLE, f"{input_.column}: {words}" if len(inputs) > 1 else words
    return status, reason


def example_table(inputs: Sequence[Input], feature_names: Sequence[str], n: int) -> Table:
    """A table of example entities for a model's inputs, with zeros in its descriptor columns."""
    entities = []
    for input_ in inputs:
        values = np.empty(n, dtype=object)
        examples = [v for v in input_.featuriser.examples_for(input_.spec) if not (input_.whole and lacking(v))]
        for i, value in enumerate(islice(cycle(examples or [SERINE]), n)):
            values[i] = value
        entities.append(Entities(input_.column, input_.kind, values))  # type: ignore[arg-type]
    ids, status, reason = np.arange(n).astype(str).astype(object), np.full(n, OK, object), np.full(n, "", object)
    features = np.zeros((n, len(feature_names))) if feature_names else None
    return Table(ids, tuple(entities), status, reason, features=features, feature_names=tuple(feature_names))
