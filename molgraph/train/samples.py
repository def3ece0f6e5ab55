"""Rows as a network takes them: a store and row numbers in, batches of graphs, labels and weights out."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_cache import GraphStore


class Sample:
    """One batch: graphs, and of each graph's row the descriptors, labels and label weights.

    Not a dataclass: Lightning walks through those value by value at every step.
    """

    __slots__ = ("batch", "extra", "weights", "y")

    def __init__(self, batch: GraphBatch, extra: Tensor | None, y: Tensor | None, weights: Tensor | None) -> None:
        self.batch, self.extra, self.y, self.weights = batch, extra, y, weights

    def to(self, device: torch.device) -> Sample:
        """The same on a device; nothing is done where it is the CPU."""
        if device.type == "cpu":
            return self
        parts = [None if t is None else t.to(device, non_blocking=True) for t in (self.extra, self.y, self.weights)]
        return Sample(self.batch.to(device), *parts)


@dataclass(frozen=True)
class Samples:
    """Rows to learn from or to predict, all of them readable.

    Args:
        store: graphs.
        graph: int64 [n], the graph of each row.
        extra: float32 [n, f], standardised descriptors, or None.
        y: float32 [n, t], scaled labels, or None.
        weights: float32 [n, t], 0 where the label is missing, or None.
    """

    store: GraphStore
    graph: np.ndarray
    extra: np.ndarray | None = None
    y: np.ndarray | None = None
    weights: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.graph)

    def sample(self, rows: np.ndarray) -> Sample:
        """The batch of those rows, in that order."""

        def pick(values: np.ndarray | None) -> Tensor | None:
            return None if values is None else torch.from_numpy(values[rows])

        return Sample(collate(self.store, self.graph[rows]), pick(self.extra), pick(self.y), pick(self.weights))
