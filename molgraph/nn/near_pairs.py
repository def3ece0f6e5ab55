"""Find pairs of rows within a cutoff (by a k-d tree in large graphs), and the reverse of each directed pair."""

from __future__ import annotations

import numpy as np

from molgraph.base.packed import ranges

MANY = 128  # rows of a graph: from so many on a search tree is quicker than all distances


def near_pairs(at: np.ndarray, offsets: np.ndarray, graph: np.ndarray, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """Sources and targets of all pairs of different rows of one graph that are nearer than ``cutoff``.

    Distances are computed in double precision, so that it does not matter how the pairs were found.

    Args:
        at: float64 [rows, 3], positions.
        offsets: int64 [graphs + 1], the rows of each graph.
        graph: int64 [rows], the graph of each row.
        cutoff: in the unit of the positions.

    Returns:
        int64 [p] each, sorted by target, then by source.

    Example:
        >>> at = np.array([[0.0, 0, 0], [1, 0, 0], [3, 0, 0]])
        >>> near_pairs(at, np.array([0, 3]), np.zeros(3, np.int64), 1.5)
        (array([1, 0]), array([0, 1]))
    """
    if (np.diff(offsets) ** 2).sum() <= MANY * len(graph):
        source, spans = ranges(offsets[graph], offsets[graph + 1])
        target = np.repeat(np.arange(len(graph)), np.diff(spans))
    else:
        source, target = _tree_pairs(at, graph, cutoff)
    away = at[source] - at[target]
    near = (np.sqrt(np.einsum("pd,pd->p", away, away)) < cutoff) & (source != target)
    return source[near], target[near]


def _tree_pairs(at: np.ndarray, graph: np.ndarray, cutoff: float) -> tuple[np.ndarray, np.ndarray]:
    """The pairs that a search tree finds within a hair more than the cutoff; graphs stand apart along a fourth axis."""
    from scipy.spatial import cKDTree

    n, reach = len(graph), cutoff * (1 + 1e-9)
    apart = np.column_stack([at, graph * (2.0 * reach)])
    one, other = cKDTree(apart).query_pairs(reach, output_type="ndarray").T
    target, source = np.divmod(np.sort(np.concatenate([one * n + other, other * n + one])), n)
    return source, target


def opposite_pairs(source: np.ndarray, target: np.ndarray, n: int) -> np.ndarray | None:
    """int64 [p], the number of the opposite of each pair of ``n`` rows.

    None where a pair has none, or stands there twice, or pairs are not sorted by target, then by source.

    Example:
        >>> opposite_pairs(np.array([1, 0, 2, 1]), np.array([0, 1, 1, 2]), 3)
        array([1, 0, 3, 2])
    """
    keys, back = target * n + source, source * n + target
    order = np.argsort(back, kind="stable")
    if not (np.diff(keys) > 0).all() or not np.array_equal(back[order], keys):
        return None
    opposite = np.empty_like(order)
    opposite[order] = np.arange(len(order))
    return opposite
