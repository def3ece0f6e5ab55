"""Nearest neighbours by CSLS, a cosine corrected for hubs: rows that are close to everything."""

from __future__ import annotations

import numpy as np

from molgraph.base.errors import BadValueError
from molgraph.embed.search import Best, Similarity, add_block, unit

NEIGHBOURS = 10  # of which the mean is taken, as in the paper


class CSLS:
    """``CSLS(x, y) = 2 cos(x, y) - r(x) - r(y)``, where r is the mean cosine to the k nearest of the other side.

    Conneau et al. 2018, "Word translation without parallel data", equation 6. A query's own r(x) is the same for the
    whole library, so that blocks of the library are ranked by ``2 cos(x, y) - r(y)`` as they come.

    Args:
        n: queries; r(y) is taken over them, so with one query the order is that of the cosine.
        neighbours: k; at most the number of queries.

    Raises:
        BadValueError: fewer than two queries.
    """

    def __init__(self, n: int, neighbours: int = NEIGHBOURS) -> None:
        if n < 2:
            words = f"hubs are near to many queries, and there {'is one query' if n == 1 else 'is none'}"
            raise BadValueError(words, hint="give several queries, or leave csls out")
        self.near, self._best = min(neighbours, n), Best(n, neighbours)
        self._density: list[np.ndarray] = []
        self._rows = 0

    def scaled(self, similarity: Similarity, ok: np.ndarray) -> Similarity:
        """``2 cos(x, y) - r(y)`` for a block, whose slices are asked for once and in order.

        Args:
            similarity: the cosines of a slice of the block's rows.
            ok: bool [rows], those that have a vector.
        """

        def local(rows: slice) -> np.ndarray:
            cosine = similarity(rows)
            near = np.partition(cosine, -self.near, axis=0)[-self.near :].mean(axis=0)
            self._density.append(near)
            self._best.add(np.where(ok[rows], cosine, -np.inf), self._rows)
            self._rows += cosine.shape[1]
            return 2 * cosine - near

        return local

    def values(self, best: Best) -> tuple[np.ndarray, np.ndarray]:
        """CSLS and cosine, float32 [n, k], of the best rows."""
        density = np.concatenate([*self._density, [np.nan]])[best.row]
        known = self._best.score > -np.inf
        means = np.where(known, self._best.score, 0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        return best.score - means[:, None], (best.score + density) / 2


def csls_search(queries: np.ndarray, library: np.ndarray, k: int, *, neighbours: int = NEIGHBOURS) -> Best:
    """The k rows of a library with the highest CSLS for each query; ``score`` is CSLS.

    Args:
        queries: float [n, d].
        library: float [m, d].
        k: rows for each query.
        neighbours: of which the mean cosine is taken.

    Example:
        >>> rng = np.random.default_rng(0)
        >>> x = rng.normal(size=(30, 16))
        >>> csls_search(x, x, 1).row.ravel().tolist() == list(range(30))
        True
    """
    a, b = unit(queries), unit(library)
    ok, best, local = np.ones(len(b), dtype=bool), Best(len(a), k), CSLS(len(a), neighbours)
    add_block(best, local.scaled(lambda rows: a @ b[rows].T, ok), ok, 0)
    best.score = local.values(best)[0]
    return best
