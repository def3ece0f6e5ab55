"""Cluster fingerprints by Taylor-Butina sphere exclusion, in memory that grows with their number alone."""

from __future__ import annotations

import numpy as np

from molgraph.base.progress import bar
from molgraph.chem.tanimoto import BitTable

_BLOCK = 256


def cluster_butina(x: np.ndarray, similarity: float) -> np.ndarray:
    """Taylor-Butina sphere exclusion: the molecule with most neighbours takes them as its cluster, and so on.

    Butina 1999, J. Chem. Inf. Comput. Sci. 39:747. The clusters are those of RDKit's ``Butina.ClusterData`` (ties go
    to the later row), but neither similarities nor neighbour lists are kept: neighbours are counted in blocks, then
    found again for the molecules that become centres.

    Args:
        x: [n, bits] of 0 and 1, one fingerprint a row.
        similarity: least Tanimoto similarity of neighbours, above 0 and up to 1.

    Returns:
        int64 [n]: cluster 0, 1, ... in the order in which they were made. A row without a set bit is alone.

    Raises:
        ValueError: a similarity outside (0, 1].

    Example:
        >>> x = np.array([[1, 1, 1, 0], [1, 1, 0, 0], [0, 0, 0, 1]], dtype=np.uint8)
        >>> cluster_butina(x, 0.6).tolist()
        [0, 0, 1]
    """
    if not 0 < similarity <= 1:
        raise ValueError(f"similarity is {similarity}, expected more than 0 and up to 1")
    n = len(x)
    bits = x.sum(axis=1, dtype=np.int64)
    # Rows of like size stand together, since only sizes within a ratio can be similar enough.
    by_size = np.argsort(bits, kind="stable")
    space = _Space(np.asarray(x)[by_size], similarity)
    counts = np.empty(n, dtype=np.int64)
    counts[by_size] = space.count_neighbours()
    place = np.empty(n, dtype=np.int64)
    place[by_size] = np.arange(n)
    order = place[np.lexsort((np.arange(n), counts))[::-1]]
    cluster_of = space.exclude(order, counts[by_size][order])
    return cluster_of[place]


class _Space:
    """Fingerprints sorted by their number of bits, and which of them are neighbours."""

    def __init__(self, x: np.ndarray, similarity: float) -> None:
        self.table = BitTable(x)
        bits = self.table.size
        # Least number of common bits for each sum of two sizes, by the same division that RDKit makes.
        sums = np.arange(2 * int(bits.max(initial=0)) + 1)
        least = np.maximum(np.ceil(sums * similarity / (1 + similarity)) - 1, 1).astype(np.int64)
        for _ in range(2):
            least += least / np.maximum(sums - least, 1) < similarity
        self.least = least.astype(np.float32)
        self.low = np.searchsorted(bits, np.floor(bits * similarity - 1e-9))
        self.high = np.searchsorted(bits, np.ceil(bits / similarity + 1e-9), side="right")

    def neighbours(self, rows: np.ndarray, others: np.ndarray | slice) -> np.ndarray:
        """bool [rows, others]; a row is its own neighbour."""
        bits = self.table.size
        common = self.table.take(rows).shared(self.table.take(others))
        return common >= self.least[bits[rows][:, None] + bits[others][None, :]]

    def count_neighbours(self) -> np.ndarray:
        """int64 [n]: neighbours of each row, itself among them; each pair is looked at once."""
        n = len(self.table)
        counts = np.zeros(n, dtype=np.int64)
        with bar("similar molecules", total=n) as progress:
            for start in range(0, n, _BLOCK):
                rows = np.arange(start, min(start + _BLOCK, n))
                stop = int(self.high[rows[-1]])
                near = self.neighbours(rows, slice(start, stop))
                counts[rows] += near.sum(axis=1)
                counts[start + len(rows) : stop] += near[:, len(rows) :].sum(axis=0)
                progress.advance(len(rows))
        return counts

    def exclude(self, order: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """int64 [n]: clusters of the rows, centres taken in the order given."""
        n, n_clusters = len(self.table), 0
        cluster_of = np.full(n, -1, dtype=np.int64)
        size = np.empty(n, dtype=np.int64)
        size[order] = counts
        with bar("clusters", total=n) as progress:
            while len(order) and size[order[0]] > 1:
                centres, free = order[:_BLOCK], np.flatnonzero(cluster_of < 0)
                free = free[(free >= self.low[centres].min()) & (free < self.high[centres].max())]
                for centre, close in zip(centres, self.neighbours(centres, free), strict=True):
                    if cluster_of[centre] < 0:
                        members = free[close]
                        cluster_of[members[cluster_of[members] < 0]] = cluster_of[centre] = n_clusters
                        n_clusters += 1
                before, order = len(order), order[cluster_of[order] < 0]
                progress.advance(before - len(order))
        cluster_of[order] = n_clusters + np.arange(len(order))  # no row that is left has a neighbour but itself
        return cluster_of
