"""Prepare tables for a fit: samples, scales and the fingerprint of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from molgraph.base.cores import cores
from molgraph.base.errors import DataError
from molgraph.data.content import entity_texts
from molgraph.data.graph_cache import Graphs
from molgraph.data.labels import check_labels, check_targets, check_weights
from molgraph.data.table import OK, Table
from molgraph.data.unlearned import notes_of
from molgraph.train.checkpoint import fingerprint
from molgraph.train.descriptors import Descriptors
from molgraph.train.inputs import Input, choose_columns, input_graphs, row_status, train_graphs
from molgraph.train.outputs import ClassWeights, Outputs, class_tables, label_weights
from molgraph.train.samples import Samples

NO_VALID = "no validation part: trained for all epochs, the last weights kept"
MANY_ROWS = 200_000  # about ten seconds of featurising; starting processes takes some


@dataclass(frozen=True)
class Prepared:
    """What a fit needs.

    Args:
        train: rows to learn from.
        valid: rows that stop training early, or None.
        outputs, descriptors: scales, taken from the training part alone.
        inputs: the entity columns that are read.
        notes: what a person should know about this fit.
        prints: the fingerprint of recipe and data.
    """

    train: Samples
    valid: Samples | None
    outputs: Outputs
    descriptors: Descriptors
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
) -> Prepared:
    """Featurise both parts and put labels and descriptors on the training part's scales.

    Args:
        table: rows to learn from.
        valid: rows that stop training early, or None.
        encoder, columns, class_weights: as ``GraphMethod`` has them.
        recipe: what a checkpoint must have in common with this fit.
        cache: a folder that keeps graphs between fits, or None.
        threads: processes that featurise a large table, at most; None for all cores.

    Raises:
        DataError: nothing can be learned from the table, or the two tables do not fit together.
    """
    chosen = choose_columns(table, encoder, columns)
    inputs, graphs = train_graphs(table, chosen, cache=cache, workers=workers_for(table, threads))
    part, graph, unlearned = _learnable(table, inputs, graphs)
    targets, y = part.row_targets, part.y
    assert y is not None
    outputs = Outputs.fit(targets, y, unlearned, part.weights)
    descriptors = Descriptors.fit(part.features, part.feature_names, part.weights)
    classes = class_tables(targets, y, class_weights)
    weights = label_weights(y, part.weights, classes)
    extra = descriptors.apply(part.features, part.feature_names)
    train = Samples(tuple(made.store for made in graphs), graph, extra, outputs.labels(y), weights)
    notes = list(notes_of(unlearned))
    held = None if valid is None else _valid(valid, inputs, outputs, descriptors, classes, cache)
    if held is None:
        notes.append(NO_VALID)
    return Prepared(
        train=train,
        valid=held,
        outputs=outputs,
        descriptors=descriptors,
        inputs=inputs,
        notes=tuple(notes),
        prints=fingerprint(
            recipe=dict(recipe),
            data=[
                *(entity_texts(part.column(i.column)) for i in inputs),
                y,
                extra if extra is not None else "",
                weights,
                [repr(t) for t in targets],
            ],
            split=["" if held is None else [held.graph.ravel(), held.y, held.weights]],
            featuriser=" ".join(made.store.featuriser for made in graphs),
        ),
    )


def workers_for(table: Table, threads: int | None) -> int:
    """Processes that featurise a table: one, until starting more is worth it."""
    return 1 if len(table) < MANY_ROWS else cores(threads)


def _readable(table: Table, inputs: Sequence[Input], graphs: Sequence[Graphs]) -> tuple[np.ndarray, np.ndarray]:
    """The graphs of each row, int64 [n, columns], and whether it has all of them."""
    graph = np.stack([made.graph_of_row for made in graphs], axis=1)
    return graph, (row_status(table, inputs, graphs)[0] == OK) & (graph >= 0).all(axis=1)


def _learnable(
    table: Table, inputs: Sequence[Input], graphs: Sequence[Graphs]
) -> tuple[Table, np.ndarray, Mapping[str, str]]:
    """The rows that have graphs and a label to learn from, their graphs, and the targets that teach nothing."""
    graph, readable = _readable(table, inputs, graphs)
    labels = check_targets(table, readable)
    rows = np.flatnonzero(readable & table.ok & _counts(table, labels.y))
    return replace(table, y=labels.y).take(rows), graph[rows], labels.unlearned


def _counts(table: Table, y: np.ndarray) -> np.ndarray:
    """bool [n]: rows with a label and a weight above 0."""
    labelled = ~np.isnan(y).all(axis=1)
    return labelled if table.weights is None else labelled & (table.weights > 0)


def _valid(
    table: Table,
    inputs: Sequence[Input],
    outputs: Outputs,
    descriptors: Descriptors,
    classes: Mapping[int, np.ndarray],
    cache: Path | None,
) -> Samples | None:
    """The validation rows on the training part's scales; None where none has a graph, a label and a weight."""
    if [t.name for t in table.row_targets] != [t.name for t in outputs.targets]:
        raise DataError(
            f"the validation part has targets {[t.name for t in table.row_targets]}, "
            f"the training part {[t.name for t in outputs.targets]}"
        )
    graphs = input_graphs(table, inputs, cache=cache)
    graph, readable = _readable(table, inputs, graphs)
    y = np.array(table.y, dtype=np.float64)
    check_labels(table.row_targets, y[readable], table.ids[readable])
    check_weights(table)
    y[:, [t.name in outputs.unlearned for t in outputs.targets]] = np.nan  # judged by what can be learned alone
    usable = readable & _counts(table, y)
    if not usable.any():
        return None
    part, y = table.take(usable), y[usable]
    weights = label_weights(y, part.weights, classes)
    extra = descriptors.apply(part.features, part.feature_names)
    return Samples(tuple(made.store for made in graphs), graph[usable], extra, outputs.labels(y), weights)
