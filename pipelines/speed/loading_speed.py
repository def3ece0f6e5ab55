"""Measure how long training ``gin`` on many molecules waits for its batches."""

from __future__ import annotations

import os
import time
from typing import Any

import numpy as np
import torch
from torch import nn
from zoo_pairs import SPEC, Graphs

from molgraph.base.registry import get
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.featurize import featurize
from molgraph.data.loader import batch_order, make_ahead
from molgraph.data.read import read_table


def gin_loading(n: int = 100_000, size: int = 64, steps: int = 300) -> dict[str, Any]:
    """Training ``gin`` on many molecules: how long a step takes, and how long it waits for its batch.

    A batch is made in a thread, which has a core of its own, or none beside the step (``_one_core``).
    """
    store = featurize([str(text) for text in read_table("dataset:zinc250k").smiles[:n]])
    torch.manual_seed(0)
    encoder = get("encoder", "gin")(SPEC)
    network = nn.Sequential(Graphs(encoder), nn.Linear(encoder.d_out, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)

    def make(rows: np.ndarray) -> GraphBatch:
        batch = collate(store, rows)
        encoder.prepare(batch)
        return batch

    def step(batch: GraphBatch) -> None:
        optimiser.zero_grad()
        network(batch).square().mean().backward()
        optimiser.step()

    pieces = batch_order(len(store), size, seed=0)[:steps]
    found: dict[str, Any] = {"molecules": len(store), "batch": size}
    for make_one, name in ((lambda rows: collate(store, rows), "collate_ms"), (make, "alone_ms")):
        start = time.perf_counter()
        for rows in pieces:
            make_one(rows)
        found[name] = 1e3 * (time.perf_counter() - start) / steps
    free = os.sched_getaffinity(0)
    for cores, ending in ((free, ""), ({min(free)}, "_one_core")):
        for thread in os.listdir("/proc/self/task"):
            os.sched_setaffinity(int(thread), cores)
        waited, batches = 0.0, make_ahead(pieces, make)
        begun = time.perf_counter()
        for _ in pieces:
            start = time.perf_counter()
            batch = next(batches)
            waited += time.perf_counter() - start
            step(batch)
        whole = time.perf_counter() - begun
        found |= {f"step_ms{ending}": 1e3 * whole / steps, f"waited_ms{ending}": 1e3 * waited / steps}
    for thread in os.listdir("/proc/self/task"):
        os.sched_setaffinity(int(thread), free)
    return found
