"""Compute Tanimoto similarities between many fingerprints, and find the most similar one of a list."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from molgraph.base.progress import bar

_OFTEN = 256  # the most frequent columns hold two thirds of what is set; the others become a sparse matrix
_SMALL = 2**23  # numbers of a table whose columns are all dense, which also spares the import of scipy
_AT_ONCE = 4_096  # fingerprints compared with at once, so that what is held beside the answer stays small
_PAIRS = 2**20  # pairs compared at once in a search for the most similar

Rows = np.ndarray | slice
ALL = slice(None)


class BitTable:
    """Fingerprints laid out so that the bits which two of them share are counted fast, for all pairs.

    Counts are whole numbers below 2^24, so that float32 is exact whatever the order of summation.

    Args:
        x: [n, bits] of 0 and 1, one fingerprint a row.
        like: a table that this one will be compared with, whose layout it takes; None for a layout of its own.

    Attributes:
        size: int64 [n], the number of bits of each.

    Example:
        >>> table = BitTable(np.array([[1, 1, 1, 0], [1, 1, 0, 0]]))
        >>> BitTable(np.array([[1, 0, 0, 1]]), like=table).shared(table).tolist()
        [[1.0, 1.0]]
    """

    def __init__(self, x: np.ndarray, like: BitTable | None = None) -> None:
        self.size = x.sum(axis=1, dtype=np.int64)
        if like is not None:
            self._order, self._n_dense = like._order, like._n_dense
        else:
            self._order = np.argsort(-x.sum(axis=0, dtype=np.int64), kind="stable")
            self._n_dense = x.shape[1] if x.size <= _SMALL else _OFTEN
        often, seldom = self._order[: self._n_dense], self._order[self._n_dense :]
        self._dense = np.ascontiguousarray(x[:, often], dtype=np.float32)
        self._sparse = None
        if len(seldom):
            from scipy import sparse  # takes a fifth of a second

            self._sparse = sparse.csr_matrix(x[:, seldom], dtype=np.float32)

    def __len__(self) -> int:
        return len(self.size)

    def shared(self, other: BitTable, rows: Rows = ALL, others: Rows = ALL) -> np.ndarray:
        """Number of bits that two fingerprints share, float32 [rows, others].

        Args:
            other: a table of the same layout.
            rows: which of this table's fingerprints.
            others: which of the other's.
        """
        counts = self._dense[rows] @ other._dense[others].T
        if self._sparse is not None and other._sparse is not None:
            rest = (self._sparse[rows] @ other._sparse[others].T).tocoo()
            counts[rest.row, rest.col] += rest.data
        return counts

    def similarity(self, other: BitTable, rows: Rows = ALL, others: Rows = ALL) -> np.ndarray:
        """Tanimoto similarity ``|a and b| / |a or b|``, float32 [rows, others]; 0 where neither has a bit."""
        mine, theirs = self.size[rows].astype(np.float32), other.size[others].astype(np.float32)
        out = np.empty((len(mine), len(theirs)), dtype=np.float32)
        numbers = np.arange(len(other))[others]
        for start in range(0, len(theirs), _AT_ONCE):
            block = slice(start, start + _AT_ONCE)
            shared = self.shared(other, rows, numbers[block])
            either = mine[:, None] + theirs[None, block] - shared
            out[:, block] = shared / np.maximum(either, 1.0)
        return out


def tanimoto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tanimoto similarity of fingerprints [n, bits] to fingerprints [m, bits], float32 [n, m].

    Example:
        >>> tanimoto(np.array([[1, 1, 0]]), np.array([[1, 0, 1], [1, 1, 0]])).round(2).tolist()
        [[0.33000001311302185, 1.0]]
    """
    others = BitTable(b)
    return BitTable(a, like=others).similarity(others)


class Nearest(NamedTuple):
    """The most similar row for each row asked about.

    Args:
        similarity: float64 [m], Tanimoto; 0 where nothing is shared, NaN where there is nothing to compare with.
        row: int64 [m], the first of the rows that are so similar; -1 where there is nothing to compare with.
    """

    similarity: np.ndarray
    row: np.ndarray


def find_nearest(x: np.ndarray, others: np.ndarray, *, label: str = "nearest neighbours") -> Nearest:
    """The most similar fingerprint of a list, for each of another.

    Similarities are those of RDKit, to the last bit. Memory grows with the two lists alone.

    Args:
        x: [m, bits] of 0 and 1, the rows asked about.
        others: [n, bits] of 0 and 1, among which their neighbours are sought.
        label: of the progress bar.

    Example:
        >>> x = np.array([[1, 1, 0, 0], [0, 0, 0, 1]], dtype=np.uint8)
        >>> found = find_nearest(x, np.array([[1, 1, 1, 0], [1, 1, 0, 0]], dtype=np.uint8))
        >>> found.similarity.tolist(), found.row.tolist()
        ([1.0, 0.0], [1, 0])
    """
    m, n = len(x), len(others)
    similarity, row = np.full(m, np.nan), np.full(m, -1, dtype=np.int64)
    if not n:
        return Nearest(similarity, row)
    table = BitTable(others)
    step = max(1, _PAIRS // n)
    with bar(label, total=m) as progress:
        for start in range(0, m, step):
            block = slice(start, start + step)
            asked = BitTable(x[block], like=table)
            shared = asked.shared(table).astype(np.float64)
            found = shared / np.maximum(asked.size[:, None] + table.size - shared, 1)
            row[block] = found.argmax(axis=1)
            similarity[block] = found.max(axis=1)
            progress.advance(len(asked))
    return Nearest(similarity, row)
