"""Prepare tables for a fit: samples, scales and the fingerprint of a checkpoint."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from molgraph.base.cores import cores
from molgraph.base.errors import EmptyError, MismatchError, UnusedSettingError
from molgraph.base.packed import offsets_of
from molgraph.data.content import entity_texts
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.graph_store import InputSpec
from molgraph.data.labels import check_labels, check_targets, check_weights
from molgraph.data.levels import labelled, level_of, pooled
from molgraph.data.limits import middle_of
from molgraph.data.table import OK, Table
from molgraph.data.target_json import notes_of
from molgraph.data.view import View
from molgraph.nn.head import check_head
from molgraph.train.array_labels import arrays_of, kinds_beside, with_arrays
from molgraph.train.atom_targets import check_level, label_places, label_sizes, mark_sizes
from molgraph.train.checkpoint import fingerprint
from molgraph.train.inputs import (
    Input,
    choose_columns,
    graph_of_rows,
    input_column,
    input_graphs,
    row_status,
    train_graphs,
    viewed_columns,
)
from molgraph.train.outputs import ClassWeights, DescriptorScale, Outputs, class_tables, label_weights
from molgraph.train.references import counts_of, mark_unknown
from molgraph.train.row_labels import RowLabels, fit_labels, label_rows
from molgraph.train.samples import Samples

NO_UNLABELLED = (
    "no rows without labels: the objective has nothing to learn from but the labelled rows; see --unlabelled"
)
NO_VALID = "no validation part: trained for all epochs, the last weights kept"
SHOWN = 3  # reasons why rows are left out
MANY_ROWS = 200_000  # about ten seconds of featurising; starting processes takes some


class Prepared(NamedTuple):
    """What a fit needs: its rows, scales of the training part alone, notes, and the fingerprint of recipe and data."""

    train: Samples
    valid: Samples | None
    outputs: Outputs
    descriptors: DescriptorScale
    inputs: tuple[Input, ...]
    notes: tuple[str, ...]
    prints: dict[str, str]


def prepare(
    table: Table,
    valid: Table | None,
    encoder: str,
    columns: Sequence[str] | None,
    class_weights: ClassWeights,
    recipe: Mapping[str, Any],
    cache: Path | None = None,
    threads: int | None = None,
    *,
    targets: bool = True,
    unlabelled: bool = False,
    points: bool = False,
    specs: Mapping[str, InputSpec] | None = None,
    views: Sequence[View] = (),
    judge_views: bool = False,
    labels: RowLabels | None = None,
    folder: Path | None = None,
    scales: tuple[Outputs, DescriptorScale] | None = None,
) -> Prepared:
    """Featurise both parts and put labels and descriptors on the training part's scales.

    ``recipe`` is what a checkpoint must have in common with this fit, ``cache`` a folder that keeps graphs between
    fits. Without ``targets`` every row that can be read is learned from; with ``unlabelled`` the readable rows without
    a label come along, which no scale is taken from; with ``points`` rows with points of a curve are learned from.
    ``specs``: what an encoder's graphs hold, where that is given.
    ``views``: through which training sees its rows, and with
    ``judge_views`` validation too. ``labels``: made of the rows' molecules, in place of targets or behind
    them, and kept in ``folder``. ``scales``: of a network that learns further, in the place of the rows' own. The
    recipe's head says whether a least-squares value of each element is taken off the targets in the place of their
    mean.

    Raises:
        DataError: nothing can be learned from the table, or the two tables do not fit together.
        UnusedSettingError: a joiner where one column is read.
    """
    if not points:
        table, valid = replace(table, points=None), None if valid is None else replace(valid, points=None)
    if not targets:
        table, valid = _bare(table), None if valid is None else _bare(valid)
    arrays = arrays_of(recipe.get("objective", "supervised"), recipe.get("callback"))
    chosen = choose_columns(table, encoder, columns, kinds_beside(arrays))
    check_level(level_of(table.targets), chosen)
    references = targets and check_head(recipe.get("head", "perceptron"), table.targets).references
    if len(chosen) == 1 and recipe.get("joiner", "concat") != "concat":
        words = f"{recipe['joiner']} joins several columns, and the model reads one: {chosen[0][0].name}"
        raise UnusedSettingError(words, hint="leave params.joiner out")
    how: dict[str, Any] = {"cache": cache, "workers": workers_for(table, threads), "params": recipe.get("params")}
    how["featuriser"] = recipe.get("featuriser")
    inputs, graphs = train_graphs(table, chosen, **how, specs=specs)
    graphs, unplaced = with_arrays(table, inputs, graphs, arrays, threads)
    table, readable, unread = _readable(table, inputs, graphs, "training")
    unlearned = check_targets(table, readable).unlearned if targets else {}
    part = _learnable(table, inputs, graphs, readable, unlearned)
    if not len(part.table):
        raise EmptyError("no row of the table can be read", hint="look at the reasons: molgraph data audit FILE")
    counts = counts_of(inputs, graphs) if references else None
    outputs = Outputs.fit(
        table.targets, part.y, unlearned, part.weights, None if counts is None else counts[part.graph[:, 0]]
    )
    args = (part.table.features, part.table.feature_names, part.table.weights, part.table.gaps)
    descriptors = DescriptorScale.fit(*args).unit_rows()
    outputs, descriptors = scales or (outputs, descriptors)
    classes = class_tables(table.targets, part.y, class_weights)

    if labels is not None:
        fit_labels(labels, molecules_of(part.table, inputs), threads)

    def samples(part: _Part, graphs: Sequence[CachedGraphs]) -> Samples:
        limits = part.table.limits
        known = part.y if limits is None else np.where(part.table.limited, middle_of(limits), part.y)
        weights = label_weights(known, part.weights, classes)
        if not targets:  # a corpus: each row counts once
            weights = np.ones((len(part.y), 1), np.float32)
        extra = descriptors.apply(part.table.features, part.table.feature_names)
        stores = tuple(made.store for made in graphs)
        atoms = counts_of(inputs, graphs)[part.graph[:, 0]] if references else None
        y: Any = outputs.labels(part.y, atoms)
        if labels is not None:
            made = label_rows(labels, molecules_of(part.table, inputs), folder, threads)
            y = np.concatenate([y, made[np.arange(len(made))]], axis=1) if targets else made
        scaled, curves = None if limits is None else outputs.limits(limits, atoms), part.table.points
        curves = None if curves is None else replace(curves, values=curves.values.astype(np.float32))
        return Samples(stores, part.graph, extra, y, weights, part.offsets, limits=scaled, points=curves)

    train, held = samples(part, graphs), None
    rest = _without_labels(table, graphs, readable, unlearned) if unlabelled else None
    if rest is not None and len(rest.table):
        train = _with_unlabelled(train, samples(rest, graphs))
    train = replace(train, views=viewed_columns(views, table, inputs, graphs))
    if valid is not None:
        judged, _ = with_arrays(valid, inputs, input_graphs(valid, inputs, cache=cache), arrays, threads)
        if outputs.references is not None:
            judged = tuple(mark_unknown([outputs.references], inputs, judged))
        rows, more = _judged(valid, inputs, judged, outputs)
        unread += more
        held = samples(rows, judged) if len(rows.table) else None
        if held is not None and judge_views:
            held = replace(held, views=viewed_columns(views, valid, inputs, judged))
    named = [*(i.column for i in inputs), *(e.name for e in table.entities if e.kind in kinds_beside(arrays))]
    texts = [entity_texts(subset.table.column(name)) for subset in (part, rest) if subset for name in named]
    extra = "" if train.extra is None else train.extra
    judged_y: Any = None if held is None or (labels is not None and not targets) else held.y
    prints = fingerprint(
        recipe=dict(recipe),
        data=[*texts, part.y, extra, train.weights, *limits_of(train), [repr(t) for t in table.targets]],
        split=["" if held is None else [held.graph.ravel(), judged_y, held.weights, *limits_of(held)]],
        featuriser=" ".join(made.store.featuriser for made in graphs),
    )
    alone = unlabelled and not (rest and len(rest.table))
    notes = (*notes_of(unlearned), *unread, *unplaced, *[NO_VALID] * (held is None), *[NO_UNLABELLED] * alone)
    return Prepared(train, held, outputs, descriptors, inputs, notes, prints)


def limits_of(samples: Samples) -> list[np.ndarray]:
    """The limits of labels and the points of curves, where there are any, for a fingerprint."""
    curves = [] if samples.points is None else [samples.points.values, samples.points.offsets]
    return curves if samples.limits is None else [samples.limits, *curves]


def _bare(table: Table) -> Table:
    """The table without targets, weights and descriptors."""
    table = replace(table, targets=(), y=None, packed={}, weights=None, limits=None, points=None)
    return replace(table, features=None, feature_names=())


def molecules_of(table: Table, inputs: Sequence[Input]) -> list[str]:
    """The SMILES of the one column of molecules that a model reads; none where it reads something else."""
    return [str(text) for text in input_column(table, inputs).values] if inputs[0].kind == "molecule" else []


def workers_for(table: Table, threads: int | None) -> int:
    """Processes that featurise a table: one, until starting more is worth it."""
    return 1 if len(table) < MANY_ROWS else cores(threads)


class _Part(NamedTuple):
    """Rows to learn from: those of a table that have a graph, a label and a weight.

    ``y``, float64 [labels, targets], and ``weights`` have a row for each row of the table, or for each of their atoms
    or bonds; each row's begin at its ``offsets``.
    """

    table: Table
    graph: np.ndarray
    y: np.ndarray
    weights: np.ndarray | None
    offsets: np.ndarray | None


def _readable(
    table: Table, inputs: Sequence[Input], graphs: Sequence[CachedGraphs], part: str
) -> tuple[Table, np.ndarray, list[str]]:
    """The table with the rows marked whose values do not fit their graph; bool [n], rows that have all graphs; and how
    many sound rows have none or do not fit it, the most common reasons first, without what tells of one row alone."""
    sound = table.ok
    if level_of(table.targets) != "row" and len(graphs[0].store):
        table = mark_sizes(table, graphs[0].store, graphs[0].graph_of_row)
    status, reason = row_status(table, inputs, graphs)
    n_parts = 1 + (len(inputs) > 1)  # of several columns, a reason begins with the column's name
    counts = Counter(":".join(str(text).split(":")[:n_parts]) for text in reason[sound & (status != OK)])
    notes = [f"left out of the {part} part: {n:,} x {cause}" for cause, n in counts.most_common(SHOWN)]
    return table, status == OK, notes


def _learnable(
    table: Table,
    inputs: Sequence[Input],
    graphs: Sequence[CachedGraphs],
    readable: np.ndarray,
    unlearned: Collection[str],
) -> _Part:
    """The readable rows that have a label to learn from and a weight above 0."""
    counts = labelled(table, unlearned) if table.targets else np.ones(len(table), dtype=bool)
    if table.points is not None:
        counts |= table.points.sizes > 0
    rows = np.flatnonzero(readable & table.ok & (counts if table.weights is None else counts & (table.weights > 0)))
    part, graph, level = table.take(rows), graph_of_rows(graphs)[rows], level_of(table.targets)
    flat, offsets = pooled(part), None
    y = np.zeros((len(part), 0)) if flat.y is None else np.array(flat.y, dtype=np.float64)
    y[:, [t.name in unlearned for t in flat.targets]] = np.nan
    if level != "row":
        store = graphs[0].store
        offsets = offsets_of(label_sizes(level, store, graph[:, 0]))
        y = y[label_places(level, store, graph[:, 0], input_column(part, inputs).values)]
    return _Part(part, graph, y, flat.weights, offsets)


def _without_labels(
    table: Table, graphs: Sequence[CachedGraphs], readable: np.ndarray, unlearned: Collection[str]
) -> _Part:
    """The readable rows that have no label to learn from, unless their weight is 0."""
    counts = readable & table.ok & ~labelled(table, unlearned)
    rows = np.flatnonzero(counts if table.weights is None else counts & (table.weights > 0))
    y = np.full((len(rows), len(table.targets)), np.nan)
    return _Part(table.take(rows), graph_of_rows(graphs)[rows], y, None, None)


def _with_unlabelled(train: Samples, rest: Samples) -> Samples:
    """The rows of both, the last ones without labels."""

    def stacked(a: np.ndarray | None, b: np.ndarray | None) -> np.ndarray | None:
        return None if a is None or b is None else np.concatenate([a, b])

    return replace(
        train,
        graph=np.concatenate([train.graph, rest.graph]),
        extra=stacked(train.extra, rest.extra),
        y=stacked(train.y, rest.y),
        weights=stacked(train.weights, rest.weights),
        n_unlabelled=len(rest),
    )


def _judged(
    table: Table, inputs: Sequence[Input], graphs: Sequence[CachedGraphs], outputs: Outputs
) -> tuple[_Part, list[str]]:
    """The validation rows that have a graph, a label to learn and a weight above 0, and what was left out."""
    if [t.name for t in table.targets] != [t.name for t in outputs.targets]:
        raise MismatchError(
            f"the validation part has targets {[t.name for t in table.targets]}, "
            f"the training part {[t.name for t in outputs.targets]}"
        )
    table, readable, notes = _readable(table, inputs, graphs, "validation")
    judged = pooled(table.take(readable))
    if judged.y is not None:
        check_labels(judged.targets, np.array(judged.y, dtype=np.float64), judged.ids)
    check_weights(table)
    return _learnable(table, inputs, graphs, readable, outputs.unlearned), notes
