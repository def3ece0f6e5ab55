"""Graphs that are too large for a network: marked in prediction, refused before training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from molgraph.base.errors import UnsupportedError, UsageError
from molgraph.base.finite import NO_VALUE
from molgraph.base.printable import count
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.graph_store import GraphStore
from molgraph.data.table import Table
from molgraph.nn.encoder import Encoder
from molgraph.train.inputs import Input, input_graphs, row_status
from molgraph.train.network import Network
from molgraph.train.samples import Samples

_SHOWN = 3


def mark_large(network: Network, graphs: Sequence[CachedGraphs]) -> tuple[CachedGraphs, ...]:
    """The graphs of each input, those that are too large for its encoder with a status and a reason."""
    marked = []
    for encoder, cached in zip(network.encoders, graphs, strict=True):
        refusals = too_large(encoder, cached.store)
        if refusals:
            status, reason = cached.store.status.copy(), cached.store.reason.copy()
            for graph, refusal in refusals.items():
                status[graph], reason[graph] = NO_VALUE, f"{refusal.message}, which is set in training"
            cached = replace(cached, store=replace(cached.store, status=status, reason=reason))
        marked.append(cached)
    return tuple(marked)


def refuse_large(
    network: Network, inputs: Sequence[Input], parts: Sequence[tuple[Samples | None, Table | None]]
) -> None:
    """Refuse to train on graphs that are too large for the network, before any step is taken.

    Args:
        network: whose encoders have limits.
        inputs: of the network.
        parts: the samples of the training and the validation part, each with the table that it was made of.

    Raises:
        UnsupportedError: a graph's size, the limit and the setting, and the rows that hold such graphs.
    """
    refusals: list[UsageError] = []
    rows: list[str] = []
    for samples, table in parts:
        if samples is None or table is None:
            continue
        for k, (encoder, store) in enumerate(zip(network.encoders, samples.stores, strict=True)):
            reasons = too_large(encoder, store)
            refusals += [reasons[graph] for graph in np.intersect1d(samples.graph[:, k], list(reasons)).tolist()]
        if refusals:
            status, _ = row_status(table, inputs, mark_large(network, input_graphs(table, inputs)))
            rows += [str(row_id) for row_id in table.ids[status == NO_VALUE]]
    if refusals:
        shown = ", ".join(rows[:_SHOWN]) + f" and {len(rows) - _SHOWN} more" * (len(rows) > _SHOWN)
        raise UnsupportedError(
            f"{refusals[0].message}; {count(len(rows), 'row')} with such graphs: id {shown}",
            hint=f"{refusals[0].hint}, or leave those rows out",
        )


def too_large(encoder: Encoder, store: GraphStore) -> dict[int, UsageError]:
    """The graphs of a store that the encoder refuses, by their numbers."""
    return {} if encoder.limit is None else encoder.limit.too_large(store)
