"""Time layers of the graph zoo and the same layers of PyG, forward and backward, with the same weights and outputs.

Both sides begin with batches that are ready; molgraph's time includes its relations, and finding the rows that look
alike, which are made afresh for every batch.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import torch
from model_speed import LISTS, afresh
from timing import in_turn
from torch import nn
from torch.profiler import ProfilerActivity, profile
from zoo_pairs import attentivefp, gat, gin, gine, given, graphgps, mfconv, nnconv

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.read import read_table

KINDS = {
    "products": ("mm",),
    "edges": ("index", "scatter", "gather", "Gather", "embedding_bag", "segment", "repeat_interleave"),
}


def step(network: nn.Module, batches: list[Any]) -> Callable[[], None]:
    """Forward and backward over the batches."""

    def run() -> None:
        for batch in batches:
            network.zero_grad()
            network(afresh(batch)).square().mean().backward()

    return run


def prepare(network: Any, batches: list[GraphBatch]) -> None:
    """What molgraph makes of each batch before its layers."""
    for batch in batches:
        network.prepare(afresh(batch))


def zoo_speed(size: int = 64, molecules: int = 960, rounds: int = 7) -> dict[str, dict[str, Any]]:
    """Rows of the speed table: molecules a second of both sides, their ratio and the floor asked for."""
    rows: dict[str, dict[str, Any]] = {}
    for name, source in LISTS.items():
        store = featurize([str(text) for text in read_table(source).smiles])
        order = np.flatnonzero(store.status == "ok").tolist()
        random.Random(0).shuffle(order)
        ours = [collate(store, np.array(order[i : i + size])) for i in range(0, molecules - size + 1, size)]
        theirs = [given(batch) for batch in ours]
        for make in (nnconv, gin, gine, gat, attentivefp, mfconv, graphgps):
            torch.manual_seed(0)
            pair = make()
            with torch.no_grad():
                torch.testing.assert_close(pair.ours(ours[0]), pair.theirs(theirs[0]), rtol=1e-3, atol=1e-3)
            works = step(pair.ours, ours), step(pair.theirs, theirs)
            own, peer, ahead = in_turn([*works, partial(prepare, pair.ours, ours)], rounds)
            rows[f"{pair.name}, forward and backward, {name}, batches of {size}"] = {
                "molgraph": len(ours) * size / own, "peer": len(ours) * size / peer, "ratio": peer / own,
                "floor": pair.floor, "peer_name": "PyG", "unit": "molecules/s",
                "ms": [where_time_goes(work, len(ours)) for work in works],
                "batch_ms": [1e3 * seconds / len(ours) for seconds in (own, peer)],
                "rows_ms": 1e3 * ahead / len(ours),
            }  # fmt: skip
    return rows


def where_time_goes(work: Callable[[], None], batches: int) -> dict[str, float]:
    """Milliseconds a batch of the processor: in matrix products, along edges, in the rest of torch's operations."""
    with profile(activities=[ProfilerActivity.CPU]) as seen:
        work()
    found = {"products": 0.0, "edges": 0.0, "rest": 0.0}
    for event in seen.key_averages():
        kind = next((kind for kind, words in KINDS.items() if any(word in event.key for word in words)), "rest")
        found[kind] += event.self_cpu_time_total / 1e3 / batches
    return found
