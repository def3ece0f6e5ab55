"""Graphs and a batch size in, batches out in an order that (seed, epoch) alone decide."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from molgraph.base.seeds import generator
from molgraph.data.batch import GraphBatch, collate
from molgraph.data.graphstore import GraphStore


def batch_order(n: int, batch_size: int, *, seed: int | None = None, epoch: int = 0) -> list[np.ndarray]:
    """Which rows each batch of an epoch has.

    Args:
        n: number of rows.
        batch_size: rows a batch; the last one may have fewer.
        seed: None keeps the rows in their order; a number shuffles them anew each epoch.
        epoch: the epoch's number; the same (seed, epoch) gives the same batches, so that a run resumed in
            the middle of an epoch goes on with ``batch_order(...)[position:]``.

    Returns:
        int64 row numbers, a list of batches.

    Example:
        >>> [b.tolist() for b in batch_order(5, 2)]
        [[0, 1], [2, 3], [4]]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    rows = np.arange(n) if seed is None else generator(seed, "batches", epoch).permutation(n)
    return [rows[start : start + batch_size] for start in range(0, n, batch_size)]


@dataclass(frozen=True)
class Loader:
    """Batches of a store's graphs.

    Args:
        store: packed graphs.
        graphs: int64 [n], the graph of each row.
        batch_size: rows a batch.
        seed: None for the rows' own order, a number to shuffle.
        prepare: called with each batch as it is made, such as an encoder's ``prepare``.
        prefetch: batches made ahead in a thread, 0 for none.

    Example:
        >>> from molgraph.data.featurize import featurize
        >>> loader = Loader(featurize(["C", "CC", "CCC"]), np.arange(3), batch_size=2)
        >>> [(rows.tolist(), batch.n_atoms) for rows, batch in loader.epoch(0)]
        [([0, 1], 3), ([2], 3)]
    """

    store: GraphStore
    graphs: np.ndarray
    batch_size: int = 64
    seed: int | None = None
    prepare: Callable[[GraphBatch], Any] | None = None
    prefetch: int = 0

    def __len__(self) -> int:
        """Batches an epoch."""
        return -(-len(self.graphs) // self.batch_size)

    def epoch(self, epoch: int = 0, start: int = 0) -> Iterator[tuple[np.ndarray, GraphBatch]]:
        """Row numbers and batch, one after the other, from the batch with number ``start`` on."""
        order = batch_order(len(self.graphs), self.batch_size, seed=self.seed, epoch=epoch)[start:]
        made = map(self._make, order)
        return _ahead(made, self.prefetch) if self.prefetch else made

    def _make(self, rows: np.ndarray) -> tuple[np.ndarray, GraphBatch]:
        batch = collate(self.store, self.graphs[rows])
        if self.prepare is not None:
            self.prepare(batch)
        return rows, batch


def _ahead(items: Iterator[Any], depth: int) -> Iterator[Any]:
    """The same items, made by a thread up to ``depth`` ahead; its errors come out here."""
    waiting: queue.Queue[tuple[str, Any]] = queue.Queue(depth)
    stop = threading.Event()

    def put(word: str, value: Any) -> None:
        while not stop.is_set():
            try:
                waiting.put((word, value), timeout=0.1)
                return
            except queue.Full:
                continue

    def work() -> None:
        try:
            for item in items:
                put("item", item)
                if stop.is_set():
                    return
            put("end", None)
        except BaseException as error:  # handed on to whoever waits
            put("error", error)

    thread = threading.Thread(target=work, daemon=True, name="molgraph-batches")
    thread.start()
    try:
        while True:
            word, value = waiting.get()
            if word == "end":
                return
            if word == "error":
                raise value
            yield value
    finally:
        stop.set()
        thread.join()
