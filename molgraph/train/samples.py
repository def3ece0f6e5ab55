"""Rows as a network takes them: batches of graphs, labels and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from molgraph.base.packed import Packed, spread
from molgraph.base.seeds import generator
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graph_store import GraphStore
from molgraph.data.view import ViewedColumn


class InputBatch(NamedTuple):
    """One entity column of a batch."""

    batch: GraphBatch  # its graphs; where a row has several entity columns, each distinct entity once
    of_row: Tensor | None  # int64 [n], the graph of each row; None: row i has graph i


class Sample:
    """One batch: graphs for each entity column, descriptors of each row, and labels with their weights.

    ``graphs``, int64 [n]: the graph of each row of the first column in its store, the same for duplicates. ``limits``,
    float32 [n, t, 2]: the lowest and highest scaled value of each label that is a limit, NaN elsewhere. ``points``,
    float32 [p, 4], those of the rows' curves (``data.curves``), and ``point_row``, int64 [p], the row of each; or None.
    ``plain``: the batch without views and corruption, where an objective asks for it (``Objective.plain``).

    Not a dataclass: Lightning walks through those value by value at every step.
    """

    __slots__ = ("extra", "graphs", "limits", "parts", "plain", "point_row", "points", "weights", "y")

    def __init__(
        self,
        parts: tuple[InputBatch, ...],
        extra: Tensor | None,
        y: Tensor | None,
        weights: Tensor | None,
        graphs: Tensor | None = None,
        limits: Tensor | None = None,
        points: Tensor | None = None,
        point_row: Tensor | None = None,
    ) -> None:
        self.parts, self.extra, self.y, self.weights, self.graphs = parts, extra, y, weights, graphs
        self.limits, self.points, self.point_row = limits, points, point_row
        self.plain: Sample | None = None

    def to(self, device: torch.device) -> Sample:
        """The same on a device; nothing is done where it is the CPU."""
        if device.type == "cpu":
            return self

        def there(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device, non_blocking=True)

        parts = tuple(InputBatch(batch.to(device), there(of_row)) for batch, of_row in self.parts)
        curves = (self.points, self.point_row)
        made = Sample(parts, *map(there, (self.extra, self.y, self.weights, self.graphs, self.limits, *curves)))
        made.plain = None if self.plain is None else self.plain.to(device)
        return made


@dataclass(frozen=True)
class Samples:
    """Rows to learn from or to predict, all of them readable; where some have no labels its length is without those."""

    stores: tuple[GraphStore, ...]  # graphs of each entity column
    graph: np.ndarray  # int64 [n, columns], the graphs of each row
    extra: np.ndarray | None = None  # float32 [n, f], standardised descriptors, or None
    # float32 [n, t], scaled labels, or None; of targets of atoms or bonds a row for each of them
    y: np.ndarray | None = None
    weights: np.ndarray | None = None  # float32, as y, 0 where the label is missing, or None
    offsets: np.ndarray | None = None  # int64 [n + 1], where the labels of each row begin in y; None: one a row
    n_unlabelled: int = 0  # how many of its rows, the last ones, have no labels and come along with those that do
    limits: np.ndarray | None = None  # float32 [n, t, 2], scaled limits of labels, NaN where there is none, or None
    points: Packed | None = None  # float32 [p, 4] of the rows' curves, or None
    views: tuple[ViewedColumn, ...] = ()  # through which training sees each entity column; none: graphs as they are

    def __len__(self) -> int:
        return len(self.graph) - self.n_unlabelled

    def unlabelled(self, first: int, n: int, seed: int) -> np.ndarray:
        """int64 [n or fewer]: the rows without labels at ``n`` places, from ``first`` on, of a list without end.

        The list has all of them, then all of them again in another order, and so on: none comes again before each of
        the others has. A row at two of the places comes once, so few rows are not repeated within a batch. Empty where
        all rows have labels.
        """
        if not self.n_unlabelled:
            return np.zeros(0, np.int64)
        places = np.arange(first, first + n)
        turns = [generator(seed, "unlabelled", int(turn)) for turn in np.unique(places // self.n_unlabelled)]
        order = np.concatenate([rng.permutation(self.n_unlabelled) for rng in turns])
        return len(self) + pd.unique(order[places - first // self.n_unlabelled * self.n_unlabelled])

    def sample(self, rows: np.ndarray, rng: np.random.Generator | None = None) -> Sample:
        """The batch of those rows, in that order; seen through the views where ``rng`` is given.

        Views of which a row has several make as many rows of it, next to each other.
        """

        def pick(values: np.ndarray | None, rows: np.ndarray) -> Tensor | None:
            return None if values is None else torch.from_numpy(values[rows])

        if rng is not None and self.views:
            rows = np.repeat(rows, max(view.n for column in self.views for view in column.views))
        labels = rows if self.offsets is None else spread(self.offsets, rows)
        parts = tuple(self._part(j, self.graph[rows, j], rng) for j in range(len(self.stores)))
        values = (pick(self.extra, rows), pick(self.y, labels), pick(self.weights, labels))
        graphs = torch.from_numpy(self.graph[rows, 0]) if self.graph.size else None
        limits = pick(self.limits, labels)
        if self.points is None:
            return Sample(parts, *values, graphs, limits)
        points = self.points.take(rows)
        row = torch.from_numpy(np.repeat(np.arange(len(rows)), points.sizes))
        return Sample(parts, *values, graphs, limits, torch.from_numpy(points.values), row)

    def _part(self, j: int, graphs: np.ndarray, rng: np.random.Generator | None) -> InputBatch:
        of_row = None
        if len(self.stores) > 1:
            places, graphs = pd.factorize(graphs)
            of_row = torch.from_numpy(places.astype(np.int64, copy=False))
        if rng is None or not self.views:
            return InputBatch(collate(self.stores[j], graphs), of_row)
        return InputBatch(self.views[j].batch(self.stores[j], graphs, rng), of_row)
