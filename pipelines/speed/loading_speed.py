"""Measure how long training ``gin`` on many molecules waits for its batches."""

from __future__ import annotations

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
    """Training ``gin`` on many molecules: how long a step takes, and how long it waits for its batch."""
    store = featurize([str(text) for text in read_table("dataset:zinc250k").smiles[:n]])
    torch.manual_seed(0)
    encoder = get("encoder", "gin")(SPEC)
    network = nn.Sequential(Graphs(encoder), nn.Linear(encoder.d_out, 1))
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-4)

    def make(rows: np.ndarray) -> GraphBatch:
        batch = collate(store, rows)
        encoder.prepare(batch)
        return batch

    pieces = batch_order(len(store), size, seed=0)[:steps]
    start = time.perf_counter()
    for rows in pieces:
        make(rows)
    alone = time.perf_counter() - start
    waited, batches = 0.0, make_ahead(pieces, make)
    begun = time.perf_counter()
    for _ in pieces:
        start = time.perf_counter()
        batch = next(batches)
        waited += time.perf_counter() - start
        optimiser.zero_grad()
        network(batch).square().mean().backward()
        optimiser.step()
    whole = time.perf_counter() - begun
    return {
        "molecules": len(store), "batch": size, "step_ms": 1e3 * whole / steps, "waited_ms": 1e3 * waited / steps,
        "alone_ms": 1e3 * alone / steps,
    }  # fmt: skip
