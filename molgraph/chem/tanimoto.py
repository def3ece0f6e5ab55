"""Compute Tanimoto similarities between many fingerprints, and find the most similar one of a list."""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from typing import NamedTuple

import numpy as np

from molgraph.base.progress import bar

_OFTEN = 256  # the most frequent columns hold two thirds of what is set; the others become a sparse matrix
_SMALL = 2**20  # numbers of a table whose columns are all dense: there, a sparse matrix and its import do not pay
_ROWS, _AT_ONCE = 256, 4_096  # fingerprints, and others compared with at once, so that what is held stays small
_CLOSE = np.float32(0.999_999)  # share of the highest float32 similarity from which similarities are computed exactly


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
        x = np.asarray(x)
        self._rank: np.ndarray | None = (
            None if like is None else like._rank
        )  # of a column, by how often it is set; None: all are dense
        self._sparse = None
        if (x.size <= _SMALL) if like is None else (like._rank is None):
            self._dense = x.astype(np.float32)
            self.size = self._dense.sum(axis=1).astype(np.int64)
            return
        row, column = np.nonzero(x != 0)
        self.size = np.bincount(row, minlength=len(x))
        if self._rank is None:
            self._rank = np.argsort(np.argsort(-np.bincount(column, minlength=x.shape[1]), kind="stable"))
        from scipy import sparse  # takes a seventh of a second

        rank = self._rank[column]
        dense = rank < _OFTEN
        self._dense = np.zeros((len(x), _OFTEN), dtype=np.float32)
        self._dense[row[dense], rank[dense]] = 1
        row, rank = row[~dense], rank[~dense] - _OFTEN
        ends = np.cumsum(np.bincount(row, minlength=len(x)))
        entries = np.ones(len(row), np.float32), rank.astype(np.int32), np.concatenate([[0], ends]).astype(np.int32)
        self._sparse = sparse.csr_array(entries, shape=(len(x), max(x.shape[1] - _OFTEN, 0)))

    def __len__(self) -> int:
        return len(self.size)

    def take(self, rows: np.ndarray | slice) -> BitTable:
        """The table of some of the fingerprints, in the same layout."""
        out = copy(self)
        out.size, out._dense = self.size[rows], self._dense[rows]
        out._sparse = None if self._sparse is None else self._sparse[rows]
        return out

    def shared(self, other: BitTable) -> np.ndarray:
        """Number of bits that two fingerprints share, float32 [n, m], for a table of the same layout."""
        counts = self._dense @ other._dense.T
        if self._sparse is None or other._sparse is None:
            return counts
        return (self._sparse @ other._sparse.T) + counts

    def similarity(self, other: BitTable) -> np.ndarray:
        """Tanimoto similarity ``|a and b| / |a or b|``, float32 [n, m]; 0 where neither has a bit."""
        out = np.empty((len(self), len(other)), dtype=np.float32)
        for columns, shared, either in self._blocks(other):
            np.divide(shared, either, out=out[:, columns])
        return out

    def nearest(self, other: BitTable) -> tuple[np.ndarray, np.ndarray]:
        """The highest similarity to another table's fingerprints, float64 [n], and the first that has it, int64 [n]."""
        best, row = np.full(len(self), -1.0), np.full(len(self), -1)
        for columns, shared, either in self._blocks(other):
            rough = shared / either
            # those that round to the highest are compared in float64
            i, j = np.nonzero(rough >= rough.max(axis=1, keepdims=True) * _CLOSE)
            exact = shared[i, j].astype(np.float64) / either[i, j]
            order = np.lexsort((j, -exact, i))
            i, j, exact = i[order], j[order], exact[order]
            first = np.flatnonzero(np.diff(i, prepend=-1))
            better = first[exact[first] > best[i[first]]]
            best[i[better]], row[i[better]] = exact[better], j[better] + columns.start
        return best, row

    def _blocks(self, other: BitTable) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
        """Some columns of the matrix of pairs at a time: the bits in both, and in either (at least 1), float32."""
        mine, theirs = self.size.astype(np.float32), other.size.astype(np.float32)
        for start in range(0, len(other), _AT_ONCE):
            columns = slice(start, start + _AT_ONCE)
            shared = self.shared(other.take(columns))
            either = np.add.outer(mine, theirs[columns])
            either -= shared
            yield columns, shared, np.maximum(either, 1.0, out=either)


def tanimoto(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Tanimoto similarity of fingerprints [n, bits] to fingerprints [m, bits], float32 [n, m].

    Example:
        >>> tanimoto(np.array([[1, 1, 0]]), np.array([[1, 0, 1], [1, 1, 0]])).round(2).tolist()
        [[0.33000001311302185, 1.0]]
    """
    others = BitTable(b)
    return BitTable(a, like=others).similarity(others)


class NearestPairs(NamedTuple):
    """The most similar row for each row asked about.

    Args:
        similarity: float64 [m], Tanimoto; 0 where nothing is shared, NaN where there is nothing to compare with.
        row: int64 [m], the first of the rows that are so similar; -1 where there is nothing to compare with.
    """

    similarity: np.ndarray
    row: np.ndarray


def find_nearest(x: np.ndarray, others: np.ndarray, *, label: str = "nearest neighbours") -> NearestPairs:
    """Find the most similar fingerprint of a list, for each of another.

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
    similarity, row = np.full(len(x), np.nan), np.full(len(x), -1, dtype=np.int64)
    if not len(others):
        return NearestPairs(similarity, row)
    table = BitTable(others)
    with bar(label, total=len(x)) as progress:
        for start in range(0, len(x), _ROWS):
            rows = slice(start, start + _ROWS)
            similarity[rows], row[rows] = BitTable(x[rows], like=table).nearest(table)
            progress.advance(len(x[rows]))
    return NearestPairs(similarity, row)
