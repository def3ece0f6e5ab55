"""Predict a table with trained networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import torch

from molgraph.base.contracts import Prediction
from molgraph.base.errors import UnsupportedError
from molgraph.base.packed import Packed, offsets_of, spread
from molgraph.data.graph_cache import CachedGraphs
from molgraph.data.loader import make_ahead
from molgraph.data.table import OK, Table
from molgraph.train.atom_targets import label_places, label_sizes
from molgraph.train.inputs import Input, graph_of_rows, input_column, input_graphs, row_status
from molgraph.train.large_graphs import mark_large
from molgraph.train.network import Network
from molgraph.train.outputs import DescriptorScale, Outputs
from molgraph.train.rdkit_features import for_model
from molgraph.train.references import counts_of, mark_unknown
from molgraph.train.row_columns import columns_of
from molgraph.train.runtime import resolve_device, torch_settings
from molgraph.train.samples import Sample, Samples


@dataclass(frozen=True)
class FittedNetworks:
    """A trained network (on the CPU, for evaluation), the scales of its outputs and descriptors, and what it reads."""

    network: Network
    outputs: Outputs
    descriptors: DescriptorScale
    inputs: tuple[Input, ...]


def predict_networks(
    members: Sequence[FittedNetworks],
    table: Table,
    graphs: Sequence[CachedGraphs] | None = None,
    *,
    device: str = "cpu",
    precision: str = "float32",
    threads: int | None = None,
    predict_batch: int = 512,
) -> list[Prediction]:
    """A prediction of each network, which share inputs and descriptors; ``graphs`` where they are made already.

    Batches are made once, and their edges depend on row numbers alone. Rows that cannot be read, or whose graph is too
    large for the network or holds an element that it has no reference value of, get NaN and a reason.
    """
    inputs = members[0].inputs
    graphs = input_graphs(table, inputs) if graphs is None else graphs
    for entry, data in zip(inputs, graphs, strict=True):
        if data.store.featuriser != entry.spec.featuriser:
            words = f"the network reads the features {entry.spec.featuriser}, these graphs hold {data.store.featuriser}"
            hint = "make them by the model's own: model.method.graph_inputs()[0].featuriser"
            raise UnsupportedError(words, hint=hint)
    graphs = mark_large(members[0].network, graphs)
    references = [m.outputs.references for m in members if m.outputs.references is not None]
    if references:
        graphs = mark_unknown(references, inputs, graphs)
    counts = counts_of(inputs, graphs) if references else None
    status, reason = row_status(table, inputs, graphs)
    graph = graph_of_rows(graphs)
    rows = np.flatnonzero(status == OK)
    model_table = for_model(table, [name for m in members for name in m.descriptors.names])
    extras = [m.descriptors.apply(model_table.features, model_table.feature_names) for m in members]
    level, offsets, places = members[0].outputs.level, np.arange(len(table) + 1), None
    if level != "row":
        sizes = np.zeros(len(table), dtype=np.int64)
        sizes[rows] = label_sizes(level, graphs[0].store, graph[rows, 0])
        offsets = offsets_of(sizes)
        texts = input_column(table, inputs).values[rows]
        places = label_places(level, graphs[0].store, graph[rows, 0], texts)
    values, spreads = ([np.full((offsets[-1], m.outputs.d_out), np.nan) for m in members] for _ in range(2))
    where = resolve_device(device)
    samples = Samples(tuple(data.store for data in graphs), graph)
    edges = np.searchsorted(rows, np.arange(0, len(table) + predict_batch, predict_batch))
    pieces = [rows[a:b] for a, b in pairwise(edges) if b > a]

    def make(piece: np.ndarray) -> Sample:
        sample = samples.sample(piece)
        with torch.no_grad():  # told anew, since this may run in a thread of its own
            members[0].network.prepare(sample)
        return sample

    networks, more = [m.network.to(where) for m in members], [dict[str, np.ndarray]() for _ in members]
    with torch_settings(threads), torch.inference_mode():
        for piece, batch in zip(pieces, make_ahead(pieces, make), strict=True):
            sample = batch.to(where)
            for network, member, extra, value, wide, columns in zip(
                networks, members, extras, values, spreads, more, strict=True
            ):
                sample.extra = None if extra is None else torch.from_numpy(extra[piece]).to(where)
                with torch.autocast(where.type, dtype=torch.bfloat16, enabled=precision == "bfloat16"):
                    raw, _ = network(sample)
                for name, column in columns_of(network).items():
                    columns.setdefault(name, np.full(len(table), np.nan))[piece] = column.double().cpu().numpy()
                raw, deviation = network.head.values(raw) if network.has_head else (raw, None)
                atoms = None if counts is None else counts[graph[piece, 0]]
                value[spread(offsets, piece)] = member.outputs.values(raw.float().cpu().numpy(), atoms)
                if deviation is not None:
                    wide[spread(offsets, piece)] = deviation.cpu().numpy() * member.outputs.column_scale
    predictions = []
    for member, value, wide, columns in zip(members, values, spreads, more, strict=True):
        packed, outputs, has_spread = dict[str, Packed](), member.outputs, bool(np.isfinite(wide).any())
        if places is not None:
            names = [name for target in outputs.targets for name in target.columns]
            for array, end in ((value, ""), (wide, "_spread"))[: 1 + has_spread]:
                ordered = np.empty_like(array)
                ordered[places] = array
                packed |= {f"{name}{end}": Packed(offsets, ordered[:, j]) for j, name in enumerate(names)}
            value = wide = np.zeros((len(table), 0))
        known: dict[str, Any] = {"spread": wide if has_spread else None}
        known |= {"inputs": table.inputs, "unlearned": outputs.unlearned, "packed": packed, "extra": columns}
        predictions.append(Prediction(table.ids, outputs.targets, value, status, reason, **known))
    return predictions
