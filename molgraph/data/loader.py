"""Make batches ahead in a thread, in an order that depends on seed and epoch alone."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

import numpy as np

from molgraph.base.seeds import generator

BLOCK = 16  # batches among which rows are sorted by length
T = TypeVar("T")
R = TypeVar("R")


def batch_order(
    n: int,
    batch_size: int,
    *,
    seed: int | None = None,
    epoch: int = 0,
    least: int = 1,
    length: np.ndarray | None = None,
) -> list[np.ndarray]:
    """Which rows each batch of an epoch has.

    Args:
        n: number of rows.
        batch_size: rows a batch; the last one may have fewer.
        seed: None keeps the rows in their order; a number shuffles them anew each epoch.
        epoch: the epoch's number; the same (seed, epoch) gives the same batches, so that a run resumed in
            the middle of an epoch goes on with ``batch_order(...)[position:]``.
        least: rows that a batch needs; a last one with fewer joins the one before it.
        length: int [n], the length of each row, where a batch is padded to its longest: rows of like length then come
            together. Of shuffled rows those of every 16 batches are sorted, and the batches shuffled once more.

    Returns:
        int64 row numbers, a list of batches.

    Example:
        >>> [b.tolist() for b in batch_order(5, 2)]
        [[0, 1], [2, 3], [4]]
        >>> [b.tolist() for b in batch_order(5, 2, least=2)]
        [[0, 1], [2, 3, 4]]
        >>> [b.tolist() for b in batch_order(4, 2, length=np.array([9, 1, 8, 2]))]
        [[1, 3], [2, 0]]
    """
    if batch_size < 1:
        raise ValueError(f"batch_size is {batch_size}, expected at least 1")
    rng = None if seed is None else generator(seed, "order", epoch)
    rows = np.arange(n) if rng is None else rng.permutation(n)
    if length is not None:
        block = np.arange(n) // (BLOCK * batch_size) if rng is not None else np.zeros(n, np.int64)
        rows = rows[np.lexsort((length[rows], block))]
    starts = list(range(0, n, batch_size))
    if len(starts) > 1 and n - starts[-1] < least:
        starts.pop()
    batches = [rows[a:b] for a, b in pairwise([*starts, n])] if n else []
    return [batches[i] for i in rng.permutation(len(batches))] if rng is not None and length is not None else batches


def make_ahead(pieces: Sequence[T], make: Callable[[T], R], ahead: int = 3) -> Iterator[R]:
    """``make`` of each piece, in order, made in a thread while the caller works.

    Args:
        pieces: what to make from.
        make: called once for each piece; what it raises is raised here, at that piece.
        ahead: how many may wait.

    Example:
        >>> from molgraph.data.batch import collate
        >>> from molgraph.data.featurize import featurize
        >>> store = featurize(["C", "CC", "CCC"])
        >>> order = batch_order(len(store), 2, seed=0)
        >>> sum(batch.n_atoms for batch in make_ahead(order, lambda rows: collate(store, rows)))
        6
    """
    pool = ThreadPoolExecutor(1, "molgraph-batches")
    waiting: deque[Future[R]] = deque()
    try:
        for piece in pieces:
            waiting.append(pool.submit(make, piece))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
