"""Find the k most similar rows of a library for each query, exactly, over blocks of the library."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

CELLS = 1 << 24  # similarities that are held at once

Similarity = Callable[[slice], np.ndarray]
"""float32 [queries, rows] of a slice of a block's rows to all queries."""


class Best:
    """The best k rows of each query among those that were added; of equal ones the earlier row.

    Args:
        n: queries.
        k: rows kept for each.

    Attributes:
        score: float32 [n, k], the highest first; -inf where there are fewer.
        row: int64 [n, k]; -1 where there are fewer.

    Example:
        >>> best = Best(1, 2)
        >>> best.add(np.array([[0.1, 0.9]]), 0)
        >>> best.add(np.array([[0.5, 0.9]]), 2)
        >>> best.row.tolist()
        [[1, 3]]
    """

    def __init__(self, n: int, k: int) -> None:
        self.score = np.full((n, k), -np.inf, dtype=np.float32)
        self.row = np.full((n, k), -1, dtype=np.int64)

    def add(self, scores: np.ndarray, start: int) -> None:
        """Add rows ``start``, ``start + 1``, ... of the library.

        Args:
            scores: float [n, rows]; -inf for rows that must not be chosen.
            start: number of the first.
        """
        n, k = self.score.shape
        scores = np.concatenate([self.score, scores], axis=1, dtype=np.float32)
        added = np.arange(scores.shape[1] - k) + start
        row = np.concatenate([self.row, np.broadcast_to(added, (n, len(added)))], axis=1)
        kth = np.partition(scores, -k, axis=1)[:, -k, None]
        i, j = np.nonzero((scores >= kth) & (scores > -np.inf))
        order = np.lexsort((row[i, j], -scores[i, j], i))
        i, j = i[order], j[order]
        place = np.arange(len(i)) - np.searchsorted(i, np.arange(n))[i]
        i, j, place = (values[place < k] for values in (i, j, place))
        self.score, self.row, chosen = np.full_like(self.score, -np.inf), np.full_like(self.row, -1), (i, j)
        self.score[i, place], self.row[i, place] = scores[chosen], row[chosen]


def unit(x: np.ndarray) -> np.ndarray:
    """Rows scaled to length 1, float32; a row of zeros stays so.

    Example:
        >>> unit(np.array([[3.0, 4.0], [0.0, 0.0]])).round(2).tolist()
        [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    x = np.asarray(x, dtype=np.float32)
    return x / np.maximum(np.linalg.norm(x, axis=1, keepdims=True), np.finfo(np.float32).tiny)


def add_block(best: Best, similarity: Similarity, ok: np.ndarray, start: int) -> None:
    """Add the rows of a block of a library to the best, so many at a time that memory does not grow with both lists.

    Args:
        best: of the queries.
        similarity: of the queries to a slice of the block's rows.
        ok: bool [rows], those that may be chosen.
        start: number of the block's first row in the library.
    """
    step = max(1, CELLS // max(len(best.score), 1))
    for first in range(0, len(ok), step):
        rows = slice(first, min(first + step, len(ok)))
        best.add(np.where(ok[rows], similarity(rows), -np.inf), start + first)


def nearest_vectors(queries: np.ndarray, library: np.ndarray, k: int) -> Best:
    """The k rows of the library with the highest cosine similarity to each query.

    Args:
        queries: float [n, d].
        library: float [m, d].
        k: rows for each query.

    Example:
        >>> nearest_vectors(np.array([[1.0, 0.0]]), np.array([[0.0, 1.0], [2.0, 0.1]]), 1).row.tolist()
        [[1]]
    """
    a, b, best = unit(queries), unit(library), Best(len(queries), k)
    add_block(best, lambda rows: (a @ b[rows].T).clip(-1, 1), np.ones(len(b), dtype=bool), 0)
    return best
